"""Key and row codecs: round trips, the order of keys, one form whichever way, and the bytes themselves."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, ScalarType, StructType, parse_type
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.values import to_array, to_values

MODERATE = settings(max_examples=120, deadline=None)
BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "date": 32, "timestamp": 64}
NASTY_TEXT = st.text(st.sampled_from("\0\1aé\U0001f600|\x7f"), max_size=4)


def values_of(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case DecimalType(precision, scale):
            limit = 10**precision - 1
            return st.integers(-limit, limit).map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale)))
        case ArrayType(element):
            return st.lists(st.none() | values_of(element), max_size=3)
        case MapType(key, value):
            return st.dictionaries(values_of(key), st.none() | values_of(value), max_size=2)
        case StructType(fields):
            return st.tuples(*(st.none() | values_of(f.type) for f in fields))
        case ScalarType("boolean"):
            return st.booleans()
        case ScalarType("string"):
            return NASTY_TEXT
        case ScalarType("binary"):
            return st.binary(max_size=4) | st.sampled_from([b"\0", b"\0\1", b"\0\xff", b"\xff"])
        case ScalarType("float"):
            return st.floats(width=32)
        case ScalarType("double"):
            return st.floats()
        case ScalarType(name):
            return st.integers(-(1 << (BITS[name] - 1)), (1 << (BITS[name] - 1)) - 1)
    raise AssertionError(data_type)


KEY_TYPES = [
    "boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "string", "binary",
    "decimal(5,2)", "decimal(18,0)", "decimal(38,10)", "struct<a:int,b:string>", "struct<a:struct<b:binary>,c:date>",
]  # fmt: skip
ROW_TYPES = [
    *KEY_TYPES, "float", "double", "array<int>", "array<array<string>>", "map<string,decimal(20,3)>",
    "struct<a:array<struct<b:double>>,c:timestamp>",
]  # fmt: skip


@st.composite
def tables(
    draw: st.DrawFn, names: list[str], nulls: bool, most: int = 4
) -> tuple[list[DataType], list[tuple[Any, ...]]]:
    types = [parse_type(n) for n in draw(st.lists(st.sampled_from(names), min_size=1, max_size=most))]
    column = [st.none() | values_of(t) if nulls else values_of(t) for t in types]
    return types, draw(st.lists(st.tuples(*column), max_size=6))


def columns_of(rows: list[tuple[Any, ...]], types: list[DataType], pad: int = 0) -> list[pa.Array]:
    """The rows as columns; with `pad`, as slices that do not begin at their buffers' beginning."""
    padded = rows[:1] * pad + rows
    return [to_array([row[i] for row in padded], t).slice(len(padded) - len(rows)) for i, t in enumerate(types)]


def same(left: Any, right: Any) -> bool:
    """Equality in which NaN is NaN and -0.0 is not 0.0."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left.as_tuple()[1:] == right.as_tuple()[1:] and left == right
    if isinstance(left, dict) and isinstance(right, dict):
        return same(list(left.items()), list(right.items()))
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) and type(left) is type(right)


def ordering(value: Any, data_type: DataType) -> Any:
    """A Python value that compares as the key column should."""
    if isinstance(data_type, StructType):
        members = zip(value, data_type.fields, strict=True)
        return tuple((0, 0) if v is None else (1, ordering(v, f.type)) for v, f in members)
    return value.encode() if isinstance(value, str) else value


@MODERATE
@given(tables(KEY_TYPES, nulls=False))
def test_a_key_comes_back_and_whole_columns_give_the_same_bytes(
    table: tuple[list[DataType], list[tuple[Any, ...]]],
) -> None:
    types, rows = table
    codec = KeyCodec(types)
    encoded = [codec.encode(row) for row in rows]
    assert all(same(codec.decode(data), row) for data, row in zip(encoded, rows, strict=True))
    unique, index = codec.encode_columns(columns_of(rows, types, pad=2))
    columns = [to_values(column, t) for column, t in zip(codec.decode_columns(encoded), types, strict=True)]
    assert all(same(list(found), list(given)) for found, given in zip(columns, zip(*rows, strict=True), strict=False))
    assert [unique[i] for i in index] == encoded
    assert unique == list(dict.fromkeys(encoded))


@MODERATE
@given(tables(KEY_TYPES, nulls=False))
def test_keys_compare_as_their_values_and_none_is_a_prefix(table: tuple[list[DataType], list[tuple[Any, ...]]]) -> None:
    types, rows = table
    codec = KeyCodec(types)
    pairs = [(codec.encode(row), tuple(ordering(v, t) for v, t in zip(row, types, strict=True))) for row in rows]
    for data, value in pairs:
        for other_data, other in pairs:
            assert (data < other_data) == (value < other)
            assert data == other_data or not other_data.startswith(data)


@MODERATE
@given(tables(ROW_TYPES, nulls=True, most=10))
def test_a_row_comes_back_and_whole_columns_give_the_same_bytes(
    table: tuple[list[DataType], list[tuple[Any, ...]]],
) -> None:
    types, rows = table
    codec = RowCodec(types)
    encoded = [codec.encode(row) for row in rows]
    assert all(same(codec.decode(data), row) for data, row in zip(encoded, rows, strict=True))
    assert codec.encode_columns(columns_of(rows, types, pad=2)).to_pylist() == encoded
    padded = pa.array([b"other", None, *encoded], pa.binary()).slice(2)
    columns = codec.decode_columns(padded)
    decoded = [to_values(column, t) for column, t in zip(columns, types, strict=True)]
    assert all(same(list(row), list(got)) for row, got in zip(rows, zip(*decoded, strict=True), strict=True))


FIXED = [
    "boolean",
    "tinyint",
    "int",
    "bigint",
    "date",
    "timestamp",
    "float",
    "double",
    "decimal(5,2)",
    "decimal(38,10)",
]


@pytest.mark.parametrize("name", FIXED)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_arrays_without_null_elements_give_the_same_bytes_as_whole_columns(name: str, data: st.DataObject) -> None:
    types = [parse_type(f"array<{name}>"), parse_type("string"), parse_type(f"array<{name}>")]
    arrays = st.none() | st.lists(values_of(parse_type(name)), max_size=3)
    rows = data.draw(st.lists(st.tuples(arrays, st.just("x"), arrays), max_size=6))
    codec = RowCodec(types)
    found = codec.encode_columns(columns_of(rows, types, pad=2), len(rows)).to_pylist()
    assert found == [codec.encode(row) for row in rows]


def test_rows_that_are_null_decode_to_nulls() -> None:
    codec = RowCodec([parse_type("string"), parse_type("decimal(4,1)"), parse_type("array<int>")])
    rows = pa.array(
        [None, codec.encode(("a", Decimal("1.5"), [1])), None, codec.encode((None, None, None))], pa.binary()
    )
    text, number, items = codec.decode_columns(rows)
    assert text.to_pylist() == [None, "a", None, None]
    assert number.to_pylist() == [None, Decimal("1.5"), None, None]
    assert items.to_pylist() == [None, [1], None, None]


def test_a_row_without_columns_is_not_a_tombstone() -> None:
    codec = RowCodec([])
    assert codec.encode(()) == b"\x01"
    assert codec.encode_columns([], 2).to_pylist() == [b"\x01", b"\x01"]
    assert codec.decode_columns(pa.array([b"\x01"], pa.binary())) == ()


def test_golden_keys() -> None:
    codec = KeyCodec([parse_type(t) for t in ("string", "smallint", "decimal(3,1)", "struct<a:boolean,b:date>")])
    data = codec.encode(("a\0é", -2, Decimal("1.5"), (None, 1)))
    assert data.hex(" ") == "01 61 00 ff c3 a9 00 01 7f fe 80 00 00 00 00 00 00 0f 00 01 80 00 00 01"


def test_golden_rows() -> None:
    codec = RowCodec([parse_type(t) for t in ("int", "string", "double", "boolean", "decimal(20,2)", "array<string>")])
    data = codec.encode((-2, "é", None, True, Decimal("-0.01"), ["x", None]))
    assert data.hex(" ") == (
        "01 04 fe ff ff ff 02 00 00 00 00 00 00 00 00 00 00 00 01 " + "ff " * 16 + "0d 00 00 00 "
        "c3 a9 02 00 00 00 01 01 00 00 00 78 00"
    )


@pytest.mark.parametrize("data", [b"", b"\x02a\0\1", b"\x01a\0", b"\x01a\0\1x", b"\x01a"])
def test_what_is_no_key_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="key"):
        KeyCodec([parse_type("string")]).decode(data)


def test_what_is_no_row_is_refused() -> None:
    codec = RowCodec([parse_type("string"), parse_type("int")])
    good = codec.encode(("abc", 1))
    for bad in (b"", b"\x07" + good[1:], good[:-1], good[:4], good + b"x"):
        with pytest.raises(ValueError, match="row"):
            codec.decode(bad)
        with pytest.raises(ValueError, match="row"):
            codec.decode_columns(pa.array([good, bad], pa.binary()))


def test_null_key_columns_and_types_that_are_no_keys_are_refused() -> None:
    codec = KeyCodec([parse_type("int")])
    with pytest.raises(ValueError, match="null"):
        codec.encode((None,))
    with pytest.raises(ValueError, match="null"):
        codec.encode_columns([pa.array([1, None], pa.int32())])
    for name in ("float", "double", "array<int>", "map<int,int>"):
        with pytest.raises(TypeError, match="key"):
            KeyCodec([parse_type(name)])


@MODERATE
@given(tables(KEY_TYPES, nulls=True))
def test_rows_without_key_have_bytes_of_their_own(table: tuple[list[DataType], list[tuple[Any, ...]]]) -> None:
    types, rows = table
    codec = KeyCodec(types)
    unique, index = codec.encode_columns(columns_of(rows, types, pad=2), keyless=True)
    assert unique == list(dict.fromkeys(unique[i] for i in index))
    found = [unique[i] for i in index]
    for data, row in zip(found, rows, strict=True):
        if None in row:
            with pytest.raises(ValueError, match="format version"):
                codec.decode(data)
        else:
            assert data == codec.encode(row)
    for data, row in zip(found, rows, strict=True):
        for other_data, other in zip(found, rows, strict=True):
            assert (data == other_data) == (row == other)
            assert data == other_data or not other_data.startswith(data)


def test_the_bytes_of_rows_without_key_never_change() -> None:
    codec = KeyCodec([parse_type("string"), parse_type("smallint")])
    columns = [pa.array(["a", None, None, "a"]), pa.array([None, 1, None, 1], pa.int16())]
    unique, index = codec.encode_columns(columns, keyless=True)
    assert unique == [
        b"\0\1a\0\1\0", b"\0\0\1\x80\1", b"\0\0\0", b"\1a\0\1\x80\1",
    ]  # fmt: skip
    assert index.tolist() == [0, 1, 2, 3]


def test_many_keys_of_several_columns_are_encoded_once_each() -> None:
    codec = KeyCodec([parse_type("int"), parse_type("string")])
    rng = np.random.default_rng(1)
    numbers, texts = rng.integers(0, 30, 5000), [f"k{i}" for i in rng.integers(0, 30, 5000)]
    unique, index = codec.encode_columns([pa.array(numbers, pa.int32()), pa.array(texts)])
    assert len(unique) == len(set(unique)) == len(set(zip(numbers.tolist(), texts, strict=True)))
    assert [codec.decode(unique[i]) for i in index] == list(zip(numbers.tolist(), texts, strict=True))
