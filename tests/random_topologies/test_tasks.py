"""One clock (D25), through all tasks of a query: sources that are read at different speeds do not show either.

Random topologies. What a source brings is in groups of files, one group behind the other in time; each epoch takes some
groups of each source, so that records and steps wait. Set ``VSC_TASKS`` to run more seeds (``1000``) or others
(``5000:5100``) than the usual few.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import by_key
from tests.oracle.epochs import EpochRow
from tests.oracle.playing import shown_records
from tests.random_topologies.partitions import Case, Run
from tests.random_topologies.records import History
from tests.random_topologies.seeds import seeds
from tests.runtime.spark.all_stages import AllStages, File
from vsc.runtime.metrics import HELD_RECORDS, Metrics
from vsc.runtime.records import QUIET, Batch
from vsc.runtime.spark.stages import routing

APART = 1000
"""How far the times of a group are from those of the group before, in ms."""


def grouped(epochs: History) -> History:
    """The epochs as groups of files, without the steps of `quiet`, which no file brings."""
    found = []
    for number, epoch in enumerate(epochs):
        rows: list[EpochRow] = []
        counts: Counter[tuple[str, str]] = Counter()
        for row in sorted((row for row in epoch if row.source != QUIET), key=lambda row: row.offset):
            counts[row.source, row.part] += 1
            later = row._replace(part=f"{number}/{row.part}", offset=counts[row.source, row.part])
            if row.timestamp is not None:
                at = row.timestamp + number * APART
                later = later._replace(row=type(row.row)({**row.row, "at": at}), timestamp=at)
            rows.append(later)
        found.append(rows)
    return found


def observing(case: Case) -> Case:
    """The case with a sink for each of its nodes that may have one."""
    plan = case.plan
    shown = {sink.node for sink in plan.sinks}
    may = (node for node in plan.nodes if node.part_of is None and not node.operation.global_)
    more = (node.name for node in may if node.name not in shown)
    return replace(case, text=case.text + "".join(f"sink {name} to memory ();\n" for name in more))


@pytest.mark.quick(1)
@pytest.mark.long
@pytest.mark.parametrize("seed", seeds("VSC_TASKS", 2))
def test_sources_read_at_different_speeds_do_not_show(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(routing, "LEAST_BYTES", 0)  # all blobs in files
    chance, case = random.Random(seed), observing(Case.of(seed))
    epochs = grouped(case.epochs)
    whole = replace(
        case,
        epochs=[[row for epoch in epochs for row in epoch]],
        partitions=[1],
        restarts=[False],
        drains=[True],
        now=None,
    )
    expected = Run(whole)
    files = [
        File(source, part, [row for row in epoch if (row.source, row.part) == (source, part)])
        for epoch in epochs
        for source, part in dict.fromkeys((row.source, row.part) for row in epoch)
    ]
    query, metrics = AllStages(case.plan, files, chance.randint(1, 6), tmp_path / "0", monkeypatch), Metrics()
    while query.unread:
        takes: dict[str, int] = {}
        for source in {file.source for file in files}:
            left = [file.name.partition("/")[0] for file in query.left(source)]
            some = list(dict.fromkeys(left))[: chance.randint(0, 2)]
            takes[source] = sum(name in some for name in left)
        query.run(takes, crash=chance.random() < 0.4)
        metrics.merge(query.reports[-1].metrics)
        if chance.random() < 0.3:
            query.restart()
        elif chance.random() < 0.3:
            query = query.carried(chance.randint(1, 6), tmp_path / str(query.partitions) / str(len(query.reports)))
    for drain in (False, True):
        query.run({}, drain=drain, wake=not drain)
        metrics.merge(query.reports[-1].metrics)
    letters = {node.name for node in case.plan.dead_letters}
    sent: dict[str, Any] = {}
    for name, batches in query.sent.items():
        found = shown_records(Batch.concat(batches)) if batches else []
        sent[name] = sorted(map(repr, found)) if name in letters else by_key(found)
    wanted = {
        name: sorted(map(repr, found)) if name in letters else by_key(found)
        for name, found in expected.records.items()
        if name in sent
    }
    own = {node.name for node in case.plan.nodes if node.part_of is None}  # not what a `reorder` lets go on
    assert {name: found for name, found in sent.items() if found and name in own} == wanted
    counted = {name: count for name, count in metrics.as_dict().items() if name != HELD_RECORDS}
    assert counted == expected.found({}).counters
