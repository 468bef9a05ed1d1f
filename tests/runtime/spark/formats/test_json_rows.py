"""Records in JSON: all values that a text has, or why it has none; the same at once, piece by piece and one by one."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from vsc.plan.nodes import Column
from vsc.plan.types import parse_type
from vsc.runtime.spark.formats.json_rows import JsonReader
from vsc.runtime.spark.formats.text_rows import TextRows
from vsc.runtime.texts import zone_of

AT = datetime(2026, 1, 5, 8, 15, tzinfo=UTC)


def columns(declared: str) -> tuple[Column, ...]:
    return tuple(Column(name, parse_type(type)) for name, type in (c.split(" ", 1) for c in declared.split("; ")))


def read(declared: str, *texts: str | bytes, **options: Any) -> list[tuple[Any, ...]]:
    """Of each row the place of its text, and its values or its problem and text."""
    data = pa.array([text.encode() if isinstance(text, str) else text for text in texts], pa.binary())
    rows = JsonReader(columns(declared), **options).read(data)
    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    found = zip(rows.places.tolist(), values, rows.problems.to_pylist(), rows.texts.to_pylist(), strict=True)
    return [(at, *row) if problem is None else (at, problem, text) for at, row, problem, text in found]


def test_a_line_gives_all_objects_that_it_has() -> None:
    assert read("id int", '{"id":1}{"id":2}', "", ' {"id":3} ', '[{"id":4}, {"id":5}] {"id":6}', "[]", "\ufeff{}") == [
        (0, 1), (0, 2), (2, 3), (3, 4), (3, 5), (3, 6), (5, None)
    ]  # fmt: skip
    assert read("id int", '{"id":1', '{"id":2}', "}") == [
        (0, "'{\"id\":1' is not JSON", '{"id":1'), (1, 2), (2, "'}' is not JSON", "}")
    ]  # fmt: skip
    assert read("id int", '{"id":1}x', '{"id":1},', '{"id":1}{"id"', '[{"id":1},5]', "null", "5") == [
        (0, "'{\"id\":1}x' is not JSON", '{"id":1}x'), (1, "'{\"id\":1},' is not JSON", '{"id":1},'),
        (2, "'{\"id\":1}{\"id\"' is not JSON", '{"id":1}{"id"'), (3, 1), (3, "'5' is not a JSON object", "5"),
        (4, "'null' is not a JSON object", "null"), (5, "'5' is not a JSON object", "5"),
    ]  # fmt: skip


def test_a_line_without_an_object_and_one_with_two_are_not_taken_for_each_other() -> None:
    assert read("id int", '{"id":1}{"id":2}', " ", '{"id":3}') == [(0, 1), (0, 2), (2, 3)]
    assert read("id int", '{"id":1}{"id":2}', '{"x":', '{"y":1}}') == [
        (0, 1), (0, 2), (1, "'{\"x\":' is not JSON", '{"x":'), (2, "'{\"y\":1}}' is not JSON", '{"y":1}}')
    ]  # fmt: skip


def test_a_record_is_one_object_or_its_only_column() -> None:
    value = read("id int", '{"id":1}', '{"id":1}{"id":2}', '[{"id":1}]', "", "5", whole=True)
    assert value == [
        (0, 1), (1, "'{\"id\":1}{\"id\":2}' is more than one JSON object", '{"id":1}{"id":2}'),
        (2, "'[{\"id\":1}]' is not a JSON object", '[{"id":1}]'), (3, "'' is not JSON", ""),
        (4, "'5' is not a JSON object", "5"),
    ]  # fmt: skip
    key = read("id int", "5", '{"id":6}', '5,"x":1', '5}{"id":6', "null", '"x"', whole=True, bare=True)
    assert [row[1] for row in key] == [
        5, 6, "'5,\"x\":1' is not JSON", "'5}{\"id\":6' is not JSON", None, "column 'id' (int) cannot hold 'x'"
    ]  # fmt: skip
    assert read("k string", '"a\\"b"', '"x"', "7", whole=True, bare=True) == [(0, 'a"b'), (1, "x"), (2, "7")]


@pytest.mark.parametrize(
    ("type", "good", "bad"),
    [
        ("decimal(10,2)", {"12.5": "12.50", '"12.5"': "12.50", "5": "5.00", "1e2": "100.00", "1.230": "1.23"},
         ['"12,5"', '"1.234,56"', "1.239", "123456789", "true", "NaN", '""']),
        ("timestamp", {'"2026-01-05T08:15:00"': AT, '"2026-01-05T10:15+02:00"': AT, "1767600900": AT},
         ['"08:15:00"', '"8:15"', '"T08:15"', '"202601"', '"20260105"', '"12"', "1767600900000", "18446744073710",
          "1767600900.5", '""', "true"]),
        ("date", {'"2026-01-05"': AT.date(), '"2026-01-05T00:00:00.000Z"': AT.date()},
         ['"20260105"', '"45678"', '"12"', '"2026"', "20458", '"2026-01-05T08:15:00Z"', '"8:15"', '""']),
        ("int", {"-5": -5}, ["5.0", "1e2", '"5"', "2147483648", "true"]),
        ("double", {"5": 5.0, "1.5e3": 1500.0, '"NaN"': float("nan"), "-Infinity": float("-inf")},
         ["1e400", '"1.5"', "9" * 400, "true"]),
        ("float", {"1.5": 1.5}, ["1e39"]),
        ("boolean", {"true": True}, ["1", '"true"']),
        ("string", {'"x"': "x", "1.50": "1.50", "12345678901234567.25": "12345678901234567.25", "true": "true",
                    "NaN": "NaN", "-Infinity": "-Infinity",
                    '{"a": [1.50,  {}]}': '{"a": [1.50,  {}]}', '"\\ud83d\\ude00"': "😀"}, ['"\\ud83d"', '"\\ude00x"']),
        ("binary", {'"aGk="': b"hi"}, ['"a"', "1e39", "9" * 400, "7"]),
        ("array<decimal(3,1)>", {"[1.5, null]": "[1.5, None]"}, ["[1.55]", "5"]),
        ("array<string>", {'["x", [1.50], {"a" :1}]': "['x', '[1.50]', '{\"a\" :1}']"}, ['["\\ud83d"]', "5"]),
        ("struct<day: date, n: int>", {'{"n": 1}': "{'day': None, 'n': 1}"}, ['{"day": "12"}', '{"n": "x"}']),
        ("map<string,timestamp>", {"{}": "[]"}, ['{"a": "8:15"}', '{"\\ud83d": null}']),
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", [0, 100])
def test_what_a_value_may_be(type: str, good: dict[str, Any], bad: list[str], more: int) -> None:
    """`more` records of the usual kind lie beside the one: what is read at once is read the same."""
    usual = [f'{{"v": {next(iter(good))}}}'] * more
    for text, value in good.items():
        found = read(f"v {type}", *usual, f'{{"v": {text}}}', '{"v": null}', *usual)
        assert [shown(row[1]) for row in found] == [
            *[shown(next(iter(good.values())))] * more, shown(value), "None", *[shown(next(iter(good.values())))] * more
        ]  # fmt: skip
    for text in bad:
        record = f'{{"v": {text}}}'
        found = read(f"v {type}", *usual, record, *usual)
        assert [row for row in found if len(row) == 3] == [
            (more, f"column 'v' ({parse_type(type)}) cannot hold {held(text)}", record)
        ]  # fmt: skip


def shown(value: Any) -> str:
    if isinstance(value, list):
        value = [str(item) if isinstance(item, Decimal) else item for item in value]
    return str(value).replace("'1.5'", "1.5")


def held(text: str) -> str:
    if text == "NaN":
        return "'\"NaN\"'"
    if text.startswith('"'):
        return repr(json.loads(text))
    text = re.sub(r"\\u(\w{4})", lambda escape: escape[0][:2] + escape[1].upper(), text)
    text = text.replace(": ", ":").replace(", ", ",")
    return repr(text if len(text) <= 80 else text[:77] + "...")


def test_bytes_that_are_not_text_are_named() -> None:
    good = [b'{"s":"x"}'] * 200
    assert [row for row in read("s string", *good, b'{"s":"\xff"}', *good) if len(row) == 3] == [
        (200, "it is not UTF-8 text", '{"s":"\\xff"}')
    ]


def test_times_without_an_offset_are_those_of_the_zone() -> None:
    lines = ['{"at":"2026-01-05T09:15:00"}', '{"at":"2026-01-05T08:15:00Z"}', '{"at":1767600900}']
    for chosen in (lines, lines[:1], lines[1:2], lines[2:]):
        assert read("at timestamp", *chosen, zone=zone_of("Europe/Berlin")) == [(i, AT) for i in range(len(chosen))]


MIXED = "id bigint; d decimal(10,2); x double; f float; t timestamp; day date; s string; b boolean; l array<int>"
PIECES = {
    "id": ["1", "-7", '"x"', "1.0", "9223372036854775808"], "d": ["1.5", '"2.25"', "1.239", '"1,5"', "1e1"],
    "x": ["1.5", "7", "-0", '"NaN"', "1e400", "0.1"], "f": ["0.1", "1e39"],
    "t": ['"2026-01-05T08:15:00Z"', '"2026-01-05 08:15:00"', "5", '"8:15"', '"2026-01-05"'],
    "day": ['"2026-01-05"', '"12"'], "s": ['"x"', '"ü\\n\\u00e9"', "5", '"\\ud83d"'], "b": ["true", "1"],
    "l": ["[1,null]", "[]", '["x"]'], "other": ["[{}]", "1", '"\\ud83d\\ude00"'],
}  # fmt: skip


@pytest.mark.slow
def test_however_texts_are_read_they_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(11)
    taken = 0
    for _ in range(150):
        wrong = rng.choice([0.0, 0.0, 0.02, 0.3])
        texts = [record(rng, wrong) for _ in range(rng.choice([1, 3, 30, 200]))]
        taken += JsonReader(columns(MIXED))._at_once(pa.array([t.encode() for t in texts])) is not None
        at_once = read(MIXED, *texts)
        monkeypatch.setattr(JsonReader, "_at_once", lambda *_: None)
        assert str(read(MIXED, *texts)) == str(at_once)
        monkeypatch.undo()
    assert taken > 30


def record(rng: random.Random, wrong: float) -> str:
    if rng.random() < wrong / 3:
        return rng.choice(
            ["", "{", '{"id":1}{"id":2}', '[{"id":3}]', "5", '{"id":1,}', ' {"id":4} ', '{"id":1,"id":2}']
        )
    names = rng.sample(list(PIECES), rng.randint(0, len(PIECES)))
    values = [PIECES[name][0] if rng.random() >= wrong else rng.choice(PIECES[name]) for name in names]
    return "{" + ",".join(f'"{name}": {value}' for name, value in zip(names, values, strict=True)) + "}"


def test_one_bad_record_costs_only_the_few_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    slow: list[int] = []
    one_by_one = JsonReader._one_by_one

    def counted(self: JsonReader, texts: pa.Array, first: int) -> TextRows:
        slow.append(len(texts))
        return one_by_one(self, texts, first)

    monkeypatch.setattr(JsonReader, "_one_by_one", counted)
    texts = [f'{{"id": {i}}}' for i in range(10_000)]
    texts[7_000] = "x"
    found = read("id int", *texts)
    assert [row for row in found if len(row) == 3] == [(7_000, "'x' is not JSON", "x")]
    assert [row[1] for row in found if len(row) == 2] == [i for i in range(10_000) if i != 7_000]
    assert len(slow) == 1 and slow[0] <= 64


def test_dates_are_values() -> None:
    assert read("day date", '{"day": "0001-01-01"}', '{"day": "9999-12-31"}') == [(0, date(1, 1, 1)), (1, date.max)]


@pytest.mark.parametrize(
    ("number", "type"),
    [
        ("350000000000000000000", "decimal(38,18)"), ("4", "decimal(38,38)"), ("-1673208", "decimal(38,37)"),
        ("20243768844861673152906045097590856097", "array<decimal(38,37)>"), ("7.464020", "struct<a:decimal(38,38)>"),
        ("32553299638443876859161466900720302442e-39", "decimal(38,0)"), ("1e-39", "array<decimal(15,0)>"),
    ],
)  # fmt: skip
def test_a_decimal_that_does_not_fit_becomes_no_other_one(number: str, type: str) -> None:
    value = {"array": f"[{number}]", "struct": f'{{"a": {number}}}'}.get(type.partition("<")[0], number)
    reader = JsonReader((Column("x", parse_type(type)),))
    rows = reader.read(pa.array([f'{{"x": {value}}}'.encode(), b'{"x": null}']))
    assert [column.to_pylist() for column in rows.columns] == [[None, None]]
    assert [problem is None for problem in rows.problems.to_pylist()] == [False, True]


def test_decimals_of_all_types_are_read_alike_at_once_and_one_by_one() -> None:
    rng, taken = random.Random(9), 0
    for _ in range(1000):
        precision = rng.choice((38, 38, rng.randint(1, 38)))
        scale = rng.choice((0, precision, rng.randint(0, precision)))
        number = (
            f"{rng.choice(('', '-'))}{rng.randint(1, 10 ** rng.randint(1, 38))}{rng.choice(('', '.50', 'e5', 'e-7'))}"
        )
        reader = JsonReader((Column("x", parse_type(f"decimal({precision},{scale})")),))
        texts = pa.array([f'{{"x": {number}}}'.encode()])
        found = reader._at_once(texts)
        if found is not None:
            taken += 1
            assert found[0].equals(reader._one_by_one(texts, 0).columns[0]), (number, precision, scale)
    assert taken > 100
