"""The two engines, pinned and watched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.records.stage import RecordStage
from vsc.plan.nodes import Plan
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.operators.result import StageResult
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


def by_record(ran: Ran, *arguments: Any, partition: int = 0) -> Any:
    """The task of a stage that takes records one by one."""
    return _Watched(ran.records, ran, RecordStage(*arguments, partition), arguments[1])


def on_columns(ran: Ran, *arguments: Any, partition: int = 0) -> Any:
    """The task of a stage as it is shipped."""
    return _Watched(ran.columns, ran, LaterStage(*arguments, partition), arguments[1])


class _Watched:
    """A task, and a count of the records that it takes."""

    def __init__(self, counter: Counter[int], ran: Ran, task: Any, stage: int) -> None:
        self._counter, self._ran, self._task, self._stage = counter, ran, task, stage

    def process(self, inputs: Sequence[tuple[str, Batch]], drain: bool = False) -> StageResult:
        count = _count(inputs)
        self._counter[self._stage] += count
        if self._counter is self._ran.columns:
            self._ran.largest = max(self._ran.largest, count)
        result: StageResult = self._task.process(inputs, drain)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)


def _count(inputs: Sequence[tuple[str, Batch]]) -> int:
    return sum(len(batch) for _, batch in inputs)
