"""Stateless nodes ahead of state: computed by Spark SQL, with the records, counters and errors of stage 0 in Python."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.generated.records import RecordSizes, history
from tests.generated.seeds import seeds
from tests.generated.topology import Sizes, generate
from tests.spark.files import write_rows
from tests.spark.packed import packed, rows_of
from tests.spark.support import compiled, parquet_rows, run_once, write_json
from tests.spark.test_generated import text_of
from vsc.plan.nodes import Plan, Source
from vsc.runtime.errors import BadRowError, ExpressionError
from vsc.runtime.operators.task import RunOptions
from vsc.runtime.spark import pipeline as pipeline_module
from vsc.runtime.spark.sql_prefix import prefix_of

TOPOLOGY = """
stream s (id string, n bigint, x double, note string, unread string, seen bigint, at bigint)
  from files (path = '${in}/s', format = 'json') key id timestamp coalesce(at, seen);
table r (code string, rate double, at bigint) from files (path = '${in}/r', format = 'json') key code timestamp at;
stream kept = filter s where n > 0 and note <> 'skip';
stream twice = map kept select x * 2 as y, note, n;
stream priced = join twice with r on nullif(upper(note), '-') as code select y, rate;
stream noted = rekey kept by note;
stream moved = map noted select x / 4 as y;
stream both = merge moved, more;
stream more = map shifted select y;
stream shifted = rekey twice by note;
sink priced to files (path = '${out}/priced', format = 'parquet', with_timestamp = true);
sink both to files (path = '${out}/both', format = 'parquet', with_timestamp = true);
"""
S: list[dict[str, Any]] = [
    {"id": "a", "n": 1, "x": 1.5, "note": "e", "at": 10},
    {"id": "b", "n": -1, "x": 2.5, "note": "e", "at": 100},  # dropped, and what comes later takes its place from it
    {"id": "c", "n": 2, "x": 3.5, "note": "e", "at": 20},
    {"id": "d", "n": 3, "x": 4.5, "note": "-", "at": 110},  # has no code
    {"id": "e", "n": 4, "x": 5.5, "note": None, "at": 111},
    {"id": None, "n": 5, "note": "e", "at": 500},
    {"id": "f", "n": "x", "note": "e", "at": 500},
    {"id": "g", "n": 5, "note": "e"},
    {"id": "h", "n": 5, "note": "e", "at": -3},
    {"id": "i", "n": 6, "x": None, "note": "f", "seen": 112},
]  # fmt: skip
R = [{"code": "E", "rate": 2.0, "at": 50}, {"code": "F", "rate": 3.0, "at": 60}]
DROPPED = {
    "s": {"unreadable": 1, "null_key": 1, "null_timestamp": 1, "negative_timestamp": 1},
    "priced": {"null_join_key": 1},
}


def inputs(folder: Path) -> dict[str, str]:
    write_json(folder / "in" / "s" / "f.json", S, 0)
    write_json(folder / "in" / "r" / "f.json", R, 0)
    return {"in": str(folder / "in"), "out": str(folder / "out")}


@pytest.mark.parametrize(
    ("text", "computed"),
    [
        ("stream o = filter s where n > 3; stream u = map o select x * 2 as x, upper(k) as u;", {"o", "u"}),
        ("stream o = map s select n + 1 as n; stream u = filter o where n > 3;", {"o", "u"}),
        ("stream o = filter s where n > 3; stream u = map o select date_add(at, 1) as d;", {"o"}),
        ("stream o = explode s by split(k, '-') as w; stream u = filter o where w > 'a';", set()),
        ("stream o = map s select x % 2 as x; stream u = map o select event_time() as t, x;", {"o", "u"}),
    ],
)  # fmt: skip
def test_what_cannot_fail_is_computed_by_spark(text: str, computed: set[str]) -> None:
    source = "stream s (k string, n bigint, x double, at timestamp) from files (path = 'p', format = 'csv')"
    plan = compiled(
        f"{source} key k timestamp at; {text} table c = aggregate u group by k select count(*) as c; sink c to noop ();"
    )
    prefix = prefix_of(plan, "s")
    assert (set() if prefix is None else {name for name in prefix.nodes if "#" not in name}) == computed


def evaluator_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError("an expression was evaluated in Python")

    for module in ("stateless", "source_task"):
        monkeypatch.setattr(f"vsc.runtime.operators.{module}.compute", refuse)


@pytest.mark.spark
def test_the_same_without_an_expression_in_python(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, variables = compiled(TOPOLOGY), inputs(tmp_path)
    prefix = prefix_of(plan, "s")
    assert prefix is not None
    assert prefix.nodes == set(plan.stages[0].nodes) - {"s", "r"}
    expected = packed(spark, plan, "s", variables, None, RunOptions())
    evaluator_is_not_called(monkeypatch)
    found = packed(spark, plan, "s", variables, prefix, RunOptions())
    assert found.records == expected.records
    assert sum(map(len, found.records.values())) == 11
    for name in ("read", "written", "metrics", "clocks", "digests"):
        assert getattr(found.report, name) == getattr(expected.report, name), name
    assert found.report.metrics.as_dict()["dropped_records"] == DROPPED
    assert found.report.clocks == {"s": 112}


@pytest.mark.spark
def test_a_bad_row_stops_the_run_where_it_is_to(spark: Any, tmp_path: Path) -> None:
    plan, variables = compiled(TOPOLOGY), inputs(tmp_path)
    said = []
    for prefix in (prefix_of(plan, "s"), None):
        with pytest.raises(BadRowError) as error:
            packed(spark, plan, "s", variables, prefix, RunOptions(on_bad_row="fail"))
        said.append(str(error.value))
    assert said[0] == said[1]
    assert re.search(r"source 's': row 7 of .*f\.json cannot be read \(unreadable\)", said[0]), said


FAILING: list[dict[str, Any]] = [
    {"id": "a", "n": 1, "at": 5},
    {"id": "b", "n": 2**62, "at": 9},  # its product fails
    {"id": None, "n": 1, "at": 90},
    {"id": "c", "n": 2**63 - 1, "at": 3},  # and so does its sum, ahead of it
    {"id": "d", "n": 4, "at": 2**62},  # has no event time
    {"id": "e", "n": -1, "at": 30},  # is dropped, and so does not fail
    {"id": "f", "n": 0, "at": 7},
]  # fmt: skip
DOUBTFUL = """
stream s (id string, n bigint, at bigint) from files (path = '${in}', format = 'json') key id timestamp at * 4;
stream more = map s select n + 1 as n;
stream some = filter more where n > 0;
stream twice = map some select n * 2 as twice, event_time() as t;
stream words = explode some by split(id, '') as word;
table c = aggregate twice group by id select max(twice) as twice;
sink c to noop (); sink words to noop (); sink some to files (path = 'out', format = 'parquet');
"""


@pytest.mark.spark
def test_rows_on_which_an_expression_fails(spark: Any, tmp_path: Path) -> None:
    plan, variables = compiled(DOUBTFUL), {"in": str(tmp_path)}
    write_json(tmp_path / "f.json", FAILING, 0)
    prefix = prefix_of(plan, "s")
    assert prefix is not None and prefix.nodes == {"more", "some", "twice"}
    found, expected = (packed(spark, plan, "s", variables, p, RunOptions(on_error="drop")) for p in (prefix, None))
    assert found.records == expected.records
    assert found.report.digests == expected.report.digests
    assert found.report.clocks == expected.report.clocks == {"s": 120}
    dropped = {"s": {"null_key": 1, "expression_failed": 1}, "more": {"expression_failed": 1}}
    assert found.report.metrics.as_dict()["dropped_records"] == dropped | {"twice": {"expression_failed": 1}}
    assert found.report.metrics.as_dict() == expected.report.metrics.as_dict()
    said = []
    for p in (prefix, None):
        with pytest.raises(
            ExpressionError, match=r"'s': at \* 4 failed on record 5 of .*f\.json of source 's'"
        ) as error:
            packed(spark, plan, "s", variables, p, RunOptions())
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.spark
def test_on_spark(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as by the way through Python, and a checkpoint that was begun that way goes on."""
    plan = compiled(TOPOLOGY)
    seen: dict[str, Any] = {}
    for way in ("sql", "python"):
        folder = tmp_path / way
        variables = inputs(folder)
        if way == "python":
            monkeypatch.setattr(pipeline_module, "prefix_of", lambda plan, source: None)
        (report,) = run_once(plan, spark, folder / "ck", variables=variables, partitions=2)
        monkeypatch.undo()
        write_json(folder / "in" / "s" / "g.json", [{"id": "j", "n": 9, "x": 0.5, "note": "e", "at": 200}], 1)
        (later,) = run_once(plan, spark, folder / "ck", variables=variables)
        sinks = {name: parquet_rows(folder / "out" / name) for name in ("priced", "both")}
        seen[way] = sinks, [(r.read, r.written, r.metrics.as_dict(), r.clocks) for r in (report, later)]
    assert seen["sql"] == seen["python"]
    sinks, ((read, written, metrics, _), _) = seen["sql"]
    # Row c is behind the rate although its own time, 20, is before: the place of b, which is dropped, is its place.
    assert [(row["code"], row["y"], row["rate"], row["_timestamp"]) for row in sinks["priced"]] == [
        ("E", 7.0, 2.0, 20), ("F", None, 3.0, 112), ("E", 1.0, 2.0, 200),
    ]  # fmt: skip
    assert read == {"s": 10, "r": 2}
    assert written["sink-0"] == 2
    assert metrics["dropped_records"] == DROPPED


@pytest.mark.spark
def test_columns_that_nobody_reads_stay_in_their_file(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"k": ["a"], "n": [1], "m": [2], "at": [3]}), tmp_path / "in" / "f.parquet")
    plan = compiled("""
        stream s (k string, n bigint, m bigint, at bigint) from files (path = '${in}', format = 'parquet') timestamp at;
        stream u = map s select k; table c = aggregate u group by k select count(*) as c; sink c to noop ();
    """)
    frame = rows_of(spark, plan, "s", {"in": str(tmp_path / "in")}, prefix_of(plan, "s"))
    (read,) = re.findall(r"ReadSchema: (\S+)", frame._jdf.queryExecution().toString())
    assert read == "struct<k:string,at:bigint,_tmp_metadata_row_index:bigint>"


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds("VSC_SPARK_TOPOLOGIES", 3))
def test_random_topologies(spark: Any, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    sizes = Sizes(derived=(3, 8))
    while True:
        topology = generate(rng, sizes)
        formats = {source.name: rng.choice(("json", "parquet")) for source in topology.sources}
        plan = compiled(text_of(topology, formats))
        prefixes = {name: prefix for name in sources(plan) if (prefix := prefix_of(plan, name)) is not None}
        if prefixes:
            break
    (epoch,) = history(rng, topology, RecordSizes(epochs=(1, 1), parts=(1, 3), rows=(1, 30)))
    for source in topology.sources:
        (tmp_path / "in" / source.name).mkdir(parents=True)
    write_rows(plan, tmp_path / "in", epoch, 0, formats)
    variables, options = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}, RunOptions(on_error="drop")
    for name, prefix in prefixes.items():
        expected = packed(spark, plan, name, variables, None, options)
        found = packed(spark, plan, name, variables, prefix, options)
        assert found.records == expected.records
        assert found.report.as_dict() | {"seconds": {}} == expected.report.as_dict() | {"seconds": {}}
        assert found.report.digests == expected.report.digests


def sources(plan: Plan) -> list[str]:
    return [node.name for node in plan.nodes if isinstance(node.operation, Source)]
