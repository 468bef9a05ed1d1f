"""The two engines, pinned and watched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vsc.plan.nodes import Plan
from vsc.runtime.operators.columnar import ColumnarStage, supports
from vsc.runtime.operators.result import StageResult
from vsc.runtime.operators.task import Engine, StageTask
from vsc.runtime.records import Batch

__all__ = ["Ran", "by_record", "on_columns"]


@dataclass
class Ran:
    """How many records each stage has taken, by stage: on columns, one by one.

    `returned`: those in batches that were begun on columns and given back, because an expression failed; they count as
    taken one by one. `drained`: those that came while the stage let out what waits. `largest`: the largest batch that
    was taken on columns.
    """

    columns: Counter[int] = field(default_factory=Counter)
    records: Counter[int] = field(default_factory=Counter)
    returned: Counter[int] = field(default_factory=Counter)
    drained: Counter[int] = field(default_factory=Counter)
    largest: int = 0

    def check(self, plan: Plan, columnar: bool) -> None:
        """Fails unless every stage ran as it was pinned: on columns if `columnar` and it can, else record by record."""
        for stage in plan.stages[1:]:
            if columnar and supports(plan, stage):
                assert self.records[stage.id] == self.returned[stage.id] + self.drained[stage.id], (stage, self)
            else:
                assert not self.columns[stage.id], (stage, self)
                assert not self.returned[stage.id], (stage, self)


def by_record(ran: Ran, plan: Plan, stage: int, *rest: Any) -> StageTask:
    """The task of a stage that takes records one by one."""
    return _Watched(ran, "records", plan, stage, *rest)


def on_columns(ran: Ran, plan: Plan, stage: int, *rest: Any) -> StageTask:
    """The task of a stage as it is shipped, on columns however few records there are."""
    return _Watched(ran, "columns" if supports(plan, plan.stages[stage]) else "auto", plan, stage, *rest)


class _Watched(StageTask):
    def __init__(self, ran: Ran, engine: Engine, plan: Plan, stage: int, *rest: Any) -> None:
        super().__init__(plan, stage, *rest, engine=engine)
        self._ran, self._draining = ran, False

    def process(self, inputs: Sequence[tuple[str, Batch]], drain: bool = False) -> StageResult:
        self._draining = drain
        return super().process(inputs, drain)

    def _on_columns(self, columns: ColumnarStage, inputs: Sequence[tuple[str, Batch]]) -> StageResult | None:
        result = super()._on_columns(columns, inputs)
        ran, count = self._ran, _count(inputs)
        if result is None:
            ran.returned[self._stage.id] += count
        else:
            ran.columns[self._stage.id] += count
            ran.largest = max(ran.largest, count)
        return result

    def _run(self, inputs: Sequence[tuple[str, Batch]]) -> None:
        count = _count(inputs)
        self._ran.records[self._stage.id] += count
        if self._draining and self._holds:
            self._ran.drained[self._stage.id] += count
        super()._run(inputs)


def _count(inputs: Sequence[tuple[str, Batch]]) -> int:
    return sum(len(batch) for _, batch in inputs)
