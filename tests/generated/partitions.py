"""One clock (D25): what comes out, is counted and kept is the same on any number of partitions.

A case is a topology, its input cut into epochs, and how they are run: on how many partitions each (another number is an
upgrade in between), after a restart or not, to the end of the input or not. `Case.difference` compares it with one
partition that takes the rows one by one, as the test driver does. What bounds in records or bytes emit is a
partition's own, so no case has them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tests.generated.case import STEPS
from tests.generated.records import History, RecordSizes, history
from tests.generated.topology import Sizes, generate
from tests.oracle import Stores, by_key, by_records, chunks
from tests.oracle.epochs import EpochRow, order_epoch
from tests.oracle.playing import shown_records
from tests.runtime.operators.carry.carrying import carried
from vsc.compiler import compile_topology
from vsc.plan.nodes import Clock, Plan
from vsc.runtime.local import LocalRuntime
from vsc.runtime.metrics import HELD_RECORDS, Metrics
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.views import Question, StoreInfo
from vsc.runtime.operators.views.catalog import open_view, stores_of
from vsc.runtime.records import Batch
from vsc.runtime.values import to_values

__all__ = ["Case", "Found", "Run"]

SIZES = (
    Sizes(bounded=False),
    Sizes(bounded=False),
    Sizes(tables=(1, 3), streams=(1, 3), derived=(6, 14), columns=(1, 2), bounded=False),
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
                    found, wanted = _apart(ours.get(name), theirs.get(name))
                    told.append(f"{kind} of {name}\n  found    {found}\n  expected {wanted}")
        return "\n".join(told)


@dataclass(frozen=True)
class Case:
    """What to run. `partitions` and `restarts` are by epoch; `now` is the run's clock, None: no row is too early."""

    text: str
    epochs: History
    partitions: Sequence[int]
    restarts: Sequence[bool]
    drain: bool = True
    now: int | None = None
    clock: Clock = "input"

    @classmethod
    def of(cls, seed: int, clock: Clock = "input") -> Case:
        """The case of a seed."""
        rng = random.Random(seed)
        topology = generate(rng, rng.choice(SIZES))
        sizes = replace(RECORDS, keys=rng.choice((3, 7)), hot=rng.choice((0, 0.2)), steps=rng.choice(STEPS))
        epochs = history(rng, topology, sizes)
        partitions = [rng.randint(2, 8)] * len(epochs)
        if rng.random() < 0.3:
            at = rng.randrange(len(epochs))
            partitions[at:] = [rng.randint(1, 8)] * (len(epochs) - at)
        restarts = [rng.random() < 0.5 for _ in epochs]
        times = sorted(row.timestamp for epoch in epochs for row in epoch if row.timestamp is not None)
        now = rng.choice(times[-10:]) if times and rng.random() < 0.2 else None
        text = topology.text(lambda source: f"memory (max_ahead = {AHEAD} ms)")
        return cls(text, epochs, partitions, restarts, rng.random() < 0.7, now, clock)

    @cached_property
    def plan(self) -> Plan:
        """The compiled topology. Raises ValueError for one that does not compile."""
        return by_records(compile_topology(self.text, path="case.vdsl"), self.clock)

    def difference(self) -> str:
        """What differs from one partition that takes the rows one by one."""
        single = self.one_by_one() or [[]]
        expected, found = Run(self, single, [1] * len(single)), Run(self, self.epochs, self.partitions, self.restarts)
        keys = {name: expected.keys[name] | found.keys[name] for name in expected.keys | found.keys}
        return found.found(keys).difference(expected.found(keys))

    def records(self) -> dict[str, list[Any]]:
        """By node its records, in order: key and value columns as text, and the event time between them."""
        return Run(self, self.epochs, self.partitions, self.restarts).records

    def one_by_one(self) -> History:
        """An epoch for each row, in the order of D12."""
        return [[row] for epoch in self.epochs for row in order_epoch(self.plan, map(self._timed, epoch))]

    def _timed(self, row: EpochRow) -> EpochRow:
        early = self.now is not None and row.timestamp is not None and row.timestamp > self.now + AHEAD
        return row._replace(timestamp=None) if early else row


class Run:
    """A case as it is run. `records`: see `Case.records`; `keys`: by node, those of its records, by their text."""

    def __init__(self, case: Case, epochs: History, partitions: Sequence[int], restarts: Sequence[bool] = ()) -> None:
        self._case, self._plan = case, case.plan
        self._stores, self._metrics = Stores(), Metrics()
        self.records: dict[str, list[Any]] = defaultdict(list)
        self.keys: dict[str, dict[str, Any]] = defaultdict(dict)
        self._partitions, self._runtime = partitions[0], self._started(partitions[0], {})
        for number, epoch in enumerate(epochs):
            if partitions[number] != self._partitions:
                self._upgrade(partitions[number])
            elif restarts and restarts[number]:
                self._runtime = self._started(self._partitions, self._runtime.starts)
            self._collect(self._runtime.process(chunks(self._plan, epoch)))
        self._held = self._content()
        if case.drain:
            self._collect(self._runtime.drain())
            self._held |= {f"{name}, in the end": rows for name, rows in self._content().items()}

    def found(self, keys: dict[str, dict[str, Any]]) -> Found:
        """What came of it; `keys`: by node, those to look up."""
        counters = {k: v for k, v in self._metrics.as_dict().items() if k != HELD_RECORDS}
        records = {name: by_key(found) for name, found in self.records.items()}
        return Found(records, counters, self._held, self._answers(keys))

    def _upgrade(self, partitions: int) -> None:
        self._stores = carried(self._plan, self._plan, self._stores, self._partitions, partitions)
        self._partitions, self._runtime = partitions, self._started(partitions, self._runtime.starts)

    def _started(self, partitions: int, starts: Mapping[str, int]) -> LocalRuntime:
        nodes = [node.name for node in self._plan.nodes if node.part_of is None]
        options = RunOptions(on_error="drop", now=self._case.now)
        runtime = LocalRuntime(self._plan, self._stores, nodes, partitions, options, starts=starts)
        runtime.metrics = self._metrics
        return runtime

    def _collect(self, batches: dict[str, Batch]) -> None:
        for name, batch in batches.items():
            self.records[name] += shown_records(batch)
            columns = [to_values(a, c.type) for a, c in zip(batch.keys, batch.schema.key, strict=True)]
            self.keys[name].update((repr(key), key) for key in zip(*columns, strict=True))

    def _content(self) -> dict[str, list[Any]]:
        """The rows of each store, whatever the partitions."""
        found: dict[str, list[Any]] = defaultdict(list)
        for store in stores_of(self._plan):
            for partition in range(1 if store.replicated else self._partitions):
                kv = self._stores(store.stage, partition)
                view = open_view(self._plan, store, kv, self._runtime.starts)
                rows = [(e.key, str(e.status), e.value, e.extra) for e in view.answer(Question(history=store.is_table))]
                found[f"{store.name} in stage {store.stage}"] += map(repr, rows)
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


def _apart(found: Any, expected: Any) -> tuple[Any, Any]:
    """The parts of two values that differ: of mappings the values, of lists what the other one has not."""
    if isinstance(found, dict) and isinstance(expected, dict):
        names = [n for n in sorted(found.keys() | expected.keys()) if found.get(n) != expected.get(n)][:3]
        return {n: found.get(n) for n in names}, {n: expected.get(n) for n in names}
    if isinstance(found, list) and isinstance(expected, list):
        return [r for r in found if r not in expected][:4], [r for r in expected if r not in found][:4]
    return found, expected
