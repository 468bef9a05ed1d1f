"""The clock of the input through all tasks of a query: the same results, however its input is cut and spread."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.epochs import EpochRow
from tests.oracle.playing import by_key, chunks, shown_records
from tests.oracle.stores import Stores
from tests.runtime.spark.all_stages import OPTIONS, AllStages, File
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.local import LocalRuntime
from vsc.runtime.metrics import Metrics

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


def expected(plan: Plan, files: list[File]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the test driver makes of it with one partition, by node and key, and what it counts."""
    runtime = LocalRuntime(plan, Stores(), [sink.node for sink in plan.sinks], 1, OPTIONS)
    found = [runtime.process(chunks(plan, [row for file in files for row in file.rows])), runtime.drain()]
    sent: dict[str, Any] = {sink.node: [] for sink in plan.sinks}
    for batches in found:
        for name, batch in batches.items():
            sent[name] += shown_records(batch)
    return {name: by_key(rows) for name, rows in sent.items()}, runtime.metrics.flat()


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
        query.run({"s": chance.randint(0, 3), "t": chance.randint(0, 3)}, crash=chance.random() < 0.2)
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
    sent = {
        node: by_key([row for batch in batches for row in shown_records(batch)]) for node, batches in query.sent.items()
    }
    assert (sent, metrics[0].flat()) == expected(plan, files)
