"""The clock of the input through all tasks of a query: the same results, however its input is cut and spread."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.oracle.epochs import EpochRow
from tests.oracle.playing import by_key, chunks, shown_records
from tests.oracle.stores import Stores
from tests.runtime.spark.all_stages import OPTIONS, AllStages, File
from tests.runtime.spark.support import parquet_rows, write_json
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.local import LocalRuntime
from vsc.runtime.metrics import Metrics
from vsc.runtime.records import Batch
from vsc.runtime.spark.base.job import Run
from vsc.runtime.spark.base.options import resolve_plan
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.exchange.output import Unpack
from vsc.runtime.spark.query.preflight import prepare
from vsc.runtime.spark.query.run import run
from vsc.runtime.spark.report.displays import display
from vsc.runtime.spark.upgrade import Upgrade, upgrade
from vsc.runtime.spark.upgrade import prepare as prepare_upgrade

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
topology t (clock = 'input');
stream s (k string, c string, v bigint, at bigint) from memory () timestamp at;
table t (k string, w bigint, at bigint) from memory () key k timestamp at
materialize versioned (retention = 50 milliseconds);
"""
JOINED = "stream j = left join s with t on k grace 5 milliseconds select c, v, w;\n"
TOPOLOGIES = {
    "grace": SOURCES + JOINED,
    "suppressed": SOURCES
    + JOINED
    + """
table sums = aggregate j group by c select count(*) as n, sum(v) as total, sum(w) as weight;
table calm = suppress sums until time limit 7 milliseconds;
""",
    "windows": SOURCES
    + JOINED
    + """
table days = aggregate j group by c window tumbling (size = 10 milliseconds, grace = 2 milliseconds) emit final
    select count(*) as n, sum(w) as weight;
stream found = to_stream days;
table all_days = aggregate found group by n select collect_list(weight) as weights;
table sessions = aggregate s group by k window session (gap = 4 milliseconds, grace = 1 millisecond) emit final
    select count(*) as n;
""",
    "kept": SOURCES
    + """
stream some = filter s where v % 3 > 0;
stream once = distinct some by c within 9 milliseconds;
table open = aggregate once group by k window tumbling (size = 10 milliseconds, grace = 3 milliseconds)
    select count(*) as n;
stream u = left join some with t on c select v, w;
table calm = suppress open until window closes;
""",
}


def plan_of(text: str) -> Plan:
    names = [line.split()[1] for line in text.splitlines() if line.startswith(("stream", "table")) and " = " in line]
    return compile_topology(text + "".join(f"sink {n} to noop ();\n" for n in names), path="t.vdsl", variables={})


def history(chance: random.Random) -> list[File]:
    """Files of a source do not overlap in time, as then the cut would decide what is late."""
    found = []
    for source in ("s", "t"):
        start, offset = 0, 0
        for number in range(chance.randint(1, 6)):
            rows: list[EpochRow] = []
            for _ in range(chance.choice((0, 1, 3, 10))):
                at = start + chance.randint(0, 30)
                row = {"k": chance.choice("abcde"), "c": chance.choice("xyz"), "v": offset, "w": offset, "at": at}
                rows.append(EpochRow(source, f"{number:02}", len(rows) + 1, row, at))
                offset += 1
            start = max((row.timestamp or 0 for row in rows), default=start) + chance.choice((0, 1, 20))
            found.append(File(source, f"{number:02}", rows))
    return found


def driven(plan: Plan, files: list[File]) -> tuple[dict[str, Batch], dict[str, Any]]:
    """What the test driver makes of it with one partition, by node, and what it counts."""
    runtime = LocalRuntime(plan, Stores(), [sink.node for sink in plan.sinks], 1, OPTIONS)
    found = [runtime.process(chunks(plan, [row for file in files for row in file.rows])), runtime.drain()]
    sent: dict[str, list[Batch]] = {}
    for batches in found:
        for name, batch in batches.items():
            sent.setdefault(name, []).append(batch)
    return {name: Batch.concat(batches) for name, batches in sent.items()}, runtime.metrics.flat()


def by_names(plan: Plan, node: str, rows: list[dict[str, Any]]) -> dict[Any, list[Any]]:
    """Rows by their key."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault(tuple(row[column.name] for column in plan.node(node).schema.key), []).append(row)
    return found


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("seed", range(3))
def test_cuts_restarts_and_partitions_do_not_show(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(f"{name} {seed}")
    plan, files = plan_of(TOPOLOGIES[name]), history(chance)
    query = AllStages(plan, files, chance.randint(1, 4), tmp_path / "0", monkeypatch)
    metrics: list[Metrics] = []
    while query.unread:
        query.run({"s": chance.randint(0, 3), "t": chance.randint(0, 3)}, crash=chance.random() < 0.4)
        metrics.append(query.reports[-1].metrics)
        if chance.random() < 0.3:
            query.restart()
        elif chance.random() < 0.3:
            query = query.carried(chance.randint(1, 4), tmp_path / str(len(metrics)))
    query.run({}, wake=True)
    query.run({}, drain=True)
    metrics += [report.metrics for report in query.reports[-2:]]
    for one in metrics[1:]:
        metrics[0].merge(one)
    sent = {name: by_key(shown_records(Batch.concat(batches))) for name, batches in query.sent.items() if batches}
    whole, counted = driven(plan, files)
    assert sent == {name: by_key(shown_records(batch)) for name, batch in whole.items()}
    assert metrics[0].flat() == counted


@pytest.mark.parametrize(("clock", "opened"), [("records", [1, 1]), ("input", [2, 1])])
def test_only_where_something_waits_for_time_partitions_without_records_are_opened(
    clock: Any, opened: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        SOURCES
        + JOINED
        + """
table seen = aggregate s group by k select max(c) as c;
stream changes = to_stream seen;
table counts = aggregate changes group by c select count(*) as n;
"""
    )
    query = AllStages(replace(plan_of(text), clock=clock), [], 2, tmp_path, monkeypatch)
    query.run({})  # every partition is called at first
    for at, key in enumerate("ab"):
        query.feed(File("s", key, [EpochRow("s", key, 1, {"k": key, "c": key, "v": 1, "at": at}, at)]))
        query.run({"s": 1})
        stages = [place[0] for place in query.reports[-1].state]
        assert [stages.count(stage) for stage in "12"] == opened


OF_FILES = TOPOLOGIES["windows"].replace(
    "from memory ()", "from files (path = '${in}/s', format = 'json', 'maxFilesPerTrigger' = '1')", 1
).replace("from memory ()", "from files (path = '${in}/t', format = 'json', 'maxFilesPerTrigger' = '1')", 1) + "".join(
    f"sink {n} to files (path = '${{out}}/{n}', format = 'parquet');\n" for n in ("j", "days", "all_days")
)


@pytest.mark.spark
@pytest.mark.slow
def test_a_query_that_is_carried_over_in_the_middle(spark: SparkSession, tmp_path: Path) -> None:
    plan, files = compile_topology(OF_FILES, path="t.vdsl"), [file for file in history(random.Random(6)) if file.rows]
    for order, file in enumerate(files):
        write_json(tmp_path / f"in/{file.source}/{file.name}.json", [row.row for row in file.rows], order)
    whole = {
        name: by_names(
            plan, name, Unpack(plan.node(name).schema, name != "j", name != "j", False).rows(batch).to_pylist()
        )
        for name, batch in driven(plan, files)[0].items()
    }
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}

    def ran(checkpoint: str, partitions: int, *outs: str) -> dict[str, Any]:
        """A run that writes to the last of `outs`, and what is in all of them, one after the other."""
        given = {**variables, "out": str(tmp_path / outs[-1])}
        job = Run(plan, str(tmp_path / checkpoint), given, partitions, drain=True)
        run(prepare(job), spark, display("none", sys.stderr))
        names = [sink.node for sink in plan.sinks]
        rows = {name: [row for out in outs for row in parquet_rows(tmp_path / out / name)] for name in names}
        return {name: by_names(plan, name, found) for name, found in rows.items()}

    assert ran("old", 3, "out") == whole
    opened = Checkpoint.open(spark, str(tmp_path / "old"), plan, None)
    waited = [report.epoch for report in opened.reports() if any(size.steps for size in report.state.values())]
    ends = Ends(resolve_plan(plan, variables))
    ends.begin(spark, opened.id)
    opened.go_back(ends.writers, waited[-1])
    job = Upgrade(plan, str(tmp_path / "old"), str(tmp_path / "new"), variables, 2)
    upgrade(prepare_upgrade(job), spark, lambda _: None)
    assert ran("new", 2, "out", "rest") == whole
