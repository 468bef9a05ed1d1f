"""Parquet files that a worker reads: places, batches, what is missing or damaged; and the same rows as from Spark."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once
from vsc.plan.nodes import Column
from vsc.plan.types import parse_type
from vsc.runtime.errors import SourceError
from vsc.runtime.metrics import Group
from vsc.runtime.spark import start
from vsc.runtime.spark.connectors import file_rows
from vsc.runtime.spark.connectors.files import connector as files
from vsc.runtime.spark.connectors.registry import open_source
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.formats import parquet_files
from vsc.runtime.spark.formats.held_types import HeldTypes
from vsc.runtime.spark.formats.misfits import not_text, outside_years
from vsc.runtime.spark.formats.parquet_files import ParquetFiles
from vsc.runtime.spark.formats.source_columns import BAD, INDEX, PART, TIME


def batches(
    *paths: Path, columns: str, read: str | None = None, by_case: bool = False, times: list[int] | None = None
) -> list[pa.RecordBatch]:
    separator = "; " if "; " in columns else ", "
    declared = tuple(
        Column(name, parse_type(type)) for name, _, type in (c.partition(" ") for c in columns.split(separator))
    )
    names = frozenset(c.name for c in declared) if read is None else frozenset(read.split())
    given: dict[str, Any] = {PART: [f"file:{str(path).replace(' ', '%20')}" for path in paths]}
    if times is not None:
        given[TIME] = times
    return list(ParquetFiles(declared, names, by_case)([pa.record_batch(given)]))


def write(path: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, path, **options)
    return path


def test_rows_are_numbered_in_their_file_whatever_its_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "BATCH_ROWS", 4)
    first = write(tmp_path / "a b.parquet", pa.table({"n": range(10)}), row_group_size=3)
    none = write(tmp_path / "none.parquet", pa.table({"n": pa.array([], pa.int64())}))
    second = write(tmp_path / "c.parquet", pa.table({"n": [7]}))
    found = batches(first, none, second, columns="n bigint", times=[5, 6, 7])
    assert [batch.num_rows for batch in found] == [4, 4, 2, 1]
    table = pa.Table.from_batches(found)
    assert table.column(0).to_pylist() == [*range(10), 7]
    assert table.column(INDEX).to_pylist() == [*range(10), 0]
    url = f"file:{tmp_path}/a%20b.parquet"
    assert table.column(PART).to_pylist() == [url, *[None] * 9, f"file:{second}"]
    assert table.column(TIME).to_pylist() == [*[5] * 10, 7]


def test_wide_rows_come_in_small_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "BATCH_BYTES", 50_000)
    table = pa.table({"s": [os.urandom(10_000) for _ in range(20)], "n": range(20)})
    path = write(tmp_path / "a.parquet", table)
    assert [b.num_rows for b in batches(path, columns="s binary, n bigint")] == [4] * 5
    assert [b.num_rows for b in batches(path, columns="s binary, n bigint", read="n")] == [20]


def test_columns_are_found_by_name_and_the_unread_and_the_missing_are_null(tmp_path: Path) -> None:
    table = pa.table({"st": [{"x.y": 1, "b": 2}], "B": [3], "a.b": [4], "l": [[5, 6]], "x.y": ["z"]})
    path = write(tmp_path / "a.parquet", table)
    (batch,) = batches(path, columns="x.y string, b bigint, a.b bigint, st int, gone date", read="x.y b a.b gone")
    assert [batch.column(i).to_pylist() for i in range(5)] == [["z"], [3], [4], [None], [None]]
    assert batch.column(4).type == pa.date32()
    (batch,) = batches(path, columns="b bigint, B bigint", by_case=True)
    assert [batch.column(i).to_pylist() for i in range(2)] == [[None], [3]]
    (batch,) = batches(path, columns="b bigint", read="")
    assert batch.column(0).to_pylist() == [None]
    with pytest.raises(SourceError, match="a column is of another type than declared; the file has st struct<"):
        batches(path, columns="l bigint")
    with pytest.raises(SourceError, match=r"column l is declared array<int>, and holds array<bigint> there"):
        batches(path, columns="l array<int>")
    path = write(tmp_path / "twice.parquet", pa.table({"B": [1], "b": [2]}))
    with pytest.raises(SourceError, match="cannot be read: it has more than one column 'b': B, b"):
        batches(path, columns="b bigint")


def test_files_that_are_damaged_or_gone_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.table({"n": range(1000)}), compression="none", use_dictionary=False,
                 write_page_checksum=True)  # fmt: skip
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[500] ^= 1
    for data in (b"PAR1 is not all", whole[:-20], bytes(flipped)):
        path.write_bytes(data)
        with pytest.raises(SourceError, match=f"the file file://{path} cannot be read: .+") as caught:
            batches(path, columns="n bigint")
        assert caught.value.help == "fix or remove the file, then run again"
    with pytest.raises(SourceError, match=f"the file file://{tmp_path}/x is not there any more"):
        batches(tmp_path / "x", columns="n bigint")


@pytest.mark.parametrize(
    "note",
    [{"org.apache.spark.version": "2.4.8"}, {"org.apache.spark.legacyDateTime": ""},
     {"org.apache.spark.version": "3.5.1", "org.apache.spark.legacyINT96": ""}],
)  # fmt: skip
def test_times_in_the_calendar_of_an_old_spark_are_refused_where_they_differ(
    tmp_path: Path, note: dict[str, str]
) -> None:
    def read(day: date, micros: int) -> pa.RecordBatch:
        table = pa.table({"d": [day, None], "t": pa.array([micros, None], pa.timestamp("us", "UTC")), "n": [-1, -1]})
        path = write(tmp_path / "a.parquet", table.replace_schema_metadata(note))
        (batch,) = batches(path, columns="d date, t timestamp, n bigint")
        return batch

    first = -2_208_988_800_000_000
    batch = read(date(1582, 10, 15), first)
    assert [batch.column(0)[0].as_py(), batch.column(1).cast(pa.int64())[0].as_py()] == [date(1582, 10, 15), first]
    with pytest.raises(SourceError, match="has a date of before 1582") as caught:
        read(date(1582, 10, 14), first)
    assert caught.value.help is not None and "'datetimeRebaseMode' = 'LEGACY'" in caught.value.help
    with pytest.raises(SourceError, match="has a timestamp of before 1900"):
        read(date(1582, 10, 15), first - 1)


def test_a_spark_that_writes_our_calendar_is_no_old_one(tmp_path: Path) -> None:
    table = pa.table({"d": [date(1, 1, 1)]}).replace_schema_metadata({"org.apache.spark.version": "3.0.0"})
    (batch,) = batches(write(tmp_path / "a.parquet", table), columns="d date")
    assert batch.column(0).to_pylist() == [date(1, 1, 1)]


def bad_utf8(*texts: bytes) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), len(texts), pa.array(texts, pa.binary()).buffers())


def test_a_value_that_does_not_fit_is_that_row_s_problem(tmp_path: Path) -> None:
    table = pa.table({"n": [5, 2**53 + 1, None], "b": pa.array([1, 0, 2], pa.int8()), "s": ["x", None, "y"]})
    (batch,) = batches(write(tmp_path / "a.parquet", table), columns="n double, b boolean, s string")
    assert [batch.column(i).to_pylist() for i in range(3)] == [[5.0, None, None], [True, False, None], ["x", None, "y"]]
    assert batch.column(BAD).to_pylist() == [
        None, "column 'n' (double) cannot hold '9007199254740993'", "column 'b' (boolean) cannot hold '2'"
    ]  # fmt: skip


def test_a_time_beyond_microseconds_is_that_row_s_problem(tmp_path: Path) -> None:
    """A sentinel for "never". Wherever it stands, the other rows are read."""
    ms, never = pa.timestamp("ms"), 2**62
    table = pa.table({
        "t": pa.array([1, never, -never, None, 5], ms), "l": pa.array([[1], [], None, [2, never], [3]], pa.list_(ms)),
        "m": pa.array([[(never, 1)], [(1, 1)], None, [], [(2, 2)]], pa.map_(ms, "int64")),
    })  # fmt: skip
    columns = "t timestamp; l array<timestamp>; m map<timestamp, bigint>"
    (batch,) = batches(write(tmp_path / "a.parquet", table), columns=columns)
    at = [datetime.fromtimestamp(n / 1000, UTC) for n in range(6)]
    assert batch.column(0).to_pylist() == [at[1], None, None, None, at[5]]
    assert batch.column(1).to_pylist() == [[at[1]], [], None, None, [at[3]]]
    assert batch.column(2).to_pylist() == [None, [(at[1], 1)], None, [], [(at[2], 2)]]
    assert batch.column(BAD).to_pylist() == [
        "column 'm' (map<timestamp,bigint>) cannot hold 'a time in it'",
        "column 't' (timestamp) cannot hold '4611686018427387904 ms'",
        "column 't' (timestamp) cannot hold '-4611686018427387904 ms'",
        "column 'l' (array<timestamp>) cannot hold 'a time in it'",
        None,
    ]


def test_files_as_pandas_writes_them_are_read_by_one_declaration(tmp_path: Path) -> None:
    """Numbers with a gap become doubles, a column without a value has no type, an empty list neither."""
    columns = (
        "n double; s string; at timestamp; tags array<string>; p struct<x: double, y: string>; m map<string,double>"
    )
    tables = [
        pa.table({"n": [1, 2], "s": ["a", "b"], "at": pa.array([1_500, -1], pa.timestamp("ns")), "tags": [["x"], None],
                  "p": [{"x": 1.5, "y": "z"}, None], "m": pa.array([[("k", 1.5)], None], pa.map_("string", "float"))}),
        pa.table({"n": [1.5, None], "s": pa.nulls(2), "at": pa.array([1, None], pa.timestamp("ms", "UTC")),
                  "tags": pa.array([[], [None]], pa.list_(pa.null())), "p": pa.array([{"X": 2}, {}], pa.struct(
                      [("X", pa.int32())])), "m": pa.nulls(2)}),
        pa.table({"n": pa.array([1, 2], pa.float16()), "s": pa.array(["c", "d"]).dictionary_encode(),
                  "at": pa.nulls(2), "tags": pa.array([["y", "z"], []], pa.large_list(pa.large_string())),
                  "p": pa.nulls(2), "m": pa.nulls(2)}),
    ]  # fmt: skip
    found = [batches(write(tmp_path / f"{i}.parquet", t), columns=columns)[0] for i, t in enumerate(tables)]
    values = [pa.Table.from_batches(found).column(i).to_pylist() for i in range(6)]
    at = [0.000001, -0.000001, 0.001]
    assert values[:2] == [[1.0, 2.0, 1.5, None, 1.0, 2.0], ["a", "b", None, None, "c", "d"]]
    assert [None if t is None else t.timestamp() for t in values[2]] == [*at, None, None, None]
    assert values[3] == [["x"], None, [], [None], ["y", "z"], []]
    assert values[4] == [{"x": 1.5, "y": "z"}, None, {"x": 2.0, "y": None}, {"x": None, "y": None}, None, None]
    assert values[5] == [[("k", 1.5)], None, None, None, None, None]


def test_a_number_inside_of_a_value_that_does_not_fit_is_that_row_s_problem(tmp_path: Path) -> None:
    """Lists of whole numbers in one file, of doubles in the next: one declaration reads both, but for 2^53 + 1."""
    large = 2**53 + 1
    whole = pa.table({
        "l": pa.array([[1, None], None, [2, large], []], pa.list_(pa.int64())),
        "s": pa.array([{"x": [[1]]}, {"x": [[1], [large]]}, None, {"x": None}], pa.struct(
            [("x", pa.list_(pa.list_(pa.int64())))])),
        "m": pa.array([[("a", 1)], [("a", 2)], [("a", 3)], [("a", 4), ("b", large)]], pa.map_("string", "int64")),
        "b": pa.array([[0, 1], [1], None, []], pa.list_(pa.int8())),
    })  # fmt: skip
    columns = "l array<double>; s struct<x: array<array<double>>>; m map<string,double>; b array<boolean>"
    (batch,) = batches(write(tmp_path / "a.parquet", whole), columns=columns)
    assert batch.column(0).to_pylist() == [[1.0, None], None, None, []]
    assert batch.column(1).to_pylist() == [{"x": [[1.0]]}, None, None, {"x": None}]
    assert batch.column(2).to_pylist() == [[("a", 1.0)], [("a", 2.0)], [("a", 3.0)], None]
    assert batch.column(3).to_pylist() == [[False, True], [True], None, []]
    problems = batch.column(BAD).to_pylist()
    assert problems[0] is None
    assert [problem.split(" cannot")[0] for problem in problems[1:]] == [
        "column 's' (struct<x:array<array<double>>>)", "column 'l' (array<double>)", "column 'm' (map<string,double>)"
    ]  # fmt: skip
    fractions = pa.table({"l": [[1.5]], "s": [{"x": [[1.5]]}]})
    (batch,) = batches(write(tmp_path / "b.parquet", fractions), columns=columns)
    assert [batch.column(i).to_pylist() for i in (0, 1)] == [[[1.5]], [{"x": [[1.5]]}]]


def test_two_fields_of_one_name_are_refused(tmp_path: Path) -> None:
    kind = pa.struct([("a", pa.int64()), ("A", pa.int64())])
    path = write(tmp_path / "a.parquet", pa.table({"s": pa.array([{"a": 1, "A": 2}], kind)}))
    with pytest.raises(SourceError, match=r"declared struct<a:bigint>, and holds struct<a:bigint,A:bigint>"):
        batches(path, columns="s struct<a: bigint>")


def test_nested_columns_keep_their_places_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "BATCH_ROWS", 3)
    rows: list[Any] = [None if i % 4 == 3 else [{"a": i, "b": [None] * (i % 3)}] * (i % 3) for i in range(10)]
    kind = pa.list_(pa.struct([("a", pa.int16()), ("b", pa.list_(pa.string()))]))
    path = write(tmp_path / "a.parquet", pa.table({"l": pa.array(rows, kind)}), row_group_size=4)
    found = batches(path, columns="l array<struct<b: array<string>, a: int>>; n int")
    assert [value for batch in found for value in batch.column(0).to_pylist()] == rows


def test_texts_that_are_not_utf8_are_found_at_every_depth() -> None:
    texts = bad_utf8(b"ok", b"\xff", b"", b"\xc3\xa9")
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 4]), texts)
    structs = pa.StructArray.from_arrays([pa.array([1, 2, 3]), lists], ["n", "l"])
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 4]), pa.array(["a", "b", "c", "d"]), texts)
    for column, rows in (
        (texts, [1]), (texts.slice(1), [0]), (texts.slice(2), []), (lists, [2]), (lists.slice(2), [0]),
        (structs, [2]), (structs.slice(0, 2), []), (maps, [1]), (pa.array([1]), []), (texts.cast(pa.binary()), []),
    ):  # fmt: skip
        assert not_text(column).tolist() == rows


def test_times_of_other_years_are_found_at_every_depth() -> None:
    days = pa.array([-719_163, -719_162, 2_932_896, 2_932_897, None], pa.int32()).view(pa.date32())
    last = 253_402_300_799_999_999
    moments = pa.array([-62_135_596_800_000_001, None, last, last + 1, 0]).view(pa.timestamp("us", "UTC"))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3, 5]), moments)
    structs = pa.StructArray.from_arrays([pa.array([1, 2, 3, 4]), lists], ["n", "l"])
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 5]), pa.array(["a", "b", "c", "d", "e"]), days)
    for column, rows in (
        (days, [0, 3]), (days.slice(1), [2]), (days.slice(1, 2), []), (days.slice(4), []), (moments, [0, 3]),
        (lists, [0, 3]), (structs, [0, 3]), (structs.slice(1, 2), []), (maps, [0, 1]), (pa.array([2**60]), []),
        (pa.array(["x"]), []),
    ):  # fmt: skip
        assert outside_years(column).tolist() == rows


# ---------------------------------------------------------------------------------------------------- with Spark

TOPOLOGY = """
topology nasty;
stream rows (id string, n bigint, price decimal(12, 2), day date, at timestamp, region string)
from files (path = '${in}', format = 'parquet', 'maxFilesPerTrigger' = '2', missing_columns = 'null')
key id timestamp at;
table sums = aggregate rows group by id select count(*) as c, sum(n) as n, max(price) as price, max(region) as region;
sink sums to files (path = '${out}/sums', format = 'parquet');
sink dropped of rows to files (path = '${out}/dropped', format = 'parquet');
"""
SECOND = 1_000_000


def make(folder: Path, name: str, table: pa.Table, order: int, **options: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path.with_name(f"_{path.name}"), **options)
    os.utime(path.with_name(f"_{path.name}"), (1_700_000_000 + order,) * 2)
    path.with_name(f"_{path.name}").rename(path)


def first_files(folder: Path) -> None:
    times = pa.array([3 * SECOND, SECOND, None, -5], pa.timestamp("us"))
    make(folder, "a b.parquet", pa.table({
        "ID": ["x", None, "y", "x"], "n": pa.array([1, 2, 3, 4], pa.int8()), "at": times, "more": [[1]] * 4,
        "price": pa.array(["1.5", "2.5", "3.5", "4.5"]).cast(pa.decimal128(3, 1)),
    }), 0, row_group_size=2)  # fmt: skip
    (folder / "empty.parquet").touch()
    make(folder, "none.parquet", pa.table({"id": pa.array([], pa.string())}), 1)
    make(folder, "region=n%2Fs/b.parquet", pa.table({
        "id": pa.array(["y", "x", "y"]).dictionary_encode(), "n": pa.array([2**40, None, -1]),
        "at": pa.array([2000, 4000, 4001], pa.timestamp("ms", "Europe/Berlin")),
    }), 2)  # fmt: skip


def later_files(folder: Path) -> None:
    make(folder, "c.parquet", pa.table({
        "id": ["x", "z"], "n": pa.array([5, 6], pa.uint16()), "at": pa.array([9 * SECOND] * 2, pa.timestamp("us")),
    }), 3, use_deprecated_int96_timestamps=True)  # fmt: skip


def seen(folder: Path) -> dict[str, list[Any]]:
    """All that the sinks have, with the records' places in their sources."""
    return {name: parquet_rows(folder / "out" / name) for name in ("sums", "dropped")}


def run(spark: Any, folder: Path, data: Path) -> list[Any]:
    reports = run_once(compiled(TOPOLOGY), spark, folder / "ck", variables={"in": str(data), "out": f"{folder}/out"})
    return [(r.read, r.metrics.as_dict()[Group.DROPPED_RECORDS.value], r.clocks) for r in reports]


@pytest.mark.spark
@pytest.mark.release
def test_the_rows_are_those_that_spark_reads_and_a_checkpoint_goes_on_from_one_to_the_other(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: dict[str, list[Callable[..., Any]]] = {
        "ours": [file_rows.parquet_files] * 2, "spark": [lambda *_: None] * 2,
        "changed": [lambda *_: None, file_rows.parquet_files],
    }  # fmt: skip
    data = tmp_path / "in"
    found = {}
    spark.conf.set("spark.sql.sources.binaryFile.maxLength", "1")  # an error, if Spark read a file as bytes
    try:
        first_files(data)
        reports = {}
        for way, (before, _) in ways.items():
            monkeypatch.setattr(files, "parquet_files", before)
            reports[way] = run(spark, tmp_path / way, data)
        later_files(data)
        for way, (_, after) in ways.items():
            monkeypatch.setattr(files, "parquet_files", after)
            reports[way] += run(spark, tmp_path / way, data)
            found[way] = seen(tmp_path / way)
    finally:
        spark.conf.unset("spark.sql.sources.binaryFile.maxLength")
    assert found["ours"] == found["spark"] == found["changed"]
    assert reports["ours"] == reports["spark"] == reports["changed"]
    assert [(sum(read.values()), clocks["rows"]) for read, _, clocks in reports["ours"]] == [
        (4, 3000), (3, 4001), (2, 9000),
    ]  # fmt: skip
    assert [(r["id"], r["_timestamp"], r["c"], r["n"], r["region"]) for r in found["ours"]["sums"]] == [
        ("x", 3000, 1, 1, None), ("y", 2000, 1, 2**40, "n/s"), ("y", 4001, 2, 2**40 - 1, "n/s"),
        ("x", 4000, 2, 1, "n/s"), ("z", 9000, 1, 6, None), ("x", 9000, 3, 6, "n/s"),
    ]  # fmt: skip
    place = f'{{"file":"file:{data}/a b.parquet","row":%d}}'
    assert [(r["position"], r["reason"], r["value"]) for r in found["ours"]["dropped"]] == [
        (place % 2, "null_key", '{"n":2,"price":2.50,"at":"1970-01-01T00:00:01.000Z"}'),
        (place % 3, "null_timestamp", '{"n":3,"price":3.50}'),
        (place % 4, "negative_timestamp", '{"n":4,"price":4.50,"at":"1969-12-31T23:59:59.999995Z"}'),
    ]


@pytest.mark.spark
@pytest.mark.release
@pytest.mark.parametrize(
    ("column", "option", "setting", "ours"),
    [
        ("string", "", "spark.sql.shuffle.partitions", True),
        ("string", ", 'latestFirst' = 'true', 'pathGlobFilter' = '*'", "spark.sql.shuffle.partitions", True),
        ("array<string>", "", "spark.sql.shuffle.partitions", True),
        ("string", ", 'mergeSchema' = 'false'", "spark.sql.shuffle.partitions", False),
        ("string", ", 'recursiveFileLookup' = 'false'", "spark.sql.shuffle.partitions", False),
        ("string", "", "spark.sql.parquet.binaryAsString", False),
        ("string", "", "spark.sql.parquet.compression.codec", True),
        ("string", "", "spark.sql.parquet.writeLegacyFormat", True),
        ("string", "", "spark.sql.parquet.fieldId.write.enabled", True),
    ],
)
def test_spark_reads_what_it_was_told_how_to_read(
    spark: Any, tmp_path: Path, column: str, option: str, setting: str, ours: bool
) -> None:
    text = (
        f"stream rows (c {column}) from files (path = '{tmp_path}', format = 'parquet'{option}); sink rows to noop ();"
    )
    plan = compiled(text)
    node = plan.node("rows")
    before = spark.conf.get(setting)
    spark.conf.set(setting, "3" if before.isdigit() else before)
    try:
        reader = open_source(plan, node).reader(spark)
        read = ParquetFiles(node.source.columns, frozenset({"c"}), False)
        assert reader == (read if ours else HeldTypes("parquet", node.source.columns, False))
    finally:
        spark.conf.set(setting, before) if before.isdigit() else spark.conf.unset(setting)


@pytest.mark.spark
@pytest.mark.release
def test_a_task_reads_several_files(spark: Any, tmp_path: Path) -> None:
    data = tmp_path / "in"
    for number in range(9):
        make(data, f"{number}.parquet", pa.table({"n": range(number)}), number)
    make(data, "big.parquet", pa.table({"n": range(1_500_000)}), 9, compression="none", use_dictionary=False)
    plan = compiled(f"stream rows (n bigint) from files (path = '{data}', format = 'parquet'); sink rows to noop ();")
    reports: list[EpochReport] = []
    query = start(plan, spark, checkpoint=str(tmp_path / "ck"), on_epoch=reports.append)
    query.awaitTermination()
    assert [report.read["rows"] for report in reports] == [sum(range(9)) + 1_500_000]
    tracker = spark.sparkContext.statusTracker()
    (job,) = tracker.getJobIdsForGroup(str(query.runId))
    stages = [tracker.getStageInfo(stage) for stage in tracker.getJobInfo(job).stageIds]
    assert [stage.numTasks for stage in stages] == [1 + 2]  # the control source's, and one for each core
