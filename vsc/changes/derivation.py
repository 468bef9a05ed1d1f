"""What a node's records depend on, up to the sources: which records there are, and how each column is computed.

Filters and maps leave no trace but the conditions and expressions in them. So it makes no difference over how many
nodes these are spread, what the nodes are called, and which other columns they compute. A node's bounds (grace and the
like) do not count, nor does what a source reads from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from vsc.changes.terms import Scope, Terms
from vsc.plan import PIECE, REVISION, ROW_CHANGE, Column, Item, Node, Plan
from vsc.plan.connectors import facts_of
from vsc.plan.order import Walk
from vsc.plan.record import record

__all__ = ["Derivation", "derivations", "read_as"]

_READ_AS = {"timestamp": ("time_zone", "timestampformat", "timestampntzformat"), "date": ("dateformat",)}


@record
class Derivation:
    """Terms: which records there are, the event time of each, its key, and each of its columns (the key's included).

    `fresh`: the columns that come straight from a new column of a source.
    """

    rows: int
    time: int
    key: tuple[int, ...]
    columns: Mapping[str, int]
    fresh: frozenset[str] = frozenset()

    @property
    def scope(self) -> Scope:
        """What an expression over these records sees."""
        return Scope(self.columns, self.time)


def derivations(
    plan: Plan, terms: Terms, names: Mapping[str, str], fresh: Mapping[str, frozenset[str]]
) -> dict[str, Derivation]:
    """The derivation of each node. `names`: what each source is called here; `fresh`: its new columns."""
    plans = _Derivations(plan, terms, names, fresh)
    plans.walk()
    return plans.found


def read_as(node: Node, column: Column) -> tuple[tuple[str, str], ...]:
    """The options of a source that say what is in such a column: the zone and the forms of times, and those by which
    it does not come from the value of a record."""
    connector = node.source.connector
    given = {"time_zone": "UTC"} | {name: str(value) for name, value in (*connector.options, *connector.spark_options)}
    wanted = {name for part, names in _READ_AS.items() if part in str(column.type) for name in names}
    wanted |= {name for name in facts_of(connector.kind).beside if given.get(name) == column.name}
    return tuple(sorted((name, value) for name, value in given.items() if name.lower() in wanted))


class _Derivations(Walk[Derivation]):
    def __init__(self, plan: Plan, terms: Terms, names: Mapping[str, str], fresh: Mapping[str, frozenset[str]]) -> None:
        super().__init__(plan)
        self._terms, self._names, self._fresh = terms, names, fresh

    def _source(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        name, term = self._names[node.name], self._terms.of
        columns = {c.name: term("column", name, c.name, read_as(node, c)) for c in operation.columns}
        scope = Scope(columns, term("time", name))
        time = scope.time if operation.timestamp is None else self._item(operation.timestamp, scope)
        gone = None if operation.delete_when is None else self._item(operation.delete_when, scope)
        key = tuple(columns[column.name] for column in node.schema.key)
        types = tuple(str(column.type) for column in node.schema.key)
        rows = term("source", name, node.kind, operation.global_, time, gone, key, types)
        return Derivation(rows, time, key, columns, self._fresh.get(node.name, frozenset()))

    def _filter(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        (of,) = inputs
        conditions = self._terms.conditions(operation.predicate.expr, (of.scope,))
        kind, *rest = self._terms.parts(of.rows)
        base, before = rest if kind == "filter" else (of.rows, frozenset())
        return self._passed(node, of, self._terms.of("filter", base, before | conditions))

    def _map(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        (of,) = inputs
        if operation.timestamp is None:
            return self._computed(node, of, of.rows, operation.items, (of,))
        time = self._item(operation.timestamp, of.scope)
        found = self._computed(node, of, self._terms.of("timed", of.rows, time), operation.items, (of,))
        return Derivation(found.rows, time, found.key, found.columns, found.fresh)

    def _rekey(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        (of,) = inputs
        key = tuple(self._item(item, of.scope) for item in operation.items)
        types = tuple(str(item.expr.type) for item in operation.items)
        return self._passed(node, of, self._terms.of("rekey", of.rows, key, types), key)

    def _row_changes(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        (of,) = inputs
        key = tuple(self._item(item, of.scope) for item in operation.items)
        types = tuple(str(item.expr.type) for item in operation.items)
        rows = self._terms.of("row changes", operation.left, operation.versioned, of.rows, key, types)
        flags = {column.name: self._terms.of("own", column.name) for column in ROW_CHANGE}
        return self._passed(node, replace(of, columns={**of.columns, **flags}), rows, key)

    def _to_table(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        (of,) = inputs
        gone = None if operation.delete_when is None else self._item(operation.delete_when, of.scope)
        return self._passed(node, of, self._terms.of("to_table", of.rows, gone))

    def _materialize(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        return self._passed(node, inputs[0], inputs[0].rows)

    def _grace(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        return self._passed(node, inputs[0], inputs[0].rows)

    def _reorder(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        return self._passed(node, inputs[0], inputs[0].rows)

    def _to_stream(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        return self._passed(node, inputs[0], self._terms.of("to_stream", inputs[0].rows))

    def _suppress(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        return self._passed(node, inputs[0], self._terms.of("suppress", operation.until, inputs[0].rows))

    def _distinct(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        (of,) = inputs
        rows = self._terms.of("distinct", operation.within, of.rows, of.key)
        if not operation.rekeyed:
            return self._passed(node, of, rows)
        return self._passed(node, of, rows, tuple(of.columns[column.name] for column in node.schema.key))

    def _merge(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        term = self._terms.of
        names = sorted(column.name for column in node.schema.value)
        # one order for all columns, also of inputs with the same records
        inputs = sorted(inputs, key=lambda of: (of.rows, of.time, of.key, [of.columns[name] for name in names]))
        rows = tuple(of.rows for of in inputs)

        def merged(parts: Sequence[int]) -> int:
            return term("merged", rows, tuple(parts))

        time = merged([of.time for of in inputs])
        key = tuple(merged(parts) for parts in zip(*(of.key for of in inputs), strict=True))
        columns = {column.name: merged([of.columns[column.name] for of in inputs]) for column in node.schema.value}
        fresh = frozenset.intersection(*(of.fresh for of in inputs))
        return Derivation(term("merge", rows), time, key, {**_named(node, key), **columns}, fresh)

    def _explode(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        rows, within = self._elements(operation, inputs[0], ())
        return self._passed(node, within, rows)

    def _explode_changes(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        rows, within = self._elements(operation, inputs[0], (operation.versioned,))
        return self._passed(node, within, rows, tuple(within.columns[column.name] for column in node.schema.key))

    def _elements(self, operation: Any, of: Derivation, more: tuple[Any, ...]) -> tuple[int, Derivation]:
        """Which elements of arrays there are, and the records with them and their positions."""
        rows = self._terms.of("explode", *more, of.rows, self._item(operation.item, of.scope))
        new = {operation.item.name: self._terms.of("element", rows)}
        if operation.position is not None:
            new[operation.position] = self._terms.of("position", rows)
        return rows, Derivation(of.rows, of.time, of.key, {**of.columns, **new}, of.fresh - set(new))

    def _stream_table_join(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        left, right = inputs
        which = "before" if operation.strictly_before else "as of" if operation.as_of else "newest"
        return self._joined(node, operation, left, right, left.key, which, operation.left and not operation.drop_older)

    def _correct(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        left, right = inputs
        term, which = self._terms.of, "before" if operation.strictly_before else "as of"
        by = tuple(self._item(item, left.scope) for item in operation.by)
        keeps = operation.left and not operation.drop_older
        found_by = None if keeps else (which, right.rows, operation.left)
        rows = term("corrected", left.rows, left.key, found_by, by)
        found = self._wrapped(right, "found", which, left.key, right.rows)
        counted = {**left.columns, REVISION.name: term("revision", rows)}
        record = Derivation(left.rows, left.time, left.key, counted, left.fresh)
        return self._computed(node, Derivation(rows, left.time, by, {}), rows, operation.items, (record, found))

    def _stream_stream_join(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        left, right = inputs
        bounds = operation.mode, operation.before, operation.after
        rows = self._terms.of("stream join", *bounds, left.rows, left.key, right.rows, right.key)
        sides = tuple(self._wrapped(of, "side", rows, number) for number, of in enumerate(inputs))
        key = tuple(self._terms.of("either", *of) for of in zip(left.key, right.key, strict=True))
        own = Derivation(rows, self._terms.of("time", rows), key, {})
        return self._computed(node, own, rows, operation.items, sides)

    def _within_aggregate(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        left, right = inputs
        bounds = operation.left, operation.before, operation.after, operation.strictly_before, operation.waits
        rows = self._terms.of("within", *bounds, left.rows, left.key, right.rows, right.key)
        calls = [self._terms.call(call, right.scope) for call in operation.calls]
        results = {
            f"#{number}": self._terms.of("result", rows, over, call)
            for number, (call, over) in enumerate(zip(calls, operation.overs, strict=True))
        }
        of_calls = Derivation(rows, self._terms.of("time", rows), (), results)
        own = Derivation(rows, left.time, left.key, {})
        return self._computed(node, own, rows, operation.items, (left, of_calls))

    def _stream_global_join(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        left, right = inputs
        on = tuple(self._item(item, left.scope) for item in operation.on)
        return self._joined(node, operation, left, right, on, "global", operation.left)

    def _joined(
        self,
        node: Node,
        operation: Any,
        left: Derivation,
        right: Derivation,
        key: tuple[int, ...],
        which: str,
        keeps: bool,
    ) -> Derivation:
        """A stream joined with the rows of a table that have the `key`; whether it `keeps` all of its records."""
        found_by = None if keeps else (which, right.rows, operation.left)
        rows = self._terms.of("join", left.rows, key, found_by)
        found = self._wrapped(right, "found", which, key, right.rows)
        return self._computed(node, left, rows, operation.items, (left, found))

    def _table_table_join(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        left, right = inputs
        versioned = operation.left_versioned, operation.right_versioned
        rows = self._terms.of("table join", operation.mode, *versioned, left.rows, right.rows)
        sides = tuple(self._wrapped(of, "side", rows, number) for number, of in enumerate(inputs))
        own = Derivation(rows, self._terms.of("time", rows), left.key, {})
        return self._computed(node, own, rows, operation.items, sides)

    def _subscribe(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        (of,) = inputs
        key = tuple(self._item(item, of.scope) for item in operation.foreign_key)
        rows = self._terms.of("subscribe", operation.left, operation.versioned, of.rows, key)
        columns = {c.name: of.columns.get(c.name, self._terms.of("own", c.name)) for c in node.schema.value}
        return Derivation(rows, of.time, key, {**_named(node, key), **columns}, of.fresh)

    def _answer(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        subscribed, right = inputs
        left = self.behind(node)
        rows = self._terms.of("answer", operation.left, operation.versioned, subscribed.rows, right.rows)
        sides = tuple(self._wrapped(of, "side", rows, number) for number, of in enumerate((left, right)))
        own = Derivation(rows, self._terms.of("time", rows), left.key, {})
        found = self._computed(node, own, rows, operation.items, sides)
        piece = {column.name: self._terms.of("own", column.name) for column in PIECE if operation.complete}
        return replace(found, columns={**found.columns, **piece})

    def _group_changes(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        (of,) = inputs
        key = tuple(self._item(item, of.scope) for item in operation.group)
        types = tuple(str(item.expr.type) for item in operation.group)
        spans = () if operation.window is None else (operation.window.shape,)
        rows = self._terms.of("changes", operation.versioned, of.rows, key, types, *spans)
        key += tuple(self._terms.of("bound", rows, place) for place in range(len(node.schema.key) - len(key)))
        columns = {}
        for column in node.schema.value:
            part, _, name = column.name.partition("#")
            columns[column.name] = self._terms.of(part, of.columns[name] if part else name)
        return Derivation(rows, of.time, key, {**_named(node, key), **columns}, of.fresh)

    def _aggregate(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        (of,) = inputs
        row = of if operation.over == "stream" else self.behind(node)
        calls = tuple(self._terms.call(call, row.scope) for call in operation.calls)
        window = operation.window
        spans = None if window is None else window.shape
        rows = self._terms.of("aggregate", of.rows, of.key, calls, spans, operation.final)
        bounds = range(len(node.schema.key) - len(of.key))
        key = (*of.key, *(self._terms.of("bound", rows, place) for place in bounds))
        results = {f"#{number}": self._terms.of("result", rows, call) for number, call in enumerate(calls)}
        seen = Derivation(rows, self._terms.of("time", rows), key, {**_named(node, key), **results})
        return self._computed(node, seen, rows, operation.items, (seen,))

    def _dead_letters(self, node: Node, operation: Any, inputs: list[Derivation]) -> Derivation:
        rows = self._terms.of("dead letters", operation.lost, operation.of)
        return Derivation(rows, rows, (), {c.name: self._terms.of("own", c.name) for c in node.schema.value})

    # ----------------------------------------------------------------------------------------------- parts of the rules

    def _item(self, item: Item, scope: Scope) -> int:
        return self._terms.expression(item.expr, (scope,))

    def _wrapped(self, of: Derivation, *what: Any) -> Derivation:
        """Rows of a table, as a join finds them."""
        columns = {name: self._terms.of(*what, column) for name, column in of.columns.items()}
        return Derivation(of.rows, self._terms.of(*what, of.time), of.key, columns, of.fresh)

    def _passed(self, node: Node, of: Derivation, rows: int, key: tuple[int, ...] | None = None) -> Derivation:
        """Records that keep their columns."""
        key = of.key if key is None else key
        columns = {column.name: of.columns[column.name] for column in node.schema.value}
        return Derivation(rows, of.time, key, {**_named(node, key), **columns}, of.fresh)

    def _computed(
        self, node: Node, of: Derivation, rows: int, items: Sequence[Item], seen: tuple[Derivation, ...]
    ) -> Derivation:
        """Records that keep the key and time of their input, with computed columns."""
        scopes = tuple(one.scope for one in seen)
        columns = {item.name: self._terms.expression(item.expr, scopes) for item in items}
        inherited = {term for one in seen for name, term in one.columns.items() if name in one.fresh}
        fresh = frozenset(name for name, term in columns.items() if term in inherited)
        return Derivation(rows, of.time, of.key, {**_named(node, of.key), **columns}, fresh)


def _named(node: Node, key: Sequence[int]) -> dict[str, int]:
    return {column.name: term for column, term in zip(node.schema.key, key, strict=True)}
