"""The two engines, pinned and watched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vsc.plan.nodes import Plan
from vsc.runtime.operators.columnar import ColumnarStage
from vsc.runtime.operators.result import StageResult
from vsc.runtime.operators.task import Engine, StageTask
from vsc.runtime.records import Batch

__all__ = ["Ran", "by_record", "on_columns"]


@dataclass
class Ran:
    """How many records each stage has taken, by stage: on columns, one by one.

    `largest`: the largest batch that was taken on columns.
    """

    columns: Counter[int] = field(default_factory=Counter)
    records: Counter[int] = field(default_factory=Counter)
    largest: int = 0

    def check(self, plan: Plan, columnar: bool) -> None:
        """Fails unless every stage ran as it was pinned: on columns if `columnar`, else record by record."""
        for stage in plan.stages[1:]:
            assert not (self.records if columnar else self.columns)[stage.id], (stage, self)


def by_record(ran: Ran, plan: Plan, stage: int, *rest: Any, partition: int) -> StageTask:
    """The task of a stage that takes records one by one."""
    return _Watched(ran, "records", plan, stage, *rest, partition=partition)


def on_columns(ran: Ran, plan: Plan, stage: int, *rest: Any, partition: int) -> StageTask:
    """The task of a stage as it is shipped."""
    return _Watched(ran, "columns", plan, stage, *rest, partition=partition)


class _Watched(StageTask):
    def __init__(self, ran: Ran, engine: Engine, plan: Plan, stage: int, *rest: Any, partition: int) -> None:
        super().__init__(plan, stage, *rest, engine=engine, partition=partition)
        self._ran = ran

    def _on_columns(self, columns: ColumnarStage, inputs: Sequence[tuple[str, Batch]], drain: bool) -> StageResult:
        ran, count = self._ran, _count(inputs)
        ran.columns[self._stage.id] += count
        ran.largest = max(ran.largest, count)
        return super()._on_columns(columns, inputs, drain)

    def _run(self, inputs: Sequence[tuple[str, Batch]]) -> None:
        self._ran.records[self._stage.id] += _count(inputs)
        super()._run(inputs)


def _count(inputs: Sequence[tuple[str, Batch]]) -> int:
    return sum(len(batch) for _, batch in inputs)
