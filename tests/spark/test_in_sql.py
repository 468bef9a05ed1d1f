"""Plans without state: the rows, counters and errors of Python's stage 0, by Spark SQL alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.spark import epoch as epoch_module
from vsc.runtime.spark import pipeline as pipeline_module
from vsc.runtime.spark import query as query_module
from vsc.runtime.spark.counters import EpochReport
from vsc.runtime.spark.in_sql import runs_in_sql

pytestmark = pytest.mark.spark

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
S = [
    {"id": "a", "n": 1, "words": ["x", "-", "y"], "at": 5}, {"id": None, "n": 2, "words": [], "at": 6},
    {"id": "b", "n": 3, "words": None, "at": 4}, {"id": "c", "n": 4, "words": ["z"], "at": None},
    {"id": "d", "n": 5, "words": ["z", None], "at": -7}, {"id": "b", "n": "x", "words": ["z"], "at": 9},
    {"id": "e", "n": 9, "words": ["y", "x"], "at": 8}, {"id": "b", "n": None, "words": ["z"], "at": 9},
    {"id": "e", "n": 7, "words": "no", "at": 8},
]  # fmt: skip
DROPPED = {
    "s": {"negative_timestamp": 1, "null_key": 1, "null_timestamp": 1, "unreadable": 2},
    "by_word": {"null_join_key": 1},
    "keyed": {"null_join_key": 1},
}


def inputs(folder: Path, rows: list[dict[str, Any]]) -> dict[str, str]:
    write_json(folder / "in" / "s" / "f.json", rows, 0)
    (folder / "in" / "p").mkdir(parents=True)
    times = pa.array([0, 1_500_000, 2_000_001], pa.timestamp("us", "UTC"))
    table = pa.table({"id": ["k", None, "a"], "n": pa.array([70, 80, 90], pa.int32()), "at": times})
    pq.write_table(table, folder / "in" / "p" / "f.parquet")
    return {"in": str(folder / "in"), "out": str(folder / "out")}


def test_equal_to_python_in_rows_and_counters(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = compiled(TOPOLOGY)
    assert runs_in_sql(plan)
    seen: dict[str, Any] = {}
    for way in ("sql", "python"):
        folder = tmp_path / way
        if way == "python":
            for module in (query_module, pipeline_module):
                monkeypatch.setattr(module, "runs_in_sql", lambda plan: False)
        else:
            monkeypatch.setattr(epoch_module, "packed", None)  # nothing here fails: Python is not asked
        (report,) = run_once(plan, spark, folder / "ck", variables=inputs(folder, S))
        monkeypatch.undo()
        sinks = {name: parquet_rows(folder / "out" / name) for name in ("by_word", "large", "both")}
        seen[way] = sinks, report.read, report.written, report.metrics.as_dict()
    assert seen["sql"] == seen["python"]
    sinks, read, written, metrics = seen["sql"]
    assert read == {"s": 9, "p": 3}
    assert written == {"sink-0": 5, "sink-1": 2, "sink-2": 4, "sink-3": 4}
    assert metrics["dropped_records"] == DROPPED
    assert [(row["word"], row["id"], row["_timestamp"]) for row in sinks["by_word"]] == [
        ("x", "a", 5), ("y", "a", 5), ("y", "e", 8), ("x", "e", 8), ("z", "b", 9),
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
    plan = compiled(FAILING)
    assert runs_in_sql(plan)
    (report,) = run_once(plan, spark, tmp_path / "ck", variables=failing, on_error="drop")
    assert [row["n"] for row in parquet_rows(tmp_path / "out" / "only")] == [5, 2]
    assert report.metrics.as_dict()["dropped_records"] == {"tenth": {"expression_failed": 1}}


def test_a_failure_names_the_node_and_the_record(spark: Any, tmp_path: Path, failing: dict[str, str]) -> None:
    with pytest.raises(Exception, match=r"'tenth': 10 / n failed on record 2 of .*f\.json of source 's'"):
        run_once(compiled(FAILING), spark, tmp_path / "ck", variables=failing)


def test_a_bad_row_stops_the_run_where_it_is_to(spark: Any, tmp_path: Path) -> None:
    variables = inputs(tmp_path, S)
    with pytest.raises(Exception, match=r"source 's': row 6 of .*f\.json cannot be read \(unreadable\)"):
        run_once(compiled(TOPOLOGY), spark, tmp_path / "ck", variables=variables, on_bad_row="fail")
    assert parquet_rows(tmp_path / "out" / "by_word") == []


def test_no_python_worker_sees_a_row(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError("a row went through Python")

    monkeypatch.setattr("pyspark.sql.DataFrame.mapInArrow", refuse)
    reports: list[EpochReport] = run_once(compiled(TOPOLOGY), spark, tmp_path / "ck", variables=inputs(tmp_path, S))
    assert [sum(r.written.values()) for r in reports] == [15]
