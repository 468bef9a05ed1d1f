"""Stage 0: turns rows of a source partition into records: checked, timed, ordered, and sent downstream.

Guarantees: a row without key, without usable event time or that could not be read is lost, and counted with its reason.
The others carry D12's order, for which the task keeps the running maximum of event time in the source partition. It
works on whole columns.

It does not read: a connector (or the test driver) passes the columns in.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vsc.plan.nodes import Plan
from vsc.runtime.expressions import bind
from vsc.runtime.operators.columns.flow import Flow, blanked
from vsc.runtime.operators.columns.keyspace import KeySpaces
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.result import StageResult
from vsc.runtime.operators.source.checked_rows import CheckedRows
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.operators.stage_nodes import StageNodes
from vsc.runtime.operators.steps import steps_of, steps_to
from vsc.runtime.records import Int64s, Order
from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.state.waiting import STEPS

__all__ = ["StageZero"]

_NO_BOUNDS: Mapping[str, int] = {}


class StageZero:
    """Stage 0 of a plan: sources, and the stateless nodes after them. Keeps nothing between calls.

    `observe` names the nodes whose records the caller wants besides those that later stages read. `latest`: by source,
    the latest event time in ms that its rows may have; a source that is not in it has no bound.
    """

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        observe: frozenset[str] = frozenset(),
        latest: Mapping[str, int] = _NO_BOUNDS,
    ) -> None:
        bind(plan, options.functions)
        self._options, self._latest = options, latest
        self._sources = {node.name: node for node in plan.sources}
        self._nodes = StageNodes(plan, plan.stages[0], MemoryKV(), options.on_error, observe)
        self._steps = steps_to(plan)

    def process(self, source: str, rows: SourceRows, clock: int | None = None) -> StageResult:
        """The records that `rows` of source node `source` cause, and the steps of its clock, if a later stage asks.

        `clock` is the result's `clock` of the previous call for the same source partition and epoch, or None. Raises
        BadRowError or ExpressionError if the options do not say to drop such rows.
        """
        node, spaces, losses = self._sources[source], KeySpaces(), self._nodes.losses()
        checked = CheckedRows(node, rows, self._options, losses)
        seen = checked.check(self._latest.get(source))
        running: Int64s = np.maximum.accumulate(checked.times)
        if clock is not None:
            running = np.maximum(running, clock)
        cause, nothing = checked.causes, np.zeros((len(rows), 0), dtype=np.int64)
        time = np.zeros(len(rows), dtype=np.int64)
        time[cause] = running
        order = Order(time, np.zeros(len(rows), dtype=np.int32), rows.offsets, nothing)
        keys, values = checked.columns(node.schema)
        at, values = self._nodes.routes.enter(source, cause), blanked(values, checked.present)
        no_key = np.zeros(len(cause), dtype=np.int64)  # nothing in stage 0 uses keys
        flow = Flow(at, no_key, spaces.of(node.schema), checked.times, checked.present, keys, values)
        result, batches = self._nodes.process({source: flow}, spaces, (rows.origin,), order, losses), []
        if source in self._steps and (steps := steps_of(rows.origin, order.take(cause), clock)) is not None:
            batches.append((STEPS, steps))
        highest = int(running[-1]) if len(running) else clock
        return StageResult((*result.batches, *batches), result.metrics, highest, seen)
