"""Why a node does not mean what its predecessor did, in the words of the language, and which node decided it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from vsc.changes.derivation import Derivation, read_as
from vsc.changes.values import alike, are_items, shown
from vsc.plan import Aggregate, Column, Item, Node, Plan, Rekey, Source, WithinAggregate
from vsc.plan import expressions as exprs
from vsc.plan.operations import AggregateCall
from vsc.plan.record import record
from vsc.plan.types import INTERVAL, STRING
from vsc.plan.words import article, duration

__all__ = ["Reason", "Reasons"]

_DERIVED = {"op", "row", "left_schema", "columns", "connector", "rank", "dedupe", "rekeyed", "items", "calls"}
"""Members that follow from others, or are compared elsewhere."""
_FLAGS = {
    ("left", False): "an inner join", ("left", True): "a left join",
    ("as_of", False): "a join with the newest row", ("as_of", True): "a join with the row valid at its time",
    ("strictly_before", False): "a join with the row valid at its time",
    ("strictly_before", True): "a join with the row valid before its time",
    ("drop_older", False): "with the records older than the history",
    ("drop_older", True): "without the records older than the history",
    ("global_", False): "an ordinary table", ("global_", True): "a global table",
    ("final", False): "sent with each change (`emit changes`)", ("final", True): "sent once (`emit final`)",
    ("versioned", False): "of an unversioned table", ("versioned", True): "of a versioned table",
    ("left_versioned", False): "unversioned on the left", ("left_versioned", True): "versioned on the left",
    ("right_versioned", False): "unversioned on the right", ("right_versioned", True): "versioned on the right",
    ("until", "time_limit"): "held `until time limit`", ("until", "window_closes"): "held `until window closes`",
    ("mode", "inner"): "an inner join", ("mode", "left"): "a left join", ("mode", "outer"): "an outer join",
}  # fmt: skip
"""What a member says, where its name says nothing to a user."""
_STRICTLY = {False: "a join that counts records of the same time", True: "a join `strictly before`"}
_CLAUSES = {"on": "on", "item": "by", "group": "group by", "foreign_key": "on", "delete_when": "delete when"}


@record
class Reason:
    """Why, and the node that decided it."""

    text: str
    node: Node


class Reasons:
    """The reasons of a new plan's nodes, given the `pairs` and the derivations of both plans."""

    def __init__(
        self,
        old: Plan,
        new: Plan,
        pairs: Mapping[str, Node],
        was: Mapping[str, Derivation],
        now: Mapping[str, Derivation],
    ) -> None:
        self._old, self._new = ({node.name: node for node in plan.nodes} for plan in (old, new))
        self._pairs, self._was, self._now = pairs, was, now
        self._rows: dict[str, Reason] = {}

    def of_key(self, new: Node, old: Node) -> Reason:
        """For a key of other columns."""
        was, now = _columns(old.schema.key), _columns(new.schema.key)
        return Reason(f"the key of `{new.owner}` was {was}, is {now}", new)

    def of_rows(self, new: Node, old: Node) -> Reason:
        """Why other records come out of it. Asked of its inputs first."""
        if new.name not in self._rows:
            above = self._changed_above(new, old)
            self._rows[new.name] = self._of_own_rows(new, old) if above is None else self.of_rows(*above)
        return self._rows[new.name]

    def _of_own_rows(self, new: Node, old: Node) -> Reason:
        if isinstance(new.operation, Source) and old.schema.key != new.schema.key:
            return self.of_key(new, old)
        text = _of_options(new, old)
        if text is not None:
            return Reason(text, new)
        own = next(_differences(old, new), None)
        if own is not None:
            return Reason(f"`{new.owner}`: {own}", new)
        for item in _items_of(new):
            read = self._column_read(new, old, item)
            if read is not None:
                return read
        return self.other_input(new, old)

    def of_column(self, new: Node, old: Node, name: str) -> Reason:
        """Why a column that both have holds something else."""
        while True:
            was, now = _item(old, name), _item(new, name)
            if was is not None and now is not None:
                if not alike(was.expr, now.expr):
                    return Reason(f"`{new.owner}`: `{name}` {_unlike(was, now)}", new)
                return self._column_read(new, old, now) or self.of_rows(new, old)
            above = self._above(new, old, 0) if was is now else None
            if above is None or not all(_has(node, name) for node in above):
                break
            new, old = above
        text = _of_options(new, old)
        if text is not None:
            return Reason(text, new)
        types = [column.type for node in (old, new) for column in node.schema.value if column.name == name]
        if len(types) == 2 and types[0] != types[1]:
            return Reason(f"the column `{name}` of `{new.owner}` was {types[0]}, is {types[1]}", new)
        return Reason(f"the column `{name}` of `{new.owner}` holds something else", new)

    def other_input(self, new: Node, old: Node) -> Reason:
        """For a node that reads others than before."""
        conditions = [_conditions(plan, node) for plan, node in ((self._old, old), (self._new, new))]
        if conditions[0] != conditions[1] and any(conditions):
            nothing = "all rows" if self._new[new.inputs[0]].kind == "table" else "all records"
            was, now = (" and ".join(f"`{one}`" for one in found) or nothing for found in conditions)
            return Reason(f"`{new.owner}` took {was}, takes {now}", new)
        read = [list(_read(plan, node)) for plan, node in ((self._old, old), (self._new, new))]
        was, now = (", ".join(f"`{node.owner}`" for node in nodes) for nodes in read)
        if was != now:
            return Reason(f"`{new.owner}` reads {now} instead of {was}", new)
        for before, after in zip(*read, strict=True):
            if self._pairs.get(after.name) is not before:
                ops = [node.operation.op.replace("_", " ") for node in (before, after)]
                words = f"was {article(ops[0])}, is {article(ops[1])}"
                return Reason(f"`{after.owner}`, which `{new.owner}` reads, {words}", after)
        for before, after in zip(old.inputs, new.inputs, strict=False):
            keys = _key(self._old[before]), _key(self._new[after])
            if keys[0] != keys[1]:
                return Reason(f"`{new.owner}`: its key was {keys[0]}, is {keys[1]}", new)
        return Reason(f"`{new.owner}` reads {now} under another key", new)

    def _changed_above(self, new: Node, old: Node) -> tuple[Node, Node] | None:
        """The first input from which other records come."""
        for place in range(len(new.inputs)):
            above = self._above(new, old, place)
            if above is not None and self._now[above[0].name].rows != self._was[above[1].name].rows:
                return above
        return None

    def _above(self, new: Node, old: Node, place: int) -> tuple[Node, Node] | None:
        """An input of both, if that is the same node."""
        if place >= min(len(new.inputs), len(old.inputs)):
            return None
        now, was = self._new[new.inputs[place]], self._old[old.inputs[place]]
        return (now, was) if self._pairs.get(now.name) is was else None

    def _column_read(self, new: Node, old: Node, item: Item | AggregateCall) -> Reason | None:
        """Why a column that an item of both reads holds something else."""
        seen = exprs.parts(item.expr) if isinstance(item, Item) else (p for a in item.args for p in exprs.parts(a))
        for part in seen:
            above = self._above(new, old, part.input) if isinstance(part, exprs.Column) else None
            if above is None or not isinstance(part, exprs.Column) or not all(_has(node, part.name) for node in above):
                continue
            columns = self._now[above[0].name].columns, self._was[above[1].name].columns
            if columns[0].get(part.name) != columns[1].get(part.name):
                return self.of_column(*above, part.name)
        return None


def _of_options(new: Node, old: Node) -> str | None:
    """Which option of a source gives one of its columns another meaning."""
    if not isinstance(new.operation, Source) or not isinstance(old.operation, Source):
        return None
    declared = {column.name: column for column in old.operation.columns}
    for column in new.operation.columns:
        was, now = (dict(read_as(node, declared.get(column.name, column))) for node in (old, new))
        for name in sorted({*was, *now}):
            if was.get(name) != now.get(name):
                before, after = (f"'{found[name]}'" if name in found else "not given" for found in (was, now))
                return f"`{new.owner}`: {name} was {before}, is {after}"
    return None


def _has(node: Node, name: str) -> bool:
    return any(column.name == name for column in (*node.schema.key, *node.schema.value))


def _items_of(node: Node) -> Iterator[Item | AggregateCall]:
    """The computed parts of an operation."""
    for name in (field.name for field in fields(node.operation)):
        value = getattr(node.operation, name)
        yield from (one for one in (value if isinstance(value, tuple) else (value,))
                    if isinstance(one, (Item, AggregateCall)))  # fmt: skip


def _item(node: Node, name: str) -> Item | None:
    """The item of a map or join that computes a column."""
    items: tuple[Item, ...] = getattr(node.operation, "items", ())
    if isinstance(node.operation, Aggregate):
        return None
    return next((item for item in items if item.name == name), None)


def _read(plan: Mapping[str, Node], node: Node) -> Iterator[Node]:
    """The nodes that the user's node reads."""
    for name in node.inputs:
        at = plan[name]
        yield from _read(plan, at) if at.part_of == node.owner else (at,)


def _key(node: Node) -> str:
    """What the records of a node are keyed by."""
    operation = node.operation
    parts = [_text(i) for i in operation.items] if isinstance(operation, Rekey) else [c.name for c in node.schema.key]
    return ", ".join(f"`{part}`" for part in parts)


def _conditions(plan: Mapping[str, Node], node: Node) -> list[str]:
    """The conditions of the filters between a node and the first one above that is not a filter or a map."""
    found: list[str] = []
    at = plan[node.inputs[0]] if node.inputs else node
    while at.operation.row_by_row and at.store is None:
        predicate = getattr(at.operation, "predicate", None)
        found += [_text(predicate)] if predicate is not None else []
        at = plan[at.inputs[0]]
    return found[::-1]


def _differences(old: Node, new: Node) -> Iterator[str]:
    """How the operations differ in what decides which records there are."""
    if old.kind != new.kind:
        yield f"it was {article(old.kind)}, is {article(new.kind)}"
    before, after = old.operation, new.operation
    if isinstance(after, Aggregate) and isinstance(before, Aggregate):
        yield from _calls(before, after)
    skipped = _DERIVED | set(after.limits)
    if isinstance(after, WithinAggregate) and isinstance(before, WithinAggregate):
        yield from _within(before, after)
        skipped |= {"overs", "before", "after", "strictly_before"}
    if isinstance(after, Rekey) and isinstance(before, Rekey):
        skipped -= {"items"}
    for name in (field.name for field in fields(after) if field.name not in skipped):
        was, now = getattr(before, name), getattr(after, name)
        if are_items(was, now):
            clause = _CLAUSES.get(name, "its key")
            if len(was) != len(now):
                yield f"{clause} was {shown(was)}, is {shown(now)}"
            yield from (f"{clause} {_unlike(*pair)}" for pair in zip(was, now, strict=False) if not alike(*pair))
        elif not alike(was, now):
            yield _told(name, was, now)


def _told(name: str, was: Any, now: Any) -> str:
    if isinstance(was, Item) and isinstance(now, Item):
        return f"{_CLAUSES.get(name, name)} {_unlike(was, now)}"
    if (name, was) in _FLAGS and (name, now) in _FLAGS:
        return f"it was {_FLAGS[name, was]}, is {_FLAGS[name, now]}"
    if name == "within":
        was, now = duration(was), duration(now)
    return f"{_CLAUSES.get(name, name)} was {shown(was)}, is {shown(now)}"


def _calls(was: Aggregate, now: Aggregate) -> Iterator[str]:
    """How the aggregates differ that are computed."""
    gone = [call for call in was.calls if not any(alike(call, one) for one in now.calls)]
    come = [call for call in now.calls if not any(alike(one, call) for one in was.calls)]
    texts, now_texts = ([_text(call) for call in calls] for calls in (gone, come))
    if texts and texts == now_texts:
        yield next(filter(None, map(_types, gone, come)), f"the types in {shown(tuple(gone))} differ")
    elif texts and now_texts:
        yield f"it computed {shown(tuple(gone))}, computes {shown(tuple(come))}"
    elif texts:
        yield f"it no longer computes {shown(tuple(gone))}"
    elif now_texts:
        yield f"it computes {shown(tuple(come))} as well, which needs the earlier rows"
    elif not alike(was.calls, now.calls):
        yield f"it computes {shown(now.calls)} in another order"


def _within(was: WithinAggregate, now: WithinAggregate) -> Iterator[str]:
    """How joins that aggregate differ in the records that count, and in what is computed of them."""
    for name in ("before", "after"):
        lengths = duration(getattr(was, name)), duration(getattr(now, name))
        if lengths[0] != lengths[1]:
            yield f"{name} was {lengths[0]}, is {lengths[1]}"
    if was.waits != now.waits and was.after == now.after:
        graces = duration(was.grace), duration(now.grace)
        then = "no result waits any more, and those that do would be lost" if was.waits else "results wait from now on"
        yield f"grace was {graces[0]}, is {graces[1]}: {then}"
    if was.strictly_before != now.strictly_before:
        yield f"it was {_STRICTLY[was.strictly_before]}, is {_STRICTLY[now.strictly_before]}"
    gone, come = (
        [
            f"`{call.text}`"
            for call, over in _over(one)
            if not any(over == o and alike(call, c) for c, o in _over(other))
        ]
        for one, other in ((was, now), (now, was))
    )
    if gone and come:
        yield f"it computed {', '.join(gone)}, computes {', '.join(come)}"


def _over(operation: WithinAggregate) -> Iterator[tuple[AggregateCall, int]]:
    """The calls, with how far back each looks."""
    yield from zip(operation.calls, operation.overs, strict=True)


def _types(was: AggregateCall, now: AggregateCall) -> str | None:
    """Which type, or which constant, differs in two calls with one text."""
    pairs = zip((a.type for a in was.args), (a.type for a in now.args), strict=False)
    types = next(((a, b) for a, b in pairs if a != b), (was.type, now.type))
    if types[0] != types[1]:
        return f"{shown(now)} was computed from {types[0]}, is computed from {types[1]}"
    inside = _inside(was.args, now.args)
    return None if inside is None else f"{shown(now)} {inside}"


def _unlike(was: Item, now: Item) -> str:
    """How two items differ, in words."""
    if _text(was) != _text(now):
        return f"was {shown(was)}, is {shown(now)}"
    if was.expr.type != now.expr.type:
        return f"({shown(now)}) was {was.expr.type}, is {now.expr.type}"
    types = [
        {part.name: part.type for part in exprs.parts(i.expr) if isinstance(part, exprs.Column)} for i in (was, now)
    ]
    changed = next((name for name in types[1] if types[0].get(name, types[1][name]) != types[1][name]), None)
    if changed is not None:
        return f"({shown(now)}) reads `{changed}`, which was {types[0][changed]}, is {types[1][changed]}"
    inside = _inside([was.expr], [now.expr])
    if inside is not None:
        return f"({shown(now)}) {inside}"
    return f"({shown(now)}) reads other columns under the same names"


def _inside(was: Sequence[exprs.Expr], now: Sequence[exprs.Expr]) -> str | None:
    """Which function of the user's, or which constant, differs in expressions with one text."""
    own = [
        [part.function for one in of for part in exprs.parts(one) if isinstance(part, exprs.Call) and part.is_own]
        for of in (was, now)
    ]
    called = next(((a, b) for a, b in zip(*own, strict=False) if a != b), None)
    return _constant(was, now) if called is None else f"called {called[0]}, calls {called[1]}"


def _constant(was: Sequence[exprs.Expr], now: Sequence[exprs.Expr]) -> str | None:
    """Which constant differs in expressions with one text: ``let`` gave it another value."""
    found = [[part for one in of for part in exprs.parts(one) if isinstance(part, exprs.Literal)] for of in (was, now)]
    differing = [(a, b) for a, b in zip(*found, strict=False) if a != b]
    if not differing or len(found[0]) != len(found[1]):
        return "has other constants" if found[0] != found[1] else None
    before, after = map(_literal, differing[0])
    return f"had the constant {before}, has {after}"


def _literal(literal: exprs.Literal) -> str:
    if literal.type == INTERVAL and isinstance(literal.value, int):
        return duration(literal.value)
    return f"'{literal.value}'" if literal.type == STRING else str(literal.value)


def _text(part: Item | AggregateCall) -> str:
    return " ".join(part.text.split())


def _columns(columns: tuple[Column, ...]) -> str:
    return "(" + ", ".join(f"{c.name} {c.type}" for c in columns) + ")"
