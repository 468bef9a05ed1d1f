"""Gives a verdict for every source, store and sink of two plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from vsc.changes.fills import Fill, fill_of
from vsc.changes.model import Change, Verdict
from vsc.changes.nodes import Meaning, Nodes, limits
from vsc.changes.sources import place
from vsc.changes.values import alike, holds
from vsc.plan import (
    EXPIRING,
    Aggregate,
    Connector,
    Correct,
    Node,
    Plan,
    Reorder,
    Sink,
    Source,
    StreamStreamJoin,
    StreamTableJoin,
    WithinAggregate,
)
from vsc.plan.order import ordered
from vsc.plan.words import article, duration

__all__ = ["compare"]


def compare(old: Plan, new: Plan) -> tuple[Change, ...]:
    """The changes from `old` to `new`: of the whole topology, if there is one, of sources, then stores, then sinks. In
    each group, the new plan's come first, in its order, then those that are gone."""
    nodes = Nodes(old, new)
    return (*_clock(old, new), *_sources(nodes, old, new), *_stores(nodes, old, new), *_sinks(nodes, old, new))


def _clock(old: Plan, new: Plan) -> Iterator[Change]:
    if old.clock != new.clock:
        yield Change("topology", new.name, Verdict.LIMITS, f"clock was '{old.clock}', is '{new.clock}'", "", 0)
    if old.quiet != new.quiet:
        was, now = ("none" if quiet is None else duration(quiet) for quiet in (old.quiet, new.quiet))
        yield Change("topology", new.name, Verdict.LIMITS, f"quiet was {was}, is {now}", "", 0)


def _sources(nodes: Nodes, old: Plan, new: Plan) -> Iterator[Change]:
    for node in new.sources:
        before = nodes.pairs.get(node.name)
        if before is None:
            yield Change("source", node.name, Verdict.NEW, "", node.name, node.line)
            continue
        was, now = before.source.connector, node.source.connector
        bounds, at, meaning = list(limits(before, node, "source")), (node, node.line), nodes.meanings[node.name]
        if was.kind != now.kind:
            where = f"it read from {was.kind}, reads from {now.kind}: upgrade it with --position {node.name}=..."
            reason = "; ".join(filter(None, [where, meaning.reason, *bounds]))
            other = _other(before.name, node.name)
            yield Change("source", node.name, Verdict.MOVED, reason, node.name, node.line, other)
        else:
            options = [f"{name} was {a}, is {b}" for name, a, b in _options(was, now)]
            yield _judged("source", node.name, before.name, at, meaning, bounds, options)
    for node in old.sources:
        if node.name not in nodes.successors:
            yield Change("source", node.name, Verdict.DROPPED, "", node.name, node.line)


class _Store(NamedTuple):
    name: str
    node: Node
    beside: str | None
    """What an operator keeps beside its node's table; None for the table itself."""


def _stores_of(plan: Plan) -> list[_Store]:
    found = []
    for node in plan.nodes:
        if node.store is not None:
            found.append(_Store(node.store.name, node, None))
        if node.keeps is not None:
            found.append(_Store(f"{node.owner}#{node.keeps}", node, node.keeps))
    return found


def _stores(nodes: Nodes, old: Plan, new: Plan) -> Iterator[Change]:
    left, above = {(store.node.name, store.beside): store for store in _stores_of(old)}, _limits_of_joins(nodes, new)
    for store in _stores_of(new):
        node, before = store.node, nodes.pairs.get(store.node.name)
        was = None if before is None else left.pop((before.name, store.beside), None)
        if was is None:
            yield _new_store(nodes, new, store)
        elif store.beside is None and _kind(was.node) != _kind(node):
            reason = f"it was {_kind(was.node)}, is {_kind(node)}"
            decided = node.status.decided_by if node.status is not None else node.owner
            line = new.node(decided).line if any(n.name == decided for n in new.nodes) else node.line
            name = _other(was.name, store.name)
            yield Change("store", store.name, Verdict.REBUILD, reason, decided, line, name, other=True)
        else:
            read = dict.fromkeys(text for name in node.inputs for text in above[name])
            bounds, at = [*limits(was.node, node, "store"), *read], (node, node.line)
            change = _judged("store", store.name, was.name, at, _of_rows(nodes, store), bounds)
            yield replace(change, other=not _is_alike(was, store)) if change.verdict is Verdict.REBUILD else change
    for store in left.values():
        yield _gone(nodes, old, new, store)


def _limits_of_joins(nodes: Nodes, new: Plan) -> dict[str, tuple[str, ...]]:
    """By node, the changes of limits that no store upstream has, as joins that keep nothing have no verdict."""
    found: dict[str, tuple[str, ...]] = {}
    for node in ordered(new):
        keeps = node.store is not None or node.keeps is not None or isinstance(node.operation, Source)
        before = nodes.pairs.get(node.name)
        own = () if before is None else (f"`{node.owner}`: {text}" for text in limits(before, node, "store"))
        read = (text for name in node.inputs for text in found[name])
        found[node.name] = () if keeps else tuple(dict.fromkeys((*read, *own)))
    return found


def _is_alike(was: _Store, now: _Store) -> bool:
    """Whether rows of the old store can be read as rows of the new one."""
    before, after = was.node.operation, now.node.operation
    if [c.type for c in was.node.schema.key] != [c.type for c in now.node.schema.key]:
        return False
    types = {column.name: column.type for column in was.node.schema.value}
    if now.beside is None:
        return all(holds(column.type, types.get(column.name, column.type)) for column in now.node.schema.value)
    if isinstance(before, Aggregate) and isinstance(after, Aggregate):
        kept = [[(c.function, c.distinct, c.type, c.kept_types) for c in one.calls] for one in (before, after)]
        return kept[0] == kept[1] and alike(before.window, after.window) and before.final == after.final
    if isinstance(before, StreamStreamJoin) and isinstance(after, StreamStreamJoin):
        return before.before + before.after == after.before + after.after
    if isinstance(before, Correct) and isinstance(after, Correct):
        return was.node.schema.key == now.node.schema.key
    if isinstance(before, WithinAggregate) and isinstance(after, WithinAggregate):
        return before.before + before.after == after.before + after.after and before.waits == after.waits
    return getattr(before, "until", None) == getattr(after, "until", None)


def _gone(nodes: Nodes, old: Plan, new: Plan, store: _Store) -> Change:
    """The verdict on a store that is no longer there. Records that wait in it go on, or have to be decided on."""
    node, now = store.node, nodes.successors.get(store.node.name)
    if store.beside == EXPIRING and now is not None:
        return Change("store", store.name, Verdict.DROPPED, f"the rows of `{now.owner}` stay", now.owner, now.line)
    if store.beside is None or not node.operation.waits:
        return Change("store", store.name, Verdict.DROPPED, "", node.owner, node.line)
    if now is not None and isinstance(now.operation, StreamTableJoin):
        reason = "`grace` is gone: records that wait in it are joined at once"
        return Change("store", store.name, Verdict.DROPPED, reason, now.owner, now.line)
    reader = _beyond(nodes, old, new, node.name)
    if reader is None:
        return Change("store", store.name, Verdict.DROPPED, "", node.owner, node.line)
    reason = f"it is gone, and what it holds back has not reached {reader}"
    return Change("store", store.name, Verdict.REBUILD, reason, node.owner, node.line, gone=True)


def _beyond(nodes: Nodes, old: Plan, new: Plan, name: str) -> str | None:
    """A reader or a sink of what was called `name` that goes on in the new plan."""
    places = {place(sink.connector): _named(sink) for sink in new.sinks}
    waiting, seen = [name], set[str]()
    while waiting:
        at = waiting.pop()
        seen.add(at)
        for sink in old.sinks:
            if sink.node == at and place(sink.connector) in places:
                return f"the sink {places[place(sink.connector)]}"
        for node in old.nodes:
            if at in node.taken and node.name in nodes.successors:
                return f"`{nodes.successors[node.name].owner}`"
            if at in node.taken and node.name not in seen:
                waiting.append(node.name)
    return None


def _new_store(nodes: Nodes, new: Plan, store: _Store) -> Change:
    node = store.node
    if store.beside == EXPIRING and _goes_on(nodes, node) and _kind(nodes.pairs[node.name]) == _kind(node):
        reason = "rows from before expire as well: those that are due with the first rows read"
        return Change("store", store.name, Verdict.NEW, reason, node.owner, node.line)
    if store.beside is None and node.name in nodes.forgetful:
        return Change("store", store.name, Verdict.NEW, nodes.forgetful[node.name].text, node.owner, node.line)
    if node.name in nodes.meanings:
        return Change("store", store.name, Verdict.NEW, nodes.meanings[node.name].reason, node.owner, node.line)
    fill = _fill(nodes, new, node)
    if fill is not None:
        reason = f"filled with the rows that `{fill.table.owner}` holds"
        return Change("store", store.name, Verdict.NEW, reason, node.owner, node.line)
    unseen = _unseen(nodes, new, node)
    if unseen is None:
        return Change("store", store.name, Verdict.NEW, "", node.owner, node.line)
    if node.operation.of_all_rows:
        reason = f"it has not seen the rows that `{unseen.owner}` holds, and would give wrong results when they change"
        return Change("store", store.name, Verdict.REBUILD, reason, node.owner, node.line, fresh=True)
    reason = f"the rows that `{unseen.owner}` holds are not in it"
    return Change("store", store.name, Verdict.NEW, reason, node.owner, node.line)


def _unseen(nodes: Nodes, new: Plan, node: Node) -> Node | None:
    """The first table upstream of a new node that holds rows that the node has not seen."""
    of_records = isinstance(node.operation, Correct) and not node.operation.table
    if of_records or (node.kind == "stream" and node.part_of is None):
        return None  # it looks rows up when its own records come
    if _fill(nodes, new, node) is not None:
        return None
    inputs = node.inputs[:1] if node.operation.of_all_rows or node.operation.watches else node.inputs
    for before in map(new.node, inputs):
        found = before if _goes_on(nodes, before) else _unseen(nodes, new, before)
        if found is not None:
            return found
    return None


def _fill(nodes: Nodes, new: Plan, node: Node) -> Fill | None:
    return fill_of(new, node, lambda table: _goes_on(nodes, table) and nodes.pairs[table.name].forget is None)


def _goes_on(nodes: Nodes, table: Node) -> bool:
    """Whether the table has a store in both plans."""
    return table.store is not None and table.name in nodes.pairs and nodes.pairs[table.name].store is not None


def _sinks(nodes: Nodes, old: Plan, new: Plan) -> Iterator[Change]:
    pairs, above = _paired_sinks(nodes, old, new), _limits_of_joins(nodes, new)
    for sink in new.sinks:
        node, was = new.node(sink.node), pairs.get(sink.id)
        before = nodes.pairs.get(sink.node)
        if was is None:
            yield Change("sink", _named(sink), Verdict.NEW, "", sink.owner, sink.line)
        elif (reordered := _reordered(nodes, old, new, was, sink)) is not None:
            meaning = nodes.meanings[sink.owner]
            changed = [
                reordered,
                *(f"{name} was {a}, is {b}" for name, a, b in _options(was.connector, sink.connector)),
            ]
            yield _judged("sink", _named(sink), _named(was), (node, sink.line), meaning, changed)
        elif before is None or was.node != before.name:
            both = old.node(was.node), node
            same_kind = both[0].kind == node.kind
            words = [one.operation.op.replace("_", " ") if same_kind else one.kind for one in both]
            reason = f"it took `{was.node}`, takes `{sink.node}`"
            if was.node == sink.node:
                reason = f"`{sink.node}` was {article(words[0])}, is {article(words[1])}"
            yield Change("sink", _named(sink), Verdict.REBUILD, reason, sink.owner, sink.line)
        else:
            changed = [f"{name} was {a}, is {b}" for name, a, b in _options(was.connector, sink.connector)]
            changed += above[sink.node]
            if (forgotten := nodes.forgetful.get(node.name)) is not None and forgotten.node.keeps == EXPIRING:
                changed.append("rows from before do not expire")
            yield _judged("sink", _named(sink), _named(was), (node, sink.line), nodes.meanings[node.name], changed)
    kept = {sink.id for sink in pairs.values()}
    for sink in (one for one in old.sinks if one.id not in kept):
        yield Change("sink", _named(sink), Verdict.DROPPED, "", sink.owner, sink.line)


def _reordered(nodes: Nodes, old: Plan, new: Plan, was: Sink, sink: Sink) -> str | None:
    """That a sink of a source is given its records in order from now on, or no longer; None otherwise."""
    source = nodes.pairs.get(sink.owner)
    if source is None or source.name != was.owner or (was.part_of is None) == (sink.part_of is None):
        return None
    found = [plan.node(one.node).operation for plan, one in ((old, was), (new, sink))]
    before, after = (duration(one.within) if isinstance(one, Reorder) else "none" for one in found)
    return f"reorder within was {before}, is {after}"


def _paired_sinks(nodes: Nodes, old: Plan, new: Plan) -> dict[str, Sink]:
    """By the id of a sink of `new`, the one of `old` that wrote to the same place, of the same node if possible."""
    pairs: dict[str, Sink] = {}
    left = list(old.sinks)
    for of_node in (True, False):
        for sink in (one for one in new.sinks if one.id not in pairs):
            before, at = nodes.pairs.get(sink.node), place(sink.connector)
            there = (one for one in left if place(one.connector) == at and (of_node or any(at[1:])))
            was = next((one for one in there if not of_node or (before is not None and one.node == before.name)), None)
            if was is not None:
                pairs[sink.id] = was
                left.remove(was)
    return pairs


def _judged(kind: str, name: str, was: str, at: tuple[Node, int], meaning: Meaning, bounds: Sequence[str],
            notes: Sequence[str] = ()) -> Change:  # fmt: skip
    """The verdict on what was called `was` and is now at a node and line. `bounds` are its own bounds that changed."""
    before, (node, line) = _other(was, name), at
    if meaning.state == "changed":
        return Change(kind, name, Verdict.REBUILD, meaning.reason, meaning.node.owner, meaning.node.line, before)
    if meaning.state == "widened":
        reason = "; ".join([meaning.reason, *bounds, *notes])
        return Change(kind, name, Verdict.WIDENED, reason, meaning.node.owner, meaning.node.line, before)
    verdict = Verdict.LIMITS if bounds else Verdict.KEEP if before is None else Verdict.RENAMED
    return Change(kind, name, verdict, "; ".join([*bounds, *notes]), node.owner, line, before)


def _of_rows(nodes: Nodes, store: _Store) -> Meaning:
    """How the meaning of the rows in a store has changed."""
    operation, node = store.node.operation, store.node
    if store.beside is not None and operation.kept in ("input", "inputs") and node.kind == "stream":
        return nodes.of_kept_inputs(node)
    own = nodes.meanings[node.name]
    only_times = store.beside == EXPIRING or (store.beside is not None and operation.kept == "times")
    if only_times and own.state == "widened":
        return Meaning("same", "", node)  # it has no columns
    return own


def _other(was: str, name: str) -> str | None:
    return was if was != name else None


def _kind(node: Node) -> str:
    return "unversioned" if node.store is None else node.store.kind


def _named(sink: Sink) -> str:
    where = next((str(value) for value in place(sink.connector)[1:] if value is not None), None)
    return f"{sink.owner} to {sink.connector.kind}" + (f" '{where}'" if where else "")


def _options(was: Connector, now: Connector) -> Iterator[tuple[str, str, str]]:
    before, after = ({**dict(c.options), **dict(c.spark_options)} for c in (was, now))
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            was_text, now_text = (repr(o[name]) if name in o else "not given" for o in (before, after))
            yield name, was_text, now_text
