"""Builds the operators of table nodes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracle.records import filter, map, materialize, source_table, table_table_join, to_table
from tests.oracle.records.aggregate.build import aggregate_operator
from tests.oracle.records.aggregate.groups import Calls
from tests.oracle.records.aggregate.results import Results
from tests.oracle.records.aggregate.unwindowed import TravelledRows
from tests.oracle.records.aggregate.windows import WindowedAggregate
from tests.oracle.records.building import Built, Consumer, Parts
from tests.oracle.records.complete import CompleteAnswers, CompleteGroups, CompleteSide, Sending
from tests.oracle.records.consumer import Before, ChangeConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expiring import ExpiringPut
from tests.oracle.records.expressions import Row, condition, items
from tests.oracle.records.graph_getters import asked, pair
from tests.oracle.records.put import TablePut
from tests.oracle.records.suppress import Suppress as Suppressing
from vsc.plan.nodes import Aggregate, Filter, Map, Materialize, Node, Source, Suppress, TableTableJoin, ToTable

__all__ = ["table_operator"]


def table_operator(parts: Parts, node: Node, forward: ChangeConsumer) -> Built:
    """The operator of a table node; ValueError for one that makes no table."""
    context, old = parts.context, parts.old_wanted(node.name) or parts.intervals(node.name)
    store = parts.tables.get(node.name)
    intervals = parts.intervals(node.name)
    put = None if store is None else TablePut(node.name, store, context, forward, intervals)
    if put is not None and node.store is not None and node.store.expire is not None:
        put = expiring = ExpiringPut(node, node.store.expire, put, old, context)
        parts.waiting[node.name], parts.beside[node.name] = expiring, expiring.content
    if node.complete and store is not None and put is not None:
        return _complete(parts, node, Sending(store, put))
    match node.operation:
        case Source():
            _check_stored(node, old, put)
            return source_table.SourceTable(put, old, forward).process
        case ToTable(deleted):
            _check_stored(node, old, put)
            table = source_table.SourceTable(put, old, forward)
            holds = None if deleted is None else condition(node.name, deleted, [parts.schema(node)])
            return to_table.ToTable(node.owner, table, holds, context).process
        case Filter(predicate):
            holds = condition(node.name, predicate, [parts.schema(node)])
            dedupe = node.operation.dedupe
            return filter.TableFilter(node.name, holds, dedupe, old, intervals, put, context, forward).process
        case Map(computed):
            values = items(node.name, computed, [parts.schema(node)])
            return map.TableMap(node.name, values, old, intervals, put, context, forward).process
        case Materialize():
            if put is None:
                raise ValueError(f"node '{node.name}': materialize without a store")
            return materialize.Materialize(put, old).process
        case TableTableJoin() as join:
            return _table_table_join(parts, node, join, old, put, forward)
        case Aggregate() as aggregate:
            return _aggregate(parts, node, aggregate, put, forward)
        case Suppress() as operation:
            return _suppress(parts, node, operation, put, forward)
        case other:
            raise ValueError(f"node '{node.name}': {other.op} does not make a table")


def _complete(parts: Parts, node: Node, sending: Sending) -> Built:
    """The operator of a table with a complete history."""
    match node.operation:
        case TableTableJoin() as join:
            pairs = pair(parts, node, join)
            stores = [parts.behind(name) for name in node.inputs]
            sides = [
                CompleteSide(
                    node.name, not port, own, other, asked(parts, node, node.inputs[1 - port]), pairs, parts.context,
                    sending,
                ).process
                for port, (own, other) in enumerate((stores, stores[::-1])) if own is not None and other is not None
            ]  # fmt: skip
            return tuple(sides)
        case Aggregate() as aggregate:
            calls, travelled = Calls(node, aggregate), TravelledRows(parts.plan, node, aggregate)
            return CompleteGroups(calls, travelled, parts.context, sending).process
        case ToTable():
            return CompleteAnswers(sending).process
        case other:
            raise ValueError(f"node '{node.name}': the history of {other.op} cannot be complete")


def _check_stored(node: Node, old_wanted: bool, put: TablePut | None) -> None:
    if old_wanted and put is None:
        raise ValueError(f"node '{node.name}': a reader of its changes needs their old rows, and it has no store")


def _table_table_join(
    parts: Parts, node: Node, operation: TableTableJoin, old: bool, put: TablePut | None, forward: ChangeConsumer
) -> tuple[Consumer, Consumer]:
    left, right = node.inputs
    left_above, right_above = ({*_above(parts, name)} for name in node.inputs)
    together = operation.mode == "inner" and not left_above.isdisjoint(right_above)
    sent: dict[Row, bool] = {}
    send = _kept(put, old, together) if put is not None else forward
    if put is None and together:
        send = _noted(sent, parts.context, left_above | right_above, forward)
    owes_old, pairs = old and put is None, pair(parts, node, operation)

    def side(is_left: bool, versioned: bool, other: str) -> Consumer:
        return table_table_join.TableTableJoin(
            node.name,
            operation.mode,
            is_left,
            versioned,
            asked(parts, node, other),
            pairs,
            together,
            owes_old,
            parts.context,
            send,
            sent,
        ).process

    return side(True, operation.left_versioned, right), side(False, operation.right_versioned, left)


def _above(parts: Parts, name: str) -> Iterator[str]:
    """A node, and those of the stage that it is computed from."""
    yield name
    if name in parts.stage.nodes:
        for read in parts.nodes[name].inputs:
            yield from _above(parts, read)


def _kept(put: TablePut, old_wanted: bool, together: bool) -> ChangeConsumer:
    """Writes a change; its old row is the newest of the store (D27). If the sides change `together`, the deletion of
    nothing is not sent on."""

    def keep(key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        before = put.before(key, time)
        put.process(key, new, before if old_wanted else None, time, together and new is None and before is None)

    return keep


def _noted(sent: dict[Row, bool], context: Context, above: set[str], forward: ChangeConsumer) -> ChangeConsumer:
    """Sends on what is not the deletion of nothing, as far as `sent` tells, by key, whether the last one was a row: or
    a node above has failed on the key's row before, behind which the join has none that anyone could know."""

    def send(key: Row, new: Row | None, old: Before | None, latest: bool, time: int) -> None:
        if new is not None or sent.get(key, False) or context.failed_ahead(above, key):
            sent[key] = new is not None
            forward(key, new, old, latest, time)

    return send


def _aggregate(
    parts: Parts, node: Node, operation: Aggregate, put: TablePut | None, forward: ChangeConsumer
) -> Consumer:
    kept, store = node.store, parts.tables.get(node.name)
    grace = 0 if kept is None else (kept.grace if kept.grace is not None else kept.retention) or 0
    results = Results(put, parts.old_wanted(node.name), forward, store, grace)
    operator = aggregate_operator(parts.plan, node, operation, results, parts.context)
    parts.beside[node.name] = operator.content
    if operation.final:
        assert isinstance(operator, WindowedAggregate)
        parts.waiting[node.name] = operator
    return operator.process


def _suppress(parts: Parts, node: Node, operation: Suppress, put: TablePut | None, forward: ChangeConsumer) -> Consumer:
    held, schema, old = parts.suppressed[node.name], parts.schema(node), parts.old_wanted(node.name)
    holding = Suppressing(node.name, operation, schema, held, parts.size(schema), put, old, parts.context, forward)
    parts.waiting[node.name], parts.beside[node.name] = holding, holding.content
    return holding.process
