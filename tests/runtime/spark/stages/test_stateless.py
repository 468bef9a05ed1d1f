"""Plans without state on Spark: rows, counters and errors; columns that nothing reads stay in their files."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.plan.read_columns import read_columns
from vsc.runtime.spark.base.options import Options, resolve_plan
from vsc.runtime.spark.connectors.file_rows import file_rows

pytestmark = [pytest.mark.spark, pytest.mark.release]

TOPOLOGY = """
stream s (id string, n bigint, words array<string>, at bigint) from files (path = '${in}/s', format = 'json')
  key id timestamp at;
stream p (id string, n int, at timestamp) from files (path = '${in}/p', format = 'parquet') timestamp at;
stream word = explode s by words as word;
stream by_word = rekey word by nullif(word, '-') as word;
stream more = map s select n + 1 as more, event_time() as t, id as key;
stream large = filter more where more > 2;
stream two = map large select more;
stream keyed = rekey p by id;
stream three = map keyed select cast(n as bigint) as more;
stream moved = rekey two by key as id;
stream moved_on = map moved select more;
stream both = merge moved_on, three;
sink by_word to files (path = '${out}/by_word', format = 'parquet', with_timestamp = true);
sink large to files (path = '${out}/large', format = 'parquet', with_timestamp = true);
sink both to files (path = '${out}/both', format = 'parquet');
sink both to noop ();
"""
S: list[dict[str, Any]] = [
    {"id": "a", "n": 1, "words": ["x", "-", "y"], "at": 5}, {"id": None, "n": 2, "words": [], "at": 6},
    {"id": "b", "n": 3, "words": None, "at": 4}, {"id": "c", "n": 4, "words": ["z"], "at": None},
    {"id": "d", "n": 5, "words": ["z", None], "at": -7}, {"id": "b", "n": "x", "words": ["z"], "at": 9},
    {"id": "e", "n": 9, "words": ["y", "x"], "at": 8}, {"id": "b", "n": None, "words": ["z"], "at": 9},
    {"id": "e", "n": 7, "words": "no", "at": 8},
]  # fmt: skip
DROPPED = {
    "s": {"negative_timestamp": 1, "null_key": 1, "null_timestamp": 1, "unreadable": 2},
}


def inputs(folder: Path, rows: list[dict[str, Any]]) -> dict[str, str]:
    write_json(folder / "in" / "s" / "f.json", rows, 0)
    (folder / "in" / "p").mkdir(parents=True)
    times = pa.array([0, 1_500_000, 2_000_001], pa.timestamp("us", "UTC"))
    table = pa.table({"id": ["k", None, "a"], "n": pa.array([70, 80, 90], pa.int32()), "at": times})
    pq.write_table(table, folder / "in" / "p" / "f.parquet")
    return {"in": str(folder / "in"), "out": str(folder / "out")}


@pytest.mark.seam("steps without state")
def test_rows_and_counters(spark: Any, tmp_path: Path) -> None:
    (report,) = run_once(compiled(TOPOLOGY), spark, tmp_path / "ck", variables=inputs(tmp_path, S))
    assert report.read == {"s": 9, "p": 3}
    assert report.written == {"sink-0": 6, "sink-1": 2, "sink-2": 5, "sink-3": 5}
    assert report.metrics.as_dict()["dropped_records"] == DROPPED
    by_word = parquet_rows(tmp_path / "out" / "by_word")
    found = [(row["word"], row["id"], row["_timestamp"]) for row in by_word]
    assert sorted(found, key=lambda row: row[0] or "") == [
        (None, "a", 5), ("x", "a", 5), ("x", "e", 8), ("y", "a", 5), ("y", "e", 8), ("z", "b", 9),
    ]  # fmt: skip


FAILING = """
stream s (id string, n bigint, at bigint) from files (path = '${in}/s', format = 'json') key id timestamp at;
stream tenth = map s select 10 / n as part, n;
stream only = map tenth select n;
sink only to files (path = '${out}/only', format = 'parquet');
"""


@pytest.fixture
def failing(tmp_path: Path) -> dict[str, str]:
    rows = [{"id": "a", "n": n, "at": at} for at, n in enumerate((5, 0, 2))]
    write_json(tmp_path / "in" / "s" / "f.json", rows, 0)
    return {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}


def test_a_record_that_fails_is_dropped_although_nobody_reads_what_failed(
    spark: Any, tmp_path: Path, failing: dict[str, str]
) -> None:
    (report,) = run_once(compiled(FAILING), spark, tmp_path / "ck", variables=failing, on_error="drop")
    assert [row["n"] for row in parquet_rows(tmp_path / "out" / "only")] == [5, 2]
    assert report.metrics.as_dict()["dropped_records"] == {"tenth": {"expression_failed": 1}}


def test_a_failure_names_the_node_and_the_record(spark: Any, tmp_path: Path, failing: dict[str, str]) -> None:
    with pytest.raises(Exception, match=r"'tenth': 10 / n failed on record 2 of .*f\.json of source 's'"):
        run_once(compiled(FAILING), spark, tmp_path / "ck", variables=failing)


def test_a_bad_row_stops_the_run_where_it_is_to(spark: Any, tmp_path: Path) -> None:
    variables = inputs(tmp_path, S)
    told = r"source 's': row 6 of .*f\.json cannot be read: column 'n' \(bigint\) cannot hold 'x'"
    with pytest.raises(Exception, match=told):
        run_once(compiled(TOPOLOGY), spark, tmp_path / "ck", variables=variables, on_bad_row="fail")
    assert parquet_rows(tmp_path / "out" / "by_word") == []


READ = """
stream s (id string, n bigint, note string, x double, unread string, at bigint)
  from files (path = '${in}', format = 'parquet') key id timestamp at;
table r (id string, rate double) from files (path = '${in}', format = 'parquet') key id;
stream near = filter s where n > 3;
stream joined = join near with r select x * r.rate as y;
stream noted = rekey near by note;
table c = aggregate noted group by note select count(*) as c;
sink joined to noop (); sink c to noop ();
"""


def test_what_nobody_reads_stays_in_its_file(spark: Any, tmp_path: Path) -> None:
    plan = compiled(READ)
    assert read_columns(plan, "s") == {"id", "n", "note", "x", "at"}
    assert read_columns(plan, "r") == {"id", "rate"}
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "f.parquet")
    source = resolve_plan(plan, {"in": str(tmp_path)}).node("s")
    at_once: Any = SimpleNamespace(readStream=spark.read, _jvm=spark._jvm, _jsc=spark._jsc)  # a stream has no file scan
    frame = file_rows(at_once, source.source, Options.of_source(source), read_columns(plan, "s"))
    (read,) = re.findall(r"ReadSchema: (\S+)", frame._jdf.queryExecution().toString())
    assert read == "struct<id:string,n:bigint,note:string,x:double,at:bigint,_tmp_metadata_row_index:bigint>"


def test_a_sink_reads_every_column() -> None:
    plan = compiled(READ + "sink near to noop ();")
    assert read_columns(plan, "s") == {"id", "n", "note", "x", "unread", "at"}
