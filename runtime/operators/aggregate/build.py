"""Makes the operator of an `Aggregate` from its node."""

from __future__ import annotations

from vsc.plan.nodes import Aggregate, GroupChanges, Node
from vsc.runtime.operators.aggregate.calls import Calls
from vsc.runtime.operators.aggregate.groups import StreamGroups, TableGroups, Travelled
from vsc.runtime.operators.aggregate.results import Results
from vsc.runtime.operators.aggregate.session_windows import SessionWindows
from vsc.runtime.operators.aggregate.sliding_windows import SlidingWindows
from vsc.runtime.operators.aggregate.state import open_aggregate
from vsc.runtime.operators.aggregate.time_windows import TimeWindows
from vsc.runtime.operators.aggregate.windows import WindowedAggregate
from vsc.runtime.operators.building import Consumer, Parts
from vsc.runtime.operators.put import ChangeConsumer, TablePut

__all__ = ["aggregate_operator"]

_WINDOWS: dict[str, type[WindowedAggregate]] = {
    "tumbling": TimeWindows,
    "hopping": TimeWindows,
    "sliding": SlidingWindows,
    "session": SessionWindows,
}


def aggregate_operator(
    parts: Parts, node: Node, operation: Aggregate, put: TablePut | None, forward: ChangeConsumer
) -> Consumer:
    """The operator of `node`. An aggregate that sends final results only is entered in `parts.waiting`."""
    calls = Calls(node, operation)
    state = open_aggregate(parts.kv, parts.stage, node, calls.numbered)
    kept, store = node.store, parts.tables.get(node.name)
    grace = 0 if kept is None else (kept.grace if kept.grace is not None else kept.retention) or 0
    results = Results(put, parts.old_wanted(node.name), forward, store, grace)
    if operation.window is not None:
        kind = _WINDOWS[operation.window.kind]
        windows = kind(node, operation.window, operation.final, calls, state, results, parts.context)
        if operation.final:
            parts.waiting[node.name] = windows
        return windows.process
    if operation.over == "stream":
        return StreamGroups(node.name, calls, state, results, parts.context).process
    changes = parts.nodes[node.inputs[0]]
    if not isinstance(changes.operation, GroupChanges):
        raise ValueError(f"node '{node.name}': a table is aggregated by its grouped changes only")
    table = parts.nodes[changes.inputs[0]]
    travelled = Travelled(changes.schema, operation.row, table.schema)
    return TableGroups(node.name, calls, travelled, state, results, parts.context).process
