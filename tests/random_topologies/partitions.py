"""One clock (D25): what comes out, is counted and kept is the same on any number of partitions.

A case is a topology, its input cut into epochs, and how they are run: on how many partitions each (another number is an
upgrade in between), after a restart or not, with the end of the input behind it or not. `Case.difference` compares it
with one partition that takes the rows one by one, as the test driver does. What bounds in records or bytes emit is a
partition's own, so no case has them.

Of results that are wrong on all partitions alike that says nothing: so what one partition gives is compared with the
oracle (`tests.oracle.by_input`), which spells out what the clock decides.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tests.oracle import Stores, by_key, by_records, chunks
from tests.oracle.by_input import InputOracle
from tests.oracle.epochs import EpochRow, order_epoch
from tests.oracle.playing import shown_records
from tests.random_topologies.case import STEPS
from tests.random_topologies.records import History, RecordSizes, history
from tests.random_topologies.shapes import ALL_KEYS, Generated
from tests.random_topologies.topology import Sizes, generate
from tests.runtime.operators.carry.carrying import carried
from vsc.compiler import compile_topology
from vsc.plan.nodes import Clock, Plan
from vsc.runtime.local import LocalRuntime
from vsc.runtime.metrics import HELD_RECORDS, Dropped, Group, Metrics
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.views import Question, StoreInfo
from vsc.runtime.operators.views.catalog import open_view, stores_of
from vsc.runtime.records import QUIET, Batch
from vsc.runtime.values import to_values

__all__ = ["Case", "Found", "Run"]

SIZES = (
    Sizes(bounded=False),
    Sizes(bounded=False, timed=20, derived=(4, 9), columns=(1, 2)),
    Sizes(bounded=False, timed=10, derived=(6, 14), columns=(1, 2), tables=(1, 3), streams=(1, 3)),
    Sizes(bounded=False, keys=ALL_KEYS, failing=0.2),
    Sizes(bounded=False, timed=3, ordered=8, paired=1, derived=(3, 9), columns=(1, 2), streams=(1, 3)),
    Sizes(bounded=False, timed=3, paired=12, derived=(3, 8), columns=(1, 2), tables=(1, 1), streams=(1, 3)),
    Sizes(bounded=False, timed=2, corrected=14, derived=(1, 7), columns=(1, 2), tables=(1, 3)),
    Sizes(bounded=False, timed=1, corrected=2, complete=5, derived=(1, 7), columns=(1, 2), tables=(1, 3)),
    Sizes(bounded=False, complete=5, keys=ALL_KEYS, failing=0.2, derived=(1, 6), columns=(1, 3), tables=(2, 3)),
)
RECORDS = RecordSizes(epochs=(1, 5), parts=(0, 3), rows=(0, 12))
AHEAD = 1
"""How far ahead of the run's clock rows may be, in ms, where there is one."""


@dataclass(frozen=True)
class Found:
    """What a run gives: by node and key the records in order, the counters, and what the stores hold and answer."""

    records: dict[str, dict[Any, list[Any]]]
    counters: dict[str, Any]
    stores: dict[str, list[Any]]
    answers: dict[str, list[Any]]

    def difference(self, expected: Found) -> str:
        """What differs from `expected`, by name; nothing if all is equal."""
        told = []
        for kind in ("records", "counters", "stores", "answers"):
            ours, theirs = getattr(self, kind), getattr(expected, kind)
            for name in sorted(ours.keys() | theirs.keys()):
                if ours.get(name) != theirs.get(name):
                    found, wanted = _differing(ours.get(name), theirs.get(name))
                    told.append(f"{kind} of {name}\n  found    {found}\n  expected {wanted}")
        return "\n".join(told)


@dataclass(frozen=True)
class Case:
    """What to run. `partitions`, `restarts` and `drains` are by epoch: a restart comes before it, the end of the input
    behind it. `now` is the run's clock; None: no row is too early."""

    text: str
    epochs: History
    partitions: Sequence[int]
    restarts: Sequence[bool]
    drains: Sequence[bool]
    now: int | None = None
    clock: Clock = "input"

    @classmethod
    def of(cls, seed: int, clock: Clock = "input") -> Case:
        """The case of a seed."""
        rng = random.Random(seed)
        by_input = clock == "input"
        sizes_of = [sizes for sizes in SIZES if by_input or not (sizes.ordered or sizes.corrected or sizes.complete)]
        topology = generate(rng, rng.choice(sizes_of))
        sizes = replace(RECORDS, keys=rng.choice((3, 7)), hot=rng.choice((0, 0.2)), steps=rng.choice(STEPS))
        epochs = _apart(rng, topology, history(rng, topology, sizes))
        if clock == "input" and rng.random() < 0.3:
            epochs = _quiet(rng, epochs)
        partitions = [rng.randint(2, 8)] * len(epochs)
        if rng.random() < 0.3:
            at = rng.randrange(len(epochs))
            partitions[at:] = [rng.randint(1, 8)] * (len(epochs) - at)
        restarts = [rng.random() < 0.5 for _ in epochs]
        drains = [rng.random() < 0.1 for _ in epochs[1:]] + [rng.random() < 0.7]
        rows = (row for epoch in epochs for row in epoch if row.source != QUIET)
        times = sorted(row.timestamp for row in rows if row.timestamp is not None)
        now = rng.choice(times[-10:]) if times and rng.random() < 0.2 else None
        text = topology.text(lambda source: f"memory (max_ahead = {AHEAD} ms)")
        if rng.random() < 0.3:
            text += "sink dropped to memory ();\nsink missed to memory ();\n"
        return cls(text, epochs, partitions, restarts, drains, now, clock)

    @cached_property
    def plan(self) -> Plan:
        """The compiled topology. Raises ValueError for one that does not compile."""
        return by_records(compile_topology(self.text, path="case.vdsl"), self.clock)

    def difference(self) -> str:
        """What differs from one partition that takes the rows one by one, or what of that is not as the oracle says."""
        expected, found = Run(self.one_by_one()), Run(self)
        keys = {name: expected.keys[name] | found.keys[name] for name in expected.keys | found.keys}
        told = found.found(keys).difference(expected.found(keys))
        return told or (expected.apart_from_oracle() if self.clock == "input" else "")

    def records(self) -> dict[str, list[Any]]:
        """By node its records, in order: key and value columns as text, and the event time between them."""
        return Run(self).records

    def one_by_one(self) -> Case:
        """One partition, and an epoch for each row, in the order of D12."""
        epochs, drains = [], []
        for epoch, drain in zip(self.epochs, self.drains, strict=True):
            if any(row.source == QUIET for row in epoch):
                single = [list(epoch)]
            else:
                single = [[row] for row in order_epoch(self.plan, map(self._timed, epoch))] or [[]]
            epochs += single
            drains += [False] * (len(single) - 1) + [drain]
        return replace(self, epochs=epochs, partitions=[1] * len(epochs), restarts=[False] * len(epochs), drains=drains)

    def _timed(self, row: EpochRow) -> EpochRow:
        early = self.now is not None and row.timestamp is not None and row.timestamp > self.now + AHEAD
        return row._replace(timestamp=None) if early else row


class Run:
    """A case as it is run. `records`: see `Case.records`; `keys`: by node, those of its records, by their text."""

    def __init__(self, case: Case) -> None:
        self._case, self._plan = case, case.plan
        self._stores, self._metrics = Stores(), Metrics()
        self.records: dict[str, list[Any]] = defaultdict(list)
        self.keys: dict[str, dict[str, Any]] = defaultdict(dict)
        self._held: dict[str, list[Any]] = {}
        self._partitions, self._runtime = case.partitions[0], self._started(case.partitions[0], {})
        runs = zip(case.epochs, case.partitions, case.restarts, case.drains, strict=True)
        for epoch, partitions, restart, drain in runs:
            if partitions != self._partitions:
                self._upgrade(partitions)
            elif restart:
                self._runtime = self._started(partitions, self._runtime.starts)
            if (until := _until(epoch)) is not None:
                self._collect(self._runtime.quiet(until))
                epoch = []
            half = len(epoch) // 2  # a source partition comes in several pieces
            pieces = chunks(self._plan, epoch[:half]) + chunks(self._plan, epoch[half:])
            self._collect(self._runtime.process(pieces))
            if drain:
                self._held |= self._content("what it held")
                self._collect(self._runtime.drain())
        self._held |= self._content("in the end")

    def found(self, keys: dict[str, dict[str, Any]]) -> Found:
        """What came of it; `keys`: by node, those to look up."""
        letters = {node.name for node in self._plan.dead_letters}
        records = {
            name: {"of all nodes": sorted(map(repr, found))} if name in letters else by_key(found)
            for name, found in self.records.items()
        }
        return Found(records, _counters(self._metrics), self._held, self._answers(keys))

    def apart_from_oracle(self) -> str:
        """What the oracle says otherwise: records in their order, counters. The rows must come one by one."""
        oracle = InputOracle(self._plan, self._case.now)
        for epoch, drain in zip(self._case.epochs, self._case.drains, strict=True):
            if (until := _until(epoch)) is not None:
                oracle.quiet(until)
                epoch = []
            for row in epoch:
                oracle.process(row)
            if drain:
                oracle.drain()
        letters = {node.name for node in self._plan.dead_letters}
        ours = {name: {"in order": found} for name, found in self.records.items() if name not in letters}
        theirs = {name: {"in order": found} for name, found in oracle.records.items() if name not in letters}
        told = Found(ours, _counters(self._metrics, beside=False), {}, {}).difference(
            Found(theirs, _counters(oracle.metrics), {}, {})
        )
        return told and f"not as the oracle says: {told}"

    def _upgrade(self, partitions: int) -> None:
        self._stores = carried(self._plan, self._plan, self._stores, self._partitions, partitions)
        self._partitions, self._runtime = partitions, self._started(partitions, self._runtime.starts)

    def _started(self, partitions: int, starts: Mapping[str, int]) -> LocalRuntime:
        nodes = [node.name for node in self._plan.nodes if node.part_of is None]
        options = RunOptions(on_error="drop", now=self._case.now)
        quieted = self._runtime.quieted if starts else {}
        runtime = LocalRuntime(self._plan, self._stores, nodes, partitions, options, starts=starts, quieted=quieted)
        runtime.metrics = self._metrics
        return runtime

    def _collect(self, batches: dict[str, Batch]) -> None:
        for name, batch in batches.items():
            self.records[name] += shown_records(batch)
            columns = [to_values(a, c.type) for a, c in zip(batch.keys, batch.schema.key, strict=True)]
            self.keys[name].update((repr(key), key) for key in zip(*columns, strict=True))

    def _content(self, when: str) -> dict[str, list[Any]]:
        """The rows of each store, whatever the partitions; of several drains those before the last one count."""
        found: dict[str, list[Any]] = defaultdict(list)
        for store in stores_of(self._plan):
            for partition in range(1 if store.replicated else self._partitions):
                kv = self._stores(store.stage, partition)
                view = open_view(self._plan, store, kv, self._runtime.starts)
                rows = [(e.key, str(e.status), e.value, e.extra) for e in view.answer(Question(history=store.is_table))]
                found[f"{store.name} in stage {store.stage}, {when}"] += map(repr, rows)
        return {name: sorted(rows) for name, rows in found.items()}

    def _answers(self, keys: dict[str, dict[str, Any]]) -> dict[str, list[Any]]:
        tables = [s for s in stores_of(self._plan) if s.is_table and s.canonical]
        return {s.name: list(self._looked_up(s, keys.get(s.node, {}).values())) for s in tables}

    def _looked_up(self, store: StoreInfo, keys: Iterable[Any]) -> Iterable[str]:
        times = (None, 0, 10, 40, 100) if store.kind == "versioned" else (None,)
        for key in sorted(keys, key=repr):
            for time in times:
                entry = self._runtime.look_up(store, key, time)
                yield repr((key, f"as of {time}", str(entry.status), entry.value, entry.extra))


def _counters(metrics: Metrics, beside: bool = True) -> dict[str, Any]:
    """All but how much was held at most, which is a partition's own; perhaps without what counts beside its reason."""
    found = {name: found for name, found in metrics.as_dict().items() if name != HELD_RECORDS}
    if not beside:
        for group in Group:
            for reasons in found[group].values():
                assert isinstance(reasons, dict)
                reasons.pop(Dropped.AFTER_QUIET.value, None)
    return found


def _quiet(rng: random.Random, epochs: History) -> History:
    """The epochs, with one or two between them in which all sources are quiet: as the only row of each."""
    found = [list(epoch) for epoch in epochs]
    for _ in range(rng.randint(1, 2)):
        until = rng.randint(0, 150)
        found.insert(rng.randint(0, len(found)), [EpochRow(QUIET, "", 0, {}, until)])
    return found


def _until(epoch: Sequence[EpochRow]) -> int | None:
    """The time to which the clocks of all sources go on in an epoch; None for an ordinary one."""
    return next((row.timestamp for row in epoch if row.source == QUIET), None)


def _apart(rng: random.Random, topology: Generated, epochs: History) -> History:
    """The epochs; now and then the times of each source are behind or ahead of those of the others."""
    if rng.random() < 0.7:
        return epochs
    ahead = {source.name: rng.choice((0, 0, 7, 40)) for source in topology.sources}
    return [[_later(row, ahead[row.source]) for row in epoch] for epoch in epochs]


def _later(row: EpochRow, by: int) -> EpochRow:
    if row.timestamp is None:
        return row
    return row._replace(row={**row.row, "at": row.timestamp + by}, timestamp=row.timestamp + by)


def _differing(found: Any, expected: Any) -> tuple[Any, Any]:
    """The parts of two values that differ: of mappings the values, of lists what the other one has not."""
    if isinstance(found, dict) and isinstance(expected, dict):
        names = [n for n in sorted(found.keys() | expected.keys()) if found.get(n) != expected.get(n)][:3]
        return {n: found.get(n) for n in names}, {n: expected.get(n) for n in names}
    if isinstance(found, list) and isinstance(expected, list):
        return [r for r in found if r not in expected][:4], [r for r in expected if r not in found][:4]
    return found, expected
