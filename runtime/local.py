"""Runs a plan in one process, without a JVM: the stages of a topology run one after the other, epoch by epoch.

Guarantees: in each epoch, every stage and partition processes its records in D12's order, and observed records come in
that order too. So feeding it the epochs of a Spark query gives the results of that query, unless records waited there
for another source. It reads and writes nothing itself: the caller hands rows in, gets records back, opens the stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.clocks import stepping
from vsc.plan.nodes import Node, Plan
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.operators.layout import handed_on, is_broadcast, store_prefix
from vsc.runtime.operators.partition import partition_codecs, split
from vsc.runtime.operators.source.rows import SourceRows, latest_times
from vsc.runtime.operators.source.stage_zero import StageZero
from vsc.runtime.operators.steps import quiet_step
from vsc.runtime.operators.views import Entry, Question, StoreInfo
from vsc.runtime.operators.views.catalog import open_view
from vsc.runtime.records import Batch, Metrics, Origin, partition_of
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.timed_rows import TimestampedStore
from vsc.runtime.state.versioned import VersionedStore
from vsc.runtime.state.waiting import STEPS

__all__ = ["LocalRuntime"]

_NO_STEPS: Mapping[str, int] = {}


class LocalRuntime:
    """Runs `plan` with `partitions` vsc partitions.

    `open_kv(stage, partition)` opens the state of each. `observe` names the nodes whose records are handed back.
    `later_stage` makes the stage of a partition, as `LaterStage` does: tests use it to watch or replace a stage.
    `starts` and `quieted`: those of the runtime that stopped before, if the stores are its.
    """

    def __init__(
        self,
        plan: Plan,
        open_kv: Callable[[int, int], OrderedKV],
        observe: Iterable[str],
        partitions: int = 1,
        options: RunOptions | None = None,
        later_stage: Callable[..., LaterStage] = LaterStage,
        starts: Mapping[str, int] | None = None,
        quieted: Mapping[str, int] | None = None,
    ) -> None:
        if partitions < 1:
            raise ValueError(f"partitions must be at least 1, not {partitions}")
        options = options or RunOptions()
        observed = frozenset(observe)
        self._plan = plan
        self._partitions = partitions
        latest = {} if options.now is None else latest_times(plan, options.now)
        self._source = StageZero(plan, options, observed, latest)
        self._emits = [plan.given(s) & observed for s in plan.stages]
        self._routes = [handed_on(s) for s in plan.stages]
        self._partitioned = partition_codecs(plan)
        self._stores = {(s.id, p): open_kv(s.id, p) for s in plan.stages[1:] for p in range(partitions)}
        self._later = [
            [later_stage(plan, s.id, self._stores[s.id, p], options, observed, partition=p) for p in range(partitions)]
            for s in plan.stages[1:]
        ]
        self._stepping = stepping(plan)
        self.starts = dict(starts or {})
        """By source, its clock, in ms: the highest event time so far."""
        self.quieted = dict(quieted or {})
        """By source, the time to which its clock has gone on at last while it brought nothing."""
        self.metrics = Metrics()

    def process(self, rows: Sequence[tuple[str, SourceRows]]) -> dict[str, Batch]:
        """Processes one epoch: rows of source nodes, in any number of pieces. Returns the observed records by node.

        The rows of a source partition have to come by ascending offset. The observed records are in order.
        """
        return self._run(rows, drain=False)

    def drain(self) -> dict[str, Batch]:
        """Ends the input: emits everything still held."""
        return self._run((), drain=True)

    def quiet(self, until: int) -> dict[str, Batch]:
        """The clocks of all sources that are not beyond it go on to `until`, in ms: they have brought nothing."""
        behind = [node.name for node in self._plan.sources if self.starts.get(node.name, -1) < until]
        return self._run((), drain=False, quiet=dict.fromkeys(behind, until))

    def look_up(self, store: StoreInfo, key: Sequence[object], as_of: int | None) -> Entry:
        """The row that a table's store has for `key` (internal values): the newest, or the one valid at `as_of`."""
        codec = self._partitioned[store.node]
        partition = int(partition_of([codec.encode(key[: len(codec.types)])], self._partitions)[0])
        view = open_view(self._plan, store, self._stores[store.stage, partition], self.starts)
        encoded = KeyCodec([c.type for c in store.key]).encode(key)
        return next(view.answer(Question(encoded, as_of=as_of)))

    def put(self, node: Node, key: Sequence[object], row: Sequence[object] | None, time: int) -> None:
        """Writes a row (internal values), or a tombstone, into the store of a table, in each stage that has it."""
        codec, store = self._partitioned[node.name], node.store
        assert store is not None
        own = int(partition_of([codec.encode(key[: len(codec.types)])], self._partitions)[0])
        every = range(self._partitions) if is_broadcast(self._plan, node.name) else [own]
        keys, times = [KeyCodec([c.type for c in node.schema.key]).encode(key)], np.array([time], dtype=np.int64)
        rows = pa.array(
            [None if row is None else RowCodec([c.type for c in node.schema.value]).encode(row)], pa.binary()
        )
        for stage in self._plan.stages[1:]:
            for partition in every if node.name in stage.nodes else ():
                kv, prefix = self._stores[stage.id, partition], store_prefix(stage, node.name)
                if store.retention is None:
                    TimestampedStore(kv, prefix).put_columns(keys, rows, times)
                    continue
                clock = -1 if self._plan.clock == "input" else None  # that of the input is moved by the input alone
                versions = VersionedStore(kv, prefix, store.retention, store.segment, store.grace, True, clock)
                versions.put_columns(keys, np.zeros(1, dtype=np.int64), rows, times)

    def _run(
        self, rows: Sequence[tuple[str, SourceRows]], drain: bool, quiet: Mapping[str, int] = _NO_STEPS
    ) -> dict[str, Batch]:
        seen: dict[str, list[Batch]] = {}
        queues: list[list[list[tuple[str, Batch]]]] = [[[] for _ in range(self._partitions)] for _ in self._plan.stages]
        clocks: dict[Origin, int | None] = {}
        for source, chunk in rows:
            result = self._source.process(source, chunk, clocks.get(chunk.origin))
            clocks[chunk.origin] = result.clock
            self.metrics.merge(result.metrics)
            self._route(0, 0, result.batches, queues, seen)
        for source, time in quiet.items():
            self._step(quiet_step(self._plan, source, time), queues)
        for stage, partitions in enumerate(self._later, start=1):
            for partition, at_work in enumerate(partitions):
                result = at_work.process(queues[stage][partition], drain, self.starts, self.quieted)
                self.metrics.merge(result.metrics)
                self._route(stage, partition, result.batches, queues, seen)
        for origin, clock in clocks.items():
            self.starts[origin.source] = max(self.starts.get(origin.source, -1), -1 if clock is None else clock)
        self.starts.update(quiet)
        self.quieted.update(quiet)
        return {name: parts[0] if len(parts) == 1 else Batch.concat(parts).sorted() for name, parts in seen.items()}

    def _route(
        self,
        stage: int,
        partition: int,
        batches: Sequence[tuple[str, Batch]],
        queues: list[list[list[tuple[str, Batch]]]],
        seen: dict[str, list[Batch]],
    ) -> None:
        for name, batch in batches:
            if not len(batch):
                continue
            if name == STEPS:
                self._step(batch, queues)
                continue
            broadcast = is_broadcast(self._plan, name)
            if name in self._emits[stage] and not (broadcast and partition):
                seen.setdefault(name, []).append(batch)  # each partition emits a whole global table: one is enough
            for target in self._routes[stage].get(name, ()):
                for to, part in split(batch, self._partitioned[name], self._partitions, broadcast):
                    queues[target][to].append((name, part))

    def _step(self, steps: Batch, queues: list[list[list[tuple[str, Batch]]]]) -> None:
        """Every partition of the stages that ask gets the steps of a source's clock."""
        (origin,) = steps.origins
        for stage, sources in enumerate(self._stepping):
            if origin.source in sources:
                for queue in queues[stage]:
                    queue.append((STEPS, steps))
