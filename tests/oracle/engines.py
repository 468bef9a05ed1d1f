"""The two engines, pinned and watched, and their state in one form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.oracle.records.stage import RecordStage
from tests.oracle.records.suppress import Size
from tests.oracle.stores import Shown, shown, shown_in
from vsc.plan.nodes import Clock, Plan, Schema
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.operators.result import StageResult
from vsc.runtime.records import Batch
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv import MemoryKV, OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.suppressed import byte_size

__all__ = ["OnColumns", "OneByOne", "Ran", "by_record", "by_records", "on_columns", "size_of"]


class OneByOne:
    """The oracle's stage, with what it gives in the form of what is shipped."""

    def __init__(
        self, plan: Plan, stage: int, options: RunOptions, observe: frozenset[str], partition: int = 0
    ) -> None:
        self._stage = RecordStage(plan, stage, options.on_error, observe, size_of, partition)

    def process(self, inputs: Sequence[tuple[str, Batch]], drain: bool = False) -> StageResult:
        """See `LaterStage.process`."""
        return StageResult(*self._stage.process(inputs, drain))

    @property
    def held(self) -> int:
        """See `LaterStage.held`."""
        return self._stage.held

    def content(self) -> dict[tuple[str, str], Shown]:
        """What is kept, by node, and whether it is its table or beside it."""
        return {place: shown(content) for place, content in self._stage.content().items()}


class OnColumns(LaterStage):
    """The shipped stage over a map in memory, with what it keeps."""

    def __init__(
        self,
        plan: Plan,
        stage: int,
        options: RunOptions,
        observe: frozenset[str],
        partition: int = 0,
        kv: OrderedKV | None = None,
    ) -> None:
        self.kv = MemoryKV() if kv is None else kv
        plan = by_records(plan)
        super().__init__(plan, stage, self.kv, options, observe, partition)
        self._all = plan, stage

    def content(self) -> dict[tuple[str, str], Shown]:
        """What is kept, by node, and whether it is its table or beside it."""
        return shown_in(*self._all, self.kv)


def by_records(plan: Plan, clock: Clock = "records") -> Plan:
    """The plan with the clock that the oracle has, Kafka's, whatever the default is; or with another one."""
    return replace(plan, clock=clock, clock_implied=False)


def size_of(schema: Schema) -> Size:
    """See `Size`."""
    keys, rows = KeyCodec([c.type for c in schema.key]), RowCodec([c.type for c in schema.value])
    return lambda key, row, before: byte_size(
        keys.encode(key), *(0 if one is None else len(rows.encode(one)) for one in (row, before))
    )


@dataclass
class Ran:
    """How many records each stage has taken, by stage: on columns, one by one.

    `largest`: the largest batch that was taken on columns. `oracles`: the oracle's stages, by stage and partition.
    """

    columns: Counter[int] = field(default_factory=Counter)
    records: Counter[int] = field(default_factory=Counter)
    largest: int = 0
    oracles: dict[tuple[int, int], OneByOne] = field(default_factory=dict)

    def check(self, plan: Plan, columnar: bool) -> None:
        """Fails unless every stage ran as it was pinned: on columns if `columnar`, else record by record."""
        for stage in plan.stages[1:]:
            assert not (self.records if columnar else self.columns)[stage.id], (stage, self)

    def content(self) -> dict[Any, Shown]:
        """What the oracle keeps: by stage, partition, node, and whether it is its table or beside it."""
        found = {(at, place): one for at, stage in self.oracles.items() for place, one in stage.content().items()}
        return {(*at, *place): one for (at, place), one in found.items()}


def by_record(
    ran: Ran, plan: Plan, stage: int, kv: OrderedKV, options: RunOptions, observe: frozenset[str], partition: int = 0
) -> Any:
    """The task of a stage that takes records one by one. It keeps its state itself: `kv` stays empty."""
    task = ran.oracles[stage, partition] = OneByOne(plan, stage, options, observe, partition)
    return _Watched(ran.records, ran, task, stage)


def on_columns(
    ran: Ran, plan: Plan, stage: int, kv: OrderedKV, options: RunOptions, observe: frozenset[str], partition: int = 0
) -> Any:
    """The task of a stage as it is shipped."""
    return _Watched(ran.columns, ran, LaterStage(plan, stage, kv, options, observe, partition), stage)


class _Watched:
    """A task, and a count of the records that it takes."""

    def __init__(self, counter: Counter[int], ran: Ran, task: Any, stage: int) -> None:
        self._counter, self._ran, self._task, self._stage = counter, ran, task, stage

    def process(
        self, inputs: Sequence[tuple[str, Batch]], drain: bool, starts: Mapping[str, int], quiet: Mapping[str, int]
    ) -> StageResult:
        count = _count(inputs)
        self._counter[self._stage] += count
        if self._counter is self._ran.columns:
            self._ran.largest = max(self._ran.largest, count)
        # the oracle's time is that of the records
        by_input = (starts, quiet) if isinstance(self._task, LaterStage) else ()
        result: StageResult = self._task.process(inputs, drain, *by_input)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)


def _count(inputs: Sequence[tuple[str, Batch]]) -> int:
    return sum(len(batch) for _, batch in inputs)
