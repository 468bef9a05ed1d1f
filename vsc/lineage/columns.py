"""The columns of sources that each column of a sink depends on, from the plan alone.

Each node's columns depend on those of its inputs; so does whether there is a row at all. A row that a join finds, a
group, a window depend on the columns by which they are found, which is said once for all columns of a sink.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vsc.lineage.inputs import NONE, Field, Inputs, Scope, Transformation, because, merged, of_expression, through
from vsc.plan import REVISION, AggregateCall, Column, Connector, DeadLetters, Item, Node, Plan, Sink
from vsc.plan.connectors import facts_of
from vsc.plan.order import Walk
from vsc.plan.record import record
from vsc.plan.types import BIGINT, STRING, TIMESTAMP

__all__ = ["SinkLineage", "sink_lineages"]

_BY_SECOND = ("min_by", "max_by", "collect_top", "collect_last")
"""The aggregates whose second argument only puts rows in order."""
_BY_TIME = ("first", "last", "collect_list")
"""The aggregates that take rows in the order of their event times."""


@record
class SinkLineage:
    """What a sink writes: its `columns`, what each depends on (`fields`), and what its `rows` depend on."""

    sink: Sink
    columns: tuple[Column, ...]
    fields: Mapping[str, Inputs]
    rows: Inputs


@record
class _Records:
    """What a node's records depend on: each column (the key's included), the event time, and which rows there are."""

    columns: Mapping[str, Inputs]
    time: Inputs
    rows: Inputs

    @property
    def scope(self) -> Scope:
        """What an expression over these records sees."""
        return Scope(self.columns, self.time)

    def key(self, node: Node) -> tuple[Inputs, ...]:
        """The key's columns, in order; these are the records of `node`."""
        return tuple(self.columns[column.name] for column in node.schema.key)


def sink_lineages(plan: Plan) -> tuple[SinkLineage, ...]:
    """What each sink writes, and what that depends on, in the order of the plan."""
    nodes = _Nodes(plan)
    return tuple(_of_sink(sink, plan.node(sink.node), nodes.found[sink.node]) for sink in plan.sinks)


def _of_sink(sink: Sink, node: Node, records: _Records) -> SinkLineage:
    own = (*node.schema.key, *node.schema.value)
    added = dict(_added(node, sink.connector, records.time))
    fields = {column.name: records.columns[column.name] for column in own}
    fields |= {column.name: inputs for column, inputs in added.items()}
    return SinkLineage(sink, (*own, *added), fields, records.rows)


def _added(node: Node, connector: Connector, time: Inputs) -> Iterator[tuple[Column, Inputs]]:
    """The columns that a sink adds to those of its node."""
    if connector.keeps_history:
        yield Column(connector.valid_from, TIMESTAMP), time
        yield Column(connector.valid_to, TIMESTAMP), through(time, "TRANSFORMATION")
    elif node.kind == "table":
        for name in facts_of(connector.kind).adds:
            yield (Column(name, BIGINT), time) if name == "_timestamp" else (Column(name, STRING), NONE)
    elif dict(connector.options).get("with_timestamp") in (True, "true"):
        yield Column("_timestamp", BIGINT), time


class _Nodes(Walk[_Records]):
    """What the records of each node depend on, by its name (`found`)."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.walk(but=(DeadLetters,))
        for node in plan.dead_letters:
            self.found[node.name] = self._lost(node)

    def _source(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        itself = frozenset((Transformation("DIRECT", "IDENTITY"),))
        columns: dict[str, Inputs] = {c.name: {Field(node.name, c.name): itself} for c in operation.columns}
        scope = Scope(columns, NONE)
        gone = because(_item(operation.delete_when, scope), "FILTER")
        return _Records(columns, _item(operation.timestamp, scope), gone)

    def _filter(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        (of,) = inputs
        return _Records(of.columns, of.time, merged(of.rows, because(_item(operation.predicate, of.scope), "FILTER")))

    def _map(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        (of,) = inputs
        columns = self._computed(node, self._key(node, of), operation.items, of)
        if operation.timestamp is None:
            return _Records(columns, of.time, of.rows)
        time = _item(operation.timestamp, of.scope)  # a record is dropped if it is null, or later than before
        return _Records(columns, time, merged(of.rows, because(merged(time, of.time), "FILTER")))

    def _rekey(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        (of,) = inputs
        key = [_item(item, of.scope) for item in operation.items]
        # A record is dropped if its key is null. One that is added stands before what says more of the key.
        rows = merged(of.rows, because(merged(*key), "FILTER")) if node.part_of is None else of.rows
        return _Records(_named(node, key, of.columns), of.time, rows)

    _row_changes = _rekey

    def _to_table(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        (of,) = inputs
        gone = because(_item(operation.delete_when, of.scope), "FILTER")
        return _Records(self._passed(node, of), of.time, merged(of.rows, gone))

    def _same(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        (of,) = inputs
        return _Records(self._passed(node, of), of.time, of.rows)

    _grace = _materialize = _reorder = _to_stream = _suppress = _same

    def _distinct(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        (of,) = inputs
        told_apart = because(merged(*of.key(self.nodes[node.inputs[0]])), "GROUP_BY")
        columns = {column.name: of.columns[column.name] for column in (*node.schema.key, *node.schema.value)}
        return _Records(columns, of.time, merged(of.rows, told_apart, because(of.time, "WINDOW")))

    def _merge(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        keys = [of.key(self.nodes[name]) for of, name in zip(inputs, node.inputs, strict=True)]
        key = [merged(*parts) for parts in zip(*keys, strict=True)]
        columns = {column.name: merged(*(of.columns[column.name] for of in inputs)) for column in node.schema.value}
        time, rows = merged(*(of.time for of in inputs)), merged(*(of.rows for of in inputs))
        return _Records(_named(node, key, columns), time, rows)

    def _explode(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        (of,) = inputs
        array = _item(operation.item, of.scope)
        element, rows = through(array, "TRANSFORMATION"), merged(of.rows, because(array, "FILTER"))
        new = {operation.item.name: element}
        if operation.position is not None:
            new[operation.position] = element
        columns = {**of.columns, **new}
        # of a table, the position is a key column
        key = [columns[column.name] for column in node.schema.key] if operation.op != "explode" else self._key(node, of)
        return _Records(_named(node, key, columns), of.time, rows)

    _explode_changes = _explode

    def _stream_table_join(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        by_time = operation.as_of or operation.strictly_before or operation.max_age is not None
        return self._joined(node, operation, inputs, by_time)

    def _correct(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        left, right = inputs
        keys = [of.key(self.nodes[name]) for of, name in zip(inputs, node.inputs, strict=True)]
        rows = self._found_by((left, right), (keys[0], keys[1]), True)
        key = [_item(item, left.scope) for item in operation.by]
        rows = merged(rows, because(merged(*key), "FILTER"))
        record = _Records({**left.columns, REVISION.name: NONE}, left.time, left.rows)
        return _Records(self._computed(node, key, operation.items, record, right), left.time, rows)

    def _stream_stream_join(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        return self._joined(node, operation, inputs, by_time=True)

    def _within_aggregate(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        left, right = inputs
        met = because(
            merged(*self._key(node, left), *right.key(self.nodes[node.inputs[1]]), left.time, right.time), "JOIN"
        )
        results = {f"#{n}": merged(_call(call, right.scope), met) for n, call in enumerate(operation.calls)}
        scopes = [left.scope, Scope(results, right.time)]
        items = {item.name: of_expression(item.expr, scopes) for item in operation.items}
        rows = left.rows if operation.left else merged(left.rows, right.rows, met)
        return _Records(_named(node, self._key(node, left), items), left.time, rows)

    def _stream_global_join(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        left, _ = inputs
        on = [_item(item, left.scope) for item in operation.on]
        return self._joined(node, operation, inputs, operation.max_age is not None, on)

    def _table_table_join(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        return self._joined(node, operation, inputs, by_time=False)

    def _subscribe(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        (of,) = inputs
        key = [_item(item, of.scope) for item in operation.foreign_key]
        return _Records(_named(node, key, of.columns), of.time, of.rows)

    def _answer(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        subscribed, right = inputs
        subscription = self.nodes[node.inputs[0]]
        left_node = self.nodes[subscription.inputs[0]]
        left = self.found[left_node.name]
        keys = subscribed.key(subscription), right.key(self.nodes[node.inputs[1]])
        rows = self._found_by((left, right), keys, by_time=False)
        columns = self._computed(node, left.key(left_node), operation.items, left, right)
        return _Records(columns, merged(left.time, right.time), rows)

    def _group_changes(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        (of,) = inputs
        key = [_item(item, of.scope) for item in operation.group]
        columns = {f"{part}#{name}": of.columns[name] for part in ("old", "new") for name in operation.columns}
        bounds = [through(of.time, "TRANSFORMATION")] * (len(node.schema.key) - len(key))
        rows = merged(of.rows, because(of.time, "WINDOW") if bounds else NONE)
        return _Records(_named(node, [*key, *bounds], columns), of.time, rows)

    def _aggregate(self, node: Node, operation: Any, inputs: list[_Records]) -> _Records:
        (of,) = inputs
        before = self.nodes[node.inputs[0]]
        row = of if operation.over == "stream" else self.behind(node)
        key = of.key(before)
        bounds = [through(of.time, "TRANSFORMATION")] * (len(node.schema.key) - len(key))
        results = {f"#{number}": _call(call, row.scope) for number, call in enumerate(operation.calls)}
        grouped = Scope({**_named(node, [*key, *bounds], {}), **results}, of.time)
        rows = merged(of.rows, because(merged(*key), "GROUP_BY"), because(of.time, "WINDOW") if bounds else NONE)
        items = {item.name: _item(item, grouped) for item in operation.items}
        return _Records({**_named(node, [*key, *bounds], {}), **items}, of.time, rows)

    def _lost(self, node: Node) -> _Records:
        """The records that came to the nodes that lost them, as texts."""
        of = node.operation.of if isinstance(node.operation, DeadLetters) else node.owner
        key, value, raw, times = [NONE], [NONE], [NONE], [NONE]
        for loser in self.plan.nodes:
            if isinstance(loser.operation, DeadLetters) or of not in (None, loser.owner):
                continue
            for name in loser.taken or (loser.name,):
                came, schema = self.found[name], self.nodes[name].schema
                key += (came.columns[column.name] for column in schema.key)
                value += (came.columns[column.name] for column in schema.value)
                raw += came.columns.values() if not loser.inputs else ()
                times.append(came.time)
        texts = {"key": key, "value": value, "raw": raw}
        found = {name: through(merged(*parts), "TRANSFORMATION") for name, parts in texts.items()}
        found["event_time"] = merged(*times)
        return _Records({column.name: found.get(column.name, NONE) for column in node.schema.value}, NONE, NONE)

    # ----------------------------------------------------------------------------------------------- parts of the rules

    def _key(self, node: Node, of: _Records) -> tuple[Inputs, ...]:
        """The key of a node's first input, whose records these are."""
        return of.key(self.nodes[node.inputs[0]])

    def _passed(self, node: Node, of: _Records) -> dict[str, Inputs]:
        return _named(node, self._key(node, of), of.columns)

    def _computed(self, node: Node, key: Sequence[Inputs], items: Sequence[Item], *seen: _Records) -> dict[str, Inputs]:
        scopes = [one.scope for one in seen]
        return _named(node, key, {item.name: of_expression(item.expr, scopes) for item in items})

    def _joined(
        self, node: Node, operation: Any, inputs: list[_Records], by_time: bool, on: Sequence[Inputs] | None = None
    ) -> _Records:
        """Records of the first input with those that they find in the second, by their key or what `on` computes."""
        left, right = inputs
        keys = [of.key(self.nodes[name]) for of, name in zip(inputs, node.inputs, strict=True)]
        rows = self._found_by((left, right), (keys[0] if on is None else on, keys[1]), by_time)
        both = getattr(operation, "mode", None) == "outer"  # the key of a record is that of the side that it has
        key = [merged(*parts) for parts in zip(*keys, strict=True)] if both else keys[0]
        time = left.time if operation.looks_up else merged(left.time, right.time)
        return _Records(self._computed(node, key, operation.items, left, right), time, rows)

    @staticmethod
    def _found_by(sides: Sequence[_Records], keys: Sequence[Sequence[Inputs]], by_time: bool) -> Inputs:
        """What the rows of a join depend on."""
        by = [inputs for key in keys for inputs in key]
        times = [one.time for one in sides] if by_time else []
        return merged(*(one.rows for one in sides), because(merged(*by, *times), "JOIN"))


def _item(item: Item | None, scope: Scope) -> Inputs:
    return NONE if item is None else of_expression(item.expr, (scope,))


def _call(call: AggregateCall, scope: Scope) -> Inputs:
    """What the result of an aggregate function depends on."""
    found = []
    for number, argument in enumerate(call.args):
        inputs = of_expression(argument, (scope,))
        if number == 1 and call.function in _BY_SECOND:
            found.append(because(inputs, "SORT"))
        else:
            found.append(through(inputs, "AGGREGATION", call.function == "count"))
    return merged(*found, because(scope.time, "SORT") if call.function in _BY_TIME else NONE)


def _named(node: Node, key: Sequence[Inputs], columns: Mapping[str, Inputs]) -> dict[str, Inputs]:
    """The columns of a node by their names: its key's, in order, and those of its value that `columns` has."""
    found = {column.name: inputs for column, inputs in zip(node.schema.key, key, strict=True)}
    return found | {column.name: columns.get(column.name, NONE) for column in node.schema.value}
