"""The files sink on Spark: an epoch that Spark repeats is recognised by its content."""

from __future__ import annotations

import csv
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.plan.types import parse_type
from vsc.runtime.operators.source.partition_folders import NO_VALUE
from vsc.runtime.spark.connectors.files.connector import _FilesSink
from vsc.runtime.spark.connectors.files.texts import with_texts
from vsc.runtime.spark.exchange.output import Output
from vsc.runtime.spark.query.failures import translated
from vsc.runtime.spark.session.session import configured

pytestmark = [pytest.mark.spark, pytest.mark.release]

COUNTS = """
stream orders (id bigint, shop string, at bigint) from files (path = '${in}', format = 'json') timestamp at;
table counts = aggregate orders group by shop select count(*) as orders;
"""
TOPOLOGY = (
    COUNTS
    + """stream big = filter orders where id > 1;
sink counts to files (path = '${out}/counts', format = 'parquet');
sink big to files (path = '${out}/big', format = 'parquet');
"""
)


def rows(numbers: range) -> list[dict[str, Any]]:
    return [{"id": i, "shop": "abc"[i % 3], "at": i} for i in numbers]


def forget_the_commit(checkpoint: Path, epoch: int) -> None:
    """As if the driver had died between the sinks and Spark's note that the epoch is done."""
    (checkpoint / f"commits/{epoch}").unlink()
    (checkpoint / f"commits/.{epoch}.crc").unlink(missing_ok=True)


def files(folder: Path) -> dict[str, int]:
    return {f.relative_to(folder).as_posix(): f.stat().st_mtime_ns for f in folder.rglob("part-*")}


def test_a_repeated_epoch_writes_nothing_and_other_content_is_an_error(spark: Any, tmp_path: Path) -> None:
    plan, checkpoint, out = compiled(TOPOLOGY), tmp_path / "ck", tmp_path / "out"
    arguments = {"variables": {"in": str(tmp_path / "in"), "out": str(out)}, "partitions": 2}
    for number in range(3):
        write_json(tmp_path / f"in/{number}.json", rows(range(10 * number, 10 * number + 10)), number)
    run_once(plan, spark, checkpoint, **arguments)
    before = files(out)
    assert len(parquet_rows(out / "counts")) == 30
    assert len(parquet_rows(out / "big")) == 28

    forget_the_commit(checkpoint, 0)
    (report,) = run_once(plan, spark, checkpoint, **arguments)
    assert sum(report.written.values()) == 58
    assert files(out) == before

    forget_the_commit(checkpoint, 0)
    write_json(tmp_path / "in/1.json", [{**row, "id": row["id"] + 100} for row in rows(range(10, 20))], 1)
    with pytest.raises(Exception) as error:  # Spark's exception, of whatever kind, quotes ours
        run_once(plan, spark, checkpoint, **arguments)
    known = translated(error.value)
    assert known is not None
    assert "the sink of 'big' (line 6): epoch 0 was written before with other content in its 28 rows" in known.message
    assert files(out) == before


@pytest.mark.seam("files sink")
def test_rows_are_in_the_folders_of_their_values_in_order(spark: Any, tmp_path: Path) -> None:
    text = """
stream s (id bigint, k string, day date, at bigint) from files (path = '${in}', format = 'json') key id timestamp at;
sink s to files (path = '${out}', format = 'json', partition_by = (day, k));
"""
    keys = {"a": "a", "b/c": "b%2Fc", "": NO_VALUE, None: NO_VALUE, "ä =%": "ä %3D%25"}
    arguments: dict[str, Any] = {"variables": {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}}
    wanted: dict[str, list[int]] = {}
    for epoch in range(2):
        given: list[dict[str, Any]] = []
        for number in range(200 * epoch, 200 * epoch + 200):
            key, day = list(keys)[number % 5], f"2026-05-0{1 + number % 2}"
            given.append({"id": number, "k": key, "day": day, "at": number})
            wanted.setdefault(f"day={day}/k={keys[key]}", []).append(number)
        write_json(tmp_path / f"in/{epoch}.json", given, epoch)
        run_once(compiled(text), spark, tmp_path / "ck", partitions=1, **arguments)
    found: dict[str, list[int]] = {}
    for path in sorted((tmp_path / "out").rglob("part-*"), key=lambda path: path.name):
        read = [json.loads(line) for line in path.read_text().splitlines()]
        assert {tuple(row) for row in read} == {("id", "at")}
        found.setdefault(path.parent.relative_to(tmp_path / "out").as_posix(), []).extend(row["id"] for row in read)
    assert found == wanted


def test_a_sink_that_gets_no_rows_asks_nothing_of_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[str] = []
    save = _FilesSink._save

    def noted(sink: _FilesSink, output: Output, path: str) -> dict[int, int]:
        saved.append(Path(path).parts[-3])
        return save(sink, output, path)

    monkeypatch.setattr(_FilesSink, "_save", noted)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    for epoch, ids in enumerate((range(2), range(2, 4))):
        write_json(tmp_path / f"in/{epoch}.json", rows(ids), epoch)
        run_once(compiled(TOPOLOGY), spark, tmp_path / "ck", variables=variables, partitions=2)
    assert saved == ["counts", "counts", "big"]
    assert sorted(row["id"] for row in parquet_rows(tmp_path / "out/big")) == [2, 3]
    assert len(parquet_rows(tmp_path / "out/counts")) == 4


@pytest.mark.parametrize("forms", [("json",), ("csv", "parquet", "orc")])
def test_no_file_without_rows_is_left(forms: tuple[str, ...], spark: Any, tmp_path: Path) -> None:
    """The rows of this key are not in the first of the partitions, for which Spark writes a file even without rows."""
    sinks = [f"sink counts to files (path = '${{out}}/{form}', format = '{form}');\n" for form in forms]
    write_json(tmp_path / "in/0.json", [{"id": i, "shop": "b", "at": i} for i in range(3)], 0)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    run_once(compiled(COUNTS + "".join(sinks)), spark, tmp_path / "ck", variables=variables, partitions=4)
    for form in forms:
        [file] = (tmp_path / "out" / form).glob("part-*")
        found = spark.read.option("header", "true").format(form).load(str(file))
        assert [int(row.orders) for row in found.orderBy("_timestamp").collect()] == [1, 2, 3]


TIMES = """
stream s (
  id int, at timestamp, l array<timestamp>, m map<string, timestamp>, r struct<at: timestamp, n: int>
) from files (path = '${in}', format = 'json');
stream flat = map s select id, at;
sink s to files (path = '${out}/json', format = 'json');
sink flat to files (path = '${out}/csv', format = 'csv');
sink flat to files (path = '${out}/own', format = 'json', 'timestampFormat' = 'dd.MM.yyyy HH:mm');
"""


def test_text_keeps_the_microseconds_of_a_time(spark: Any, tmp_path: Path) -> None:
    times = ["2026-01-05T08:15:00.123456Z", "2026-01-05T08:15:00.123Z", "1969-12-31T23:59:59.999999Z"]
    given = [
        {"id": i, "at": at, "l": [at, None], "m": {"a": at}, "r": {"at": at, "n": i}} for i, at in enumerate(times)
    ]
    write_json(tmp_path / "in/0.json", [*given, {"id": 3}, {"id": 4, "r": {"n": 4}}], 0)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    with configured(spark, {"spark.sql.legacy.timeParserPolicy": "LEGACY"}):  # Java's old formats have no microseconds
        run_once(compiled(TIMES), spark, tmp_path / "ck", variables=variables, partitions=1)

    def lines(name: str) -> list[str]:
        return [line for path in (tmp_path / "out" / name).glob("part-*") for line in path.read_text().splitlines()]

    assert [json.loads(line) for line in lines("json")] == [*given, {"id": 3}, {"id": 4, "r": {"n": 4}}]
    assert lines("csv") == ["id,at", *(f"{i},{at}" for i, at in enumerate(times)), "3,", "4,"]
    assert [json.loads(line).get("at") for line in lines("own")[:2]] == ["05.01.2026 08:15"] * 2


def test_the_keys_of_a_map_in_json_are_texts(spark: Any) -> None:
    """Spark has the number of a date's days there, and of bytes where the JVM keeps them."""
    from pyspark.sql import functions as F

    keys = {
        "date": ("date'2026-01-05'", "2026-01-05"),
        "timestamp": ("timestamp'2026-01-05 08:15:00Z'", "2026-01-05T08:15:00.000Z"),
        "binary": ("X'ff00'", "/wA="), "double": ("1.5d", "1.5"), "array<int>": ("array(1, 2)", "[1, 2]"),
        "struct<a: int>": ("named_struct('a', 1)", "{1}"), "string": ("'a'", "a"),
    }  # fmt: skip
    rows = spark.sql(f"select {', '.join(f'map({key}, {i}) as c{i}' for i, (key, _) in enumerate(keys.values()))}")
    columns = {f"c{i}": parse_type(f"map<{type}, int>") for i, type in enumerate(keys)}
    texts = with_texts(rows, columns, frozenset())
    [(line,)] = texts.select(F.to_json(F.struct("*"))).collect()
    assert json.loads(line) == {f"c{i}": {text: i} for i, (_, text) in enumerate(keys.values())}


TEXTS = [
    "a", 'a"b', '"', '""', '"x', 'x"', "a,b", "a;b", " a ", "\t", "a\nb", "a\r\nb", "a\rb", "\n", "\\", 'a\\"',
    '\\",\\', "", None, "#a", "null", "'", "\x00a", "\x7f", "\u2028", "\ufeffa", "=1+1", "€😀", '{"a":"b"}',
]  # fmt: skip
BYTES = [b"", b'"\n', b"\xff\x00,", bytes(range(256)), None]


def in_base64(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()


@pytest.mark.parametrize("more", ["", ", target_size = '1 KB'"])
def test_a_text_in_csv_is_read_as_it_is(more: str, spark: Any, tmp_path: Path) -> None:
    """By Python's `csv`, and by vsc, which tells null and an empty text apart."""
    text = f"""
stream s (id bigint, t string, u string, b binary) from files (path = '${{in}}', format = 'json') key id;
sink s to files (path = '${{out}}', format = 'csv'{more});
"""
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out"), "back": str(tmp_path / "back")}
    given: list[dict[str, Any]] = [
        {"id": i, "t": one, "u": TEXTS[-1 - i], "b": BYTES[i % len(BYTES)]} for i, one in enumerate(TEXTS)
    ]
    write_json(tmp_path / "in/0.json", [{**row, "b": in_base64(row["b"])} for row in given], 0)
    run_once(compiled(text), spark, tmp_path / "ck", partitions=1, variables=variables)
    found = []
    for path in (tmp_path / "out").glob("part-*"):
        with path.open(newline="", encoding="utf-8") as file:
            found += list(csv.DictReader(file))
    found.sort(key=lambda row: int(row["id"]))
    assert [(row["t"], row["u"]) for row in found] == [(row["t"] or "", row["u"] or "") for row in given]
    assert [row["b"] for row in found] == [in_base64(row["b"]) or "" for row in given]
    back = """
stream s (id bigint, t string, u string, b binary) from files (path = '${out}', format = 'csv') key id;
sink s to files (path = '${back}', format = 'parquet');
"""
    run_once(compiled(back), spark, tmp_path / "ck2", partitions=1, variables=variables)
    assert sorted(parquet_rows(tmp_path / "back"), key=lambda row: row["id"]) == given


@pytest.mark.parametrize("value", ["x" * 260, "/" * 90, "a\0b", NO_VALUE])
def test_a_text_that_cannot_name_a_folder_is_named(value: str, spark: Any, tmp_path: Path) -> None:
    text = """
stream s (id bigint, k string, n int) from files (path = '${in}', format = 'json') key id;
sink s to files (path = '${out}', format = 'json', partition_by = (k));
"""
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    write_json(tmp_path / "in/0.json", [{"id": 1, "k": "x" * 250}, {"id": 7, "k": value}], 0)
    with pytest.raises(Exception) as error:
        run_once(compiled(text), spark, tmp_path / "ck", partitions=1, variables=variables)
    known = translated(error.value)
    assert known is not None
    assert (known.code, known.message[:50]) == ("VSC920", "the sink of 's' (line 3): the row of id = 7: k = '")
    assert "cannot name a folder" in known.message
