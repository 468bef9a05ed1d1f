"""Matches the nodes of a new plan with those of the old one, and says whether they mean the same.

A node is the successor of an old one if its records depend on the same (`derivation`), under any name; else if it has
the same name; else if it is the only new one that differs just in columns added, dropped or widened. So a renamed node
is found if nothing else about it has changed, or only its columns. For sources, see `sources`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vsc.changes.derivation import Derivation, derivations
from vsc.changes.reasons import Reason, Reasons
from vsc.changes.sources import paired_sources
from vsc.changes.terms import Terms
from vsc.changes.values import holds
from vsc.plan import Node, Plan, Source, Store, Suppress
from vsc.plan.order import ordered
from vsc.plan.read_columns import columns_named, columns_read, unread_columns
from vsc.plan.record import record
from vsc.plan.words import duration

__all__ = ["Meaning", "Nodes", "limits", "shortened"]

_STATES = "same", "widened", "changed"


@record
class Meaning:
    """Whether a node means what its predecessor did (``same``, ``widened``, ``changed``), why, and who decided it."""

    state: str
    reason: str
    node: Node


class Nodes:
    """The nodes of two plans. `pairs`: by the name of a node in the new plan, its predecessor, if it has one.
    `successors`: by the name of a node in the old plan, its successor, if it has one. `meanings`: how the meaning of
    each new node with a predecessor has changed. `forgetful`: by their names, the tables whose rows from before nobody
    knows, as their source had no store, and why."""

    def __init__(self, old: Plan, new: Plan) -> None:
        self._new = {node.name: node for node in new.nodes}
        sources = paired_sources(old, new)
        terms, places = Terms(), {was.name: now for now, was in sources.items()}
        fresh = {name: _added(was, self._new[name]) for name, was in sources.items()}
        names = {node.name: places.get(node.name, f"\0{node.name}") for node in old.sources}
        self._was = derivations(old, terms, names, {})
        self._now = derivations(new, terms, {node.name: node.name for node in new.sources}, fresh)
        self.pairs: dict[str, Node] = dict(sources)
        self._alike: dict[object, list[Node]] = {}
        self.meanings: dict[str, Meaning] = {}
        self._reasons = Reasons(old, new, self.pairs, self._was, self._now)
        self._pair(old, new)
        self.successors = {before.name: self._new[name] for name, before in self.pairs.items()}
        self._unread, self._read = unread_columns(old), columns_read(new)
        self._emptied: dict[str, Reason | None] = {}
        self.forgetful: dict[str, Reason] = {}
        for node in ordered(new):
            before = self.pairs.get(node.name)
            if before is not None:
                self.meanings[node.name] = self._judged(node, before)
            self._note_emptied(node)
            self._note_forgetful(node)

    # ---------------------------------------------------------------------------------------------------------- pairing

    def _pair(self, old: Plan, new: Plan) -> None:
        left = {node.name: node for node in old.nodes if not isinstance(node.operation, Source)}
        rest = [node for node in ordered(new) if not isinstance(node.operation, Source)]
        for node in left.values():
            self._alike.setdefault(self._meant(node, self._was[node.name]), []).append(node)
        for by_name in (True, False):
            for node in (one for one in rest if one.name not in self.pairs):
                alike = self._alike.get(self._meant(node, self._now[node.name]), ())
                usable = (one for one in alike if one.name in left and (one.name == node.name or not by_name))
                self._take(node, next(usable, None), left)
        for node in (one for one in rest if one.name not in self.pairs):
            named = left.get(node.name)
            self._take(node, named if named is not None and named.operation.op == node.operation.op else None, left)
        for node in (one for one in rest if one.name not in self.pairs):
            grown = [one for one in left.values() if one.name not in self._new and self._is_grown(one, node)]
            self._take(node, grown[0] if len(grown) == 1 else None, left)

    def _take(self, node: Node, before: Node | None, left: dict[str, Node]) -> None:
        if before is not None:
            self.pairs[node.name] = left.pop(before.name)

    def _meant(self, node: Node, derivation: Derivation) -> object:
        """What makes a node the successor of another one, whatever they are called."""
        columns = frozenset((column.name, column.type, derivation.columns[column.name]) for column in node.schema.value)
        return node.operation.op, node.part_of is None, node.schema.key, derivation.rows, columns

    def _is_grown(self, old: Node, new: Node) -> bool:
        """Whether `new` means what `old` does, except for columns."""
        same = old.operation.op == new.operation.op and self._was[old.name].rows == self._now[new.name].rows
        return same and old.schema.key == new.schema.key and self._of_columns(new, old).state != "changed"

    # --------------------------------------------------------------------------------------------------------- meanings

    def _judged(self, new: Node, old: Node) -> Meaning:
        return self._apart_from_columns(new, old) or self._of_columns(new, old)

    def _apart_from_columns(self, new: Node, old: Node) -> Meaning | None:
        """The meaning if it has changed whatever the columns mean."""
        for name in new.inputs:
            if name in self._emptied:
                return self._changed(self._emptied[name] or self._reasons.other_input(new, old))
        if (forgotten := self._forgotten(new)) is not None:
            return self._changed(forgotten)
        if _complete(old) != _complete(new):
            return self._changed(_other_history(new))
        if self._was[old.name].rows != self._now[new.name].rows:
            return self._changed(self._reasons.of_rows(new, old))
        if old.schema.key != new.schema.key:
            return self._changed(self._reasons.of_key(new, old))
        if old.store is None and new.store is not None and not isinstance(new.operation, Source):
            return self._changed(_had_no_store(new))
        return None

    def _of_columns(self, new: Node, old: Node, read: frozenset[str] | None = None) -> Meaning:
        """The meaning by the columns, given that the rows are the same. Of columns that are not `read`, only their
        names and types count."""
        before = {column.name: column.type for column in old.schema.value}
        was, now, notes = self._was[old.name].columns, self._now[new.name], []
        for column in new.schema.value:
            name, type_ = column.name, before.pop(column.name, None)
            counts = read is None or name in read
            if type_ is None:
                if counts and name not in now.fresh:
                    return self._changed(Reason(f"`{new.owner}` computes a new column `{name}`", new))
                notes.append(f"a new column `{name}`")
            elif (counts and was[name] != now.columns[name]) or not holds(column.type, type_):
                return self._changed(self._reasons.of_column(new, old, name))
            elif type_ != column.type:
                notes.append(f"`{name}` was {type_}, is {column.type}")
        notes += [f"the column `{name}` is gone" for name in before]
        decided = next((m.node for m in map(self.meanings.get, new.inputs) if m and m.state == "widened"), new)
        return Meaning("widened" if notes else "same", ", ".join(notes), decided)

    def computed(self, new: Node, old: Node) -> frozenset[str]:
        """The columns for which records that `old` has given have no value, although the old rows had one: those that
        are computed now, and those that nothing had read."""
        before = {column.name for column in old.schema.value}
        added = frozenset(c.name for c in new.schema.value if c.name not in before) - self._now[new.name].fresh
        return added | (self._unread[old.name] & self._read[new.name])

    def gave(self, new: Node) -> Iterator[Node]:
        """The old nodes whose records are those of `new`: its predecessor, then all that mean the same."""
        before = self.pairs.get(new.name)
        if before is not None:
            yield before
        for node in self._alike.get(self._meant(new, self._now[new.name]), ()):
            if node is not before:
                yield node

    def of_kept_inputs(self, new: Node) -> Meaning:
        """The meaning of the records of its inputs that a stream's node keeps: of the columns that it reads."""
        every = new.operation.kept == "inputs"
        wrong = self._apart_from_columns(new, self.pairs[new.name]) if every else None
        if wrong is not None:
            return wrong
        found = [self._of_kept_input(new, name) for name in dict.fromkeys(new.inputs if every else new.inputs[:1])]
        return max(found, key=lambda one: _STATES.index(one.state))

    def _of_kept_input(self, new: Node, name: str) -> Meaning:
        taken = self._new[name]
        before = self.pairs.get(taken.name)
        if before is None or self._was[before.name].rows != self._now[taken.name].rows:
            return self.meanings.get(taken.name, self.meanings[new.name])
        hands_on = new.operation.hands_columns_on
        seen = columns_named(new, [self._new[one].schema for one in new.inputs], taken.schema)
        unread = sorted(self._unread[before.name] & (self._read[new.name] if hands_on else seen))
        if unread:
            return self._changed(Reason(f"nothing had read `{unread[0]}` of `{taken.owner}` before", new))
        return self._of_columns(taken, before, None if hands_on else seen)

    def _changed(self, reason: Reason) -> Meaning:
        return Meaning("changed", reason.text, reason.node)

    def _note_emptied(self, node: Node) -> None:
        """Notes a node whose rows, kept by the old plan, are not those that its readers have seen."""
        above = next((name for name in node.inputs if name in self._emptied), None)
        kept = node.store is not None or (node.operation.keeps is not None and _of_rows(node))
        meaning = self.meanings.get(node.name)
        if above is not None:
            self._emptied[node.name] = self._emptied[above] if meaning is None else Reason(meaning.reason, meaning.node)
        elif kept and meaning is None and not isinstance(node.operation, Source):
            self._emptied[node.name] = None
        elif meaning is not None and self._forgotten(node) is not None:
            self._emptied[node.name] = self._forgotten(node)
        elif kept and meaning is not None and meaning.state == "changed":
            self._emptied[node.name] = Reason(meaning.reason, meaning.node)

    def _note_forgetful(self, node: Node) -> None:
        """Notes a source whose store is new, and a table that knows no rows but those of such a source."""
        before = self.pairs.get(node.name)
        if isinstance(node.operation, Source):
            if before is not None and before.store is None and node.store is not None:
                self.forgetful[node.name] = _had_no_store(node)
        elif node.kind == "table" and node.store is None:
            reason = next((self.forgetful[name] for name in node.inputs if name in self.forgetful), None)
            if reason is not None:
                self.forgetful[node.name] = reason

    def _forgotten(self, node: Node) -> Reason | None:
        """Why a node that needs rows from before does not find them."""
        inputs = enumerate(node.inputs)
        return next((self.forgetful[n] for port, n in inputs if n in self.forgetful and _needs_rows(node, port)), None)


def _needs_rows(node: Node, port: int) -> bool:
    """Whether a node looks into the table at an input, or needs the rows before its changes."""
    joined = len(node.inputs) > 1 and node.operation.reads[port : port + 1] == ("table",)
    return joined or node.operation.asks_old(port)


def _had_no_store(node: Node) -> Reason:
    return Reason(f"`{node.owner}` had no store: its earlier rows are missing from the new one", node)


def _complete(node: Node) -> bool:
    return node.complete or node.operation.complete


def _other_history(node: Node) -> Reason:
    return Reason(f"the history of `{node.owner}` {'is' if _complete(node) else 'was'} to be complete", node)


def _of_rows(node: Node) -> bool:
    """Whether readers depend on what an operator keeps, and not only the operator itself."""
    return node.kind == "table" or node.operation.kept == "result"


def _added(old: Node, new: Node) -> frozenset[str]:
    before = {column.name for column in (*old.schema.key, *old.schema.value)}
    return frozenset(column.name for column in new.schema.value if column.name not in before)


def limits(old: Node, new: Node, kind: str) -> Iterator[str]:
    """The changes of limits (how long, how much, how late) of a source, or of a node's store."""
    for name in new.operation.limits if (kind == "source") == isinstance(new.operation, Source) else ():
        before, after = _member(old.operation, name), _member(new.operation, name)
        if before != after:
            yield _from_to(name.rpartition(".")[2], before, after)
    if kind == "store" and old.store is not None and new.store is not None:
        yield from _of_stores(old.store, new.store)


def shortened(old: Node, new: Node) -> int:
    """By how many ms a `suppress` holds rows less long, or rows expire sooner: state knows what came out already."""
    if old.expire is not None and new.expire is not None:
        return max(old.expire - new.expire, 0)
    was, now = old.operation, new.operation
    return max(was.wait - now.wait, 0) if isinstance(was, Suppress) and isinstance(now, Suppress) else 0


def _of_stores(old: Store, new: Store) -> Iterator[str]:
    """Grace and segment, if not given, follow from the retention; they are then not reported."""
    if old.retention != new.retention:
        yield _from_to("retention", old.retention, new.retention)
    elif old.segment != new.segment:
        yield _from_to("segment", old.segment, new.segment)
    if old.expire != new.expire:
        yield _from_to("expire", old.expire, new.expire)
    if (old.forget is None) != (new.forget is None):
        yield f"its rows {_forgotten(old.forget)}, {_forgotten(new.forget)} from now on"
    if old.grace != new.grace and not (old.grace == old.retention and new.grace == new.retention):
        yield _from_to("grace", old.grace, new.grace)


def _forgotten(after: int | None) -> str:
    return "stay" if after is None else f"are forgotten {duration(after)} behind the clock"


def _member(operation: Any, path: str) -> Any:
    for name in path.split("."):
        operation = getattr(operation, name, None)
    return operation


def _from_to(name: str, before: object, after: object) -> str:
    if name in ("max_records", "max_bytes", "when_full"):
        return f"{name} was {before or 'not given'}, is {after or 'not given'}"
    was, now = (duration(value) if isinstance(value, int) else "none" for value in (before, after))
    return f"{name} was {was}, is {now}"
