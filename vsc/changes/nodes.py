"""Which node of a new plan is which of the old one, and whether it means the same.

A node is the old one's successor if it computes the same from successors, under whatever name; else if it has its name.
So a renamed node is found if nothing else about it has changed. Sources are told apart by their names, or by where they
read from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any

from vsc.changes.values import alike, are_items, shown, wider
from vsc.plan import Aggregate, Column, Item, Node, Plan, Schema, Source, Store
from vsc.plan import expressions as exprs
from vsc.plan.record import record
from vsc.plan.words import duration

__all__ = ["Meaning", "Nodes", "limits"]

_DERIVED = {"source": {"connector", "rank", "columns", "max_ahead"}, "filter": {"dedupe"}}
"""Members that follow from others, or are compared elsewhere."""


@record
class Meaning:
    """Whether a node means what its predecessor did: ``same``, ``widened`` or ``changed``; why, and who decided it."""

    state: str
    reason: str
    node: Node


class Nodes:
    """The nodes of two plans."""

    def __init__(self, old: Plan, new: Plan) -> None:
        self._old = {node.name: node for node in old.nodes}
        self._new = {node.name: node for node in new.nodes}
        self._meanings: dict[str, Meaning] = {}

    @cached_property
    def pairs(self) -> Mapping[str, Node]:
        """The predecessor of each node of the new plan that has one, by its name."""
        found: dict[str, Node] = {}
        left = dict(self._old)
        for node in self._ordered():
            before = self._predecessor(node, found, left)
            if before is not None:
                found[node.name] = before
                del left[before.name]
        return found

    @cached_property
    def successors(self) -> Mapping[str, Node]:
        """The successor of each node of the old plan that has one, by its name."""
        return {before.name: self._new[name] for name, before in self.pairs.items()}

    def meaning(self, name: str) -> Meaning:
        """What has become of the meaning of a node of the new plan that has a predecessor."""
        if name not in self._meanings:
            self._meanings[name] = self._judged(self._new[name], self.pairs[name])
        return self._meanings[name]

    def _ordered(self) -> Iterator[Node]:
        """The new nodes, inputs first."""
        seen: set[str] = set()
        for node in self._new.values():
            waiting = [node]
            while waiting:
                top = waiting[-1]
                missing = [self._new[name] for name in top.inputs if name not in seen]
                waiting += missing
                if not missing:
                    waiting.pop()
                    if top.name not in seen:
                        seen.add(top.name)
                        yield top

    def _predecessor(self, node: Node, found: Mapping[str, Node], left: Mapping[str, Node]) -> Node | None:
        same_name = left.get(node.name)
        if isinstance(node.operation, Source):
            others = [one for one in left.values() if isinstance(one.operation, Source) and one.name not in self._new]
            near = [one for one in others if _declared_alike(one, node)]
            there = [one for one in near if _place(one) == _place(node)]
            if same_name is None and (there or len(near) == 1):
                return (there or near)[0]
        elif same_name is None or not self._computes_alike(same_name, node, found):
            for one in left.values():
                if one.name not in self._new and self._computes_alike(one, node, found):
                    return one
        return same_name if same_name is not None and same_name.operation.op == node.operation.op else None

    def _computes_alike(self, old: Node, new: Node, found: Mapping[str, Node]) -> bool:
        inputs = [found[name].name if name in found else None for name in new.inputs]
        return (
            list(old.inputs) == inputs
            and old.operation.op == new.operation.op
            and old.schema == new.schema
            and next(_differences(old, new), None) is None
        )

    def _judged(self, new: Node, old: Node) -> Meaning:
        inputs = [self.pairs.get(name) for name in new.inputs]
        for name, before in zip(new.inputs, inputs, strict=True):
            if before is not None and self.meaning(name).state == "changed":
                return self.meaning(name)
        if [None if before is None else before.name for before in inputs] != list(old.inputs):
            was, now = ", ".join(f"`{n}`" for n in old.inputs), ", ".join(f"`{n}`" for n in new.inputs)
            return Meaning("changed", f"`{new.owner}` reads {now} instead of {was}", new)
        own = next(_differences(old, new), None)
        if own is not None:
            return Meaning("changed", f"`{new.owner}`: {own}", new)
        return self._of_columns(new, old)

    def _of_columns(self, new: Node, old: Node) -> Meaning:
        """What its columns say, once its operation and its inputs mean the same."""
        if old.schema.key != new.schema.key:
            reason = f"the key of `{new.owner}` was {_columns(old.schema.key)}, is {_columns(new.schema.key)}"
            return Meaning("changed", reason, new)
        before = {column.name: column.type for column in old.schema.value}
        reasons = []
        for column in new.schema.value:
            was = before.pop(column.name, None)
            if was is None:
                if not self._is_inherited(new, column):
                    return Meaning("changed", f"`{new.owner}` computes a new column `{column.name}`", new)
                reasons.append(f"a new column `{column.name}`")
            elif was != column.type:
                if not wider(was, column.type):
                    text = f"the column `{column.name}` of `{new.owner}` was {was}, is {column.type}"
                    return Meaning("changed", text, new)
                reasons.append(f"`{column.name}` was {was}, is {column.type}")
        reasons += [f"the column `{name}` is gone" for name in before]
        decided = next((self.meaning(n).node for n in new.inputs if self.meaning(n).state == "widened"), new)
        return Meaning("widened" if reasons else "same", ", ".join(reasons), decided)

    def _is_inherited(self, node: Node, column: Column) -> bool:
        """Whether a column that the old node did not have comes from a source that did not have it either."""
        if isinstance(node.operation, Source):
            return True
        items: tuple[Item, ...] = getattr(node.operation, "items", ())
        item = next((item for item in items if item.name == column.name), None)
        at, name = 0, column.name
        if item is not None:
            if isinstance(node.operation, Aggregate) or not isinstance(item.expr, exprs.Column):
                return False
            at, name = item.expr.input, item.expr.name
        if at >= len(node.inputs):
            return False
        source = self._new[node.inputs[at]]
        before = self.pairs.get(source.name)
        if before is None or any(c.name == name for c in (*before.schema.key, *before.schema.value)):
            return False
        own = next((c for c in source.schema.value if c.name == name), None)
        return own is not None and self._is_inherited(source, own)


def limits(old: Node, new: Node, kind: str) -> Iterator[str]:
    """What has changed of how long, how much or how late: of a source, or of a node's store."""
    for name in new.operation.limits if (kind == "source") == isinstance(new.operation, Source) else ():
        before, after = _member(old.operation, name), _member(new.operation, name)
        if before != after:
            yield _from_to(name.rpartition(".")[2], before, after)
    if kind == "store" and old.store is not None and new.store is not None:
        yield from _of_stores(old.store, new.store)


def _of_stores(old: Store, new: Store) -> Iterator[str]:
    """Grace and segment follow from the retention where they are not given, and are then not told."""
    if old.retention != new.retention:
        yield _from_to("retention", old.retention, new.retention)
    elif old.segment != new.segment:
        yield _from_to("segment", old.segment, new.segment)
    if old.grace != new.grace and not (old.grace == old.retention and new.grace == new.retention):
        yield _from_to("grace", old.grace, new.grace)


def _member(operation: Any, path: str) -> Any:
    for name in path.split("."):
        operation = getattr(operation, name, None)
    return operation


def _from_to(name: str, before: object, after: object) -> str:
    if name in ("max_records", "max_bytes", "when_full"):
        return f"{name} was {before or 'not given'}, is {after or 'not given'}"
    was, now = (duration(value) if isinstance(value, int) else "none" for value in (before, after))
    return f"{name} was {was}, is {now}"


def _differences(old: Node, new: Node) -> Iterator[str]:
    """How the operations differ in what they mean. A column that only one of them computes is not seen here."""
    if old.kind != new.kind:
        yield f"it was a {old.kind}, is a {new.kind}"
    before, after = old.operation, new.operation
    if isinstance(before, Source) and isinstance(after, Source):
        yield from _declarations(old.schema, before, new.schema, after)
    skipped = _DERIVED.get(after.op, set()) | set(after.limits) | {"op", "row", "left_schema", "columns"}
    for name in (field.name for field in fields(after) if field.name not in skipped):
        was, now = getattr(before, name), getattr(after, name)
        if are_items(was, now):
            yield from _items(was, now)
        elif not alike(was, now):
            yield f"{name} was {shown(was)}, is {shown(now)}"


def _items(was: tuple[Item, ...], now: tuple[Item, ...]) -> Iterator[str]:
    """How the items differ that are on both sides; names that are on one side alone are columns come or gone."""
    after = {item.name: item for item in now}
    for item in was:
        if item.name in after and not alike(item, after[item.name]):
            yield f"`{item.name}` was {shown(item)}, is {shown(after[item.name])}"


def _declarations(old: Schema, before: Source, new: Schema, after: Source) -> Iterator[str]:
    if [c.name for c in old.key] != [c.name for c in new.key]:
        yield f"its key was {_columns(old.key)}, is {_columns(new.key)}"


def _declared_alike(old: Node, new: Node) -> bool:
    return old.schema == new.schema and next(_differences(old, new), None) is None


def _place(node: Node) -> object:
    assert isinstance(node.operation, Source)
    return node.operation.connector


def _columns(columns: tuple[Column, ...]) -> str:
    return "(" + ", ".join(f"{c.name} {c.type}" for c in columns) + ")"
