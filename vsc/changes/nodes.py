"""Matches the nodes of a new plan with those of the old one, and says whether they mean the same.

A node is the successor of an old one if it computes the same from successors, under any name; else if it has the same
name; else if it is the only new one that differs just in columns added, dropped or widened. So a renamed node is found
if nothing else about it has changed, or only its columns. Sources are matched by name, or by where they read from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from vsc.changes.values import alike, are_items, shown, wider
from vsc.plan import Aggregate, Column, Item, Node, Plan, Source, Store
from vsc.plan import expressions as exprs
from vsc.plan.record import record
from vsc.plan.words import duration

__all__ = ["Meaning", "Nodes", "limits"]

_DERIVED = {"source": {"connector", "rank", "columns"}, "filter": {"dedupe"}}
"""Members that follow from other members, or are compared elsewhere."""


@record
class Meaning:
    """Whether a node means what its predecessor did (``same``, ``widened``, ``changed``), why, and who decided it."""

    state: str
    reason: str
    node: Node


class Nodes:
    """The nodes of two plans. `pairs`: by the name of a node in the new plan, its predecessor, if it has one.
    `successors`: by the name of a node in the old plan, its successor, if it has one. `meanings`: how the meaning of
    each new node with a predecessor has changed."""

    def __init__(self, old: Plan, new: Plan) -> None:
        self._new = {node.name: node for node in new.nodes}
        self._fresh: dict[str, set[str]] = {}  # the columns of a node that come straight from new columns of a source
        self.pairs: dict[str, Node] = {}
        self.meanings: dict[str, Meaning] = {}
        left = {node.name: node for node in old.nodes}
        for node in self._ordered():
            before = self._predecessor(node, left)
            if before is not None:
                del left[before.name]
                self.pairs[node.name] = before
                self.meanings[node.name] = self._judged(node, before)
        self.successors = {before.name: self._new[name] for name, before in self.pairs.items()}

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

    def _predecessor(self, node: Node, left: Mapping[str, Node]) -> Node | None:
        same_name = left.get(node.name)
        if isinstance(node.operation, Source):
            others = [one for one in left.values() if isinstance(one.operation, Source) and one.name not in self._new]
            near = [one for one in others if _declared_alike(one, node)]
            there = [one for one in near if one.source.connector == node.source.connector]
            if same_name is None and (there or len(near) == 1):
                return (there or near)[0]
            if same_name is None:
                return self._grown(node, [one for one in others if one.source.connector == node.source.connector])
        elif same_name is None or not self._computes_alike(same_name, node):
            for one in left.values():
                if one.name not in self._new and self._computes_alike(one, node):
                    return one
            if same_name is None:
                return self._grown(node, [one for one in left.values() if one.name not in self._new])
        return same_name if same_name.operation.op == node.operation.op else None

    def _grown(self, node: Node, among: list[Node]) -> Node | None:
        """The only one of `among` that means the same as `node`, except for columns; None for several or none."""
        same_kind = (one for one in among if one.operation.op == node.operation.op)
        found = [one for one in same_kind if self._judged(node, one).state != "changed"]
        return found[0] if len(found) == 1 else None

    def _computes_alike(self, old: Node, new: Node) -> bool:
        return (
            self._inputs_before(new) == list(old.inputs)
            and old.operation.op == new.operation.op
            and old.schema == new.schema
            and next(_differences(old, new), None) is None
        )

    def _inputs_before(self, new: Node) -> list[str | None]:
        """The names of the predecessors of its inputs; None for an input without a predecessor."""
        return [self.pairs[name].name if name in self.pairs else None for name in new.inputs]

    def _judged(self, new: Node, old: Node) -> Meaning:
        for name in new.inputs:
            if name in self.pairs and self.meanings[name].state == "changed":
                return self.meanings[name]
        if self._inputs_before(new) != list(old.inputs):
            was, now = ", ".join(f"`{n}`" for n in old.inputs), ", ".join(f"`{n}`" for n in new.inputs)
            return Meaning("changed", f"`{new.owner}` reads {now} instead of {was}", new)
        own = next(_differences(old, new), None)
        if own is not None:
            return Meaning("changed", f"`{new.owner}`: {own}", new)
        if old.store is None and new.store is not None and not isinstance(new.operation, Source):
            return Meaning("changed", f"`{new.owner}` had no store: its earlier rows are missing from the new one", new)
        return self._of_columns(new, old)

    def _of_columns(self, new: Node, old: Node) -> Meaning:
        """The meaning by its columns, given that its operation and inputs mean the same."""
        if old.schema.key != new.schema.key:
            reason = f"the key of `{new.owner}` was {_columns(old.schema.key)}, is {_columns(new.schema.key)}"
            return Meaning("changed", reason, new)
        before = {column.name: column.type for column in old.schema.value}
        fresh = self._fresh[new.name] = set()
        reasons = []
        for column in new.schema.value:
            was = before.pop(column.name, None)
            if was is None:
                if not self._is_inherited(new, column):
                    return Meaning("changed", f"`{new.owner}` computes a new column `{column.name}`", new)
                fresh.add(column.name)
                reasons.append(f"a new column `{column.name}`")
            elif was != column.type:
                if not wider(was, column.type):
                    text = f"the column `{column.name}` of `{new.owner}` was {was}, is {column.type}"
                    return Meaning("changed", text, new)
                reasons.append(f"`{column.name}` was {was}, is {column.type}")
        reasons += [f"the column `{name}` is gone" for name in before]
        decided = next((self.meanings[n].node for n in new.inputs if self.meanings[n].state == "widened"), new)
        return Meaning("widened" if reasons else "same", ", ".join(reasons), decided)

    def _is_inherited(self, node: Node, column: Column) -> bool:
        """Whether a column is new in the node only because it is new in the node's input."""
        if isinstance(node.operation, Source):
            return True
        items: tuple[Item, ...] = getattr(node.operation, "items", ())
        item = next((item for item in items if item.name == column.name), None)
        if item is None:
            return column.name in self._fresh.get(node.inputs[0], ())
        if isinstance(node.operation, Aggregate) or not isinstance(item.expr, exprs.Column):
            return False
        return item.expr.name in self._fresh.get(node.inputs[item.expr.input], ())


def limits(old: Node, new: Node, kind: str) -> Iterator[str]:
    """The changes of limits (how long, how much, how late) of a source, or of a node's store."""
    for name in new.operation.limits if (kind == "source") == isinstance(new.operation, Source) else ():
        before, after = _member(old.operation, name), _member(new.operation, name)
        if before != after:
            yield _from_to(name.rpartition(".")[2], before, after)
    if kind == "store" and old.store is not None and new.store is not None:
        yield from _of_stores(old.store, new.store)


def _of_stores(old: Store, new: Store) -> Iterator[str]:
    """Grace and segment, if not given, follow from the retention; they are then not reported."""
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
    """How the operations differ in meaning. It ignores columns that only one of them computes."""
    if old.kind != new.kind:
        yield f"it was a {old.kind}, is a {new.kind}"
    before, after = old.operation, new.operation
    names, now_names = ([column.name for column in node.schema.key] for node in (old, new))
    if isinstance(after, Source) and names != now_names:
        yield f"its key was {_columns(old.schema.key)}, is {_columns(new.schema.key)}"
    skipped = _DERIVED.get(after.op, set()) | set(after.limits) | {"op", "row", "left_schema", "columns"}
    for name in (field.name for field in fields(after) if field.name not in skipped):
        was, now = getattr(before, name), getattr(after, name)
        if are_items(was, now):
            yield from _items(was, now)
        elif not alike(was, now):
            told, told_now = shown(was), shown(now)
            yield f"{name} was {told}, is {told_now}" if told != told_now else f"the types in {told} differ"


def _items(was: tuple[Item, ...], now: tuple[Item, ...]) -> Iterator[str]:
    """How the items on both sides differ. Names on only one side are columns added or dropped."""
    after = {item.name: item for item in now}
    for item in was:
        if item.name in after and not alike(item, after[item.name]):
            yield f"`{item.name}` was {shown(item)}, is {shown(after[item.name])}"


def _declared_alike(old: Node, new: Node) -> bool:
    return old.schema == new.schema and next(_differences(old, new), None) is None


def _columns(columns: tuple[Column, ...]) -> str:
    return "(" + ", ".join(f"{c.name} {c.type}" for c in columns) + ")"
