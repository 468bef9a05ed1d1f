"""Whether a checkpoint can continue unchanged with a changed topology: all its state must be where the new plan looks
for it, and mean the same."""

from __future__ import annotations

from vsc.changes.compare import compare
from vsc.changes.model import Change, Verdict
from vsc.changes.nodes import Nodes, shortened
from vsc.changes.sources import place
from vsc.plan import Connector, Node, Plan, Stage
from vsc.plan.clocks import node_clocks

__all__ = ["in_place", "renames_what_waits"]

_SAME = (Verdict.KEEP, Verdict.RENAMED, Verdict.LIMITS)
_OF_SINKS = (*_SAME, Verdict.NEW, Verdict.DROPPED)


def in_place(old: Plan, new: Plan) -> tuple[Change, ...] | None:
    """What changes if the checkpoint of `old` continues with `new`; None if it cannot.

    It can if the nodes of each stage are the same, one by one, since a node's place decides where its store is; if
    sources have the same names and read from the same place; if sinks keep their numbers; and if no node tells the time
    in another way. See also `renames_what_waits`.
    """
    changes, nodes = compare(old, new), Nodes(old, new)
    fits = (
        all(change.verdict in (_OF_SINKS if change.kind == "sink" else _SAME) for change in changes)
        and [_read(node) for node in old.sources] == [_read(node) for node in new.sources]
        and len(old.stages) == len(new.stages)
        and all(_stands(was, now, nodes) for was, now in zip(old.stages, new.stages, strict=True))
        and all(meaning.state == "same" for meaning in nodes.meanings.values())
        and not any(_shortened(nodes.pairs[node.name], node) for node in new.nodes if node.name in nodes.pairs)
        and _sinks_stay(old, new, nodes)
        and _clocks_stay(old, new, nodes)
    )
    return tuple(c for c in changes if c.verdict is not Verdict.KEEP or c.reason) if fits else None


def renames_what_waits(old: Plan, new: Plan) -> bool:
    """Whether nodes have other names under which records wait for other sources: then none may wait."""
    return _from_sources(old) != _from_sources(new)


def _read(node: Node) -> tuple[object, ...]:
    """What makes a source's position valid: its name, and where and what it reads. Other options apply from now on."""
    connector: Connector = node.source.connector
    options = dict(connector.options)
    kept = (connector.keeps_history, connector.valid_from, connector.valid_to, options.get("rows_per_second"))
    return node.name, place(connector), kept


def _shortened(old: Node, new: Node) -> bool:
    """Whether a `suppress` holds rows less long, or rows expire sooner: what is due already has to be looked for, as an
    upgrade does."""
    return shortened(old, new) > 0


def _clocks_stay(old: Plan, new: Plan, nodes: Nodes) -> bool:
    """Whether no node's clock jumps: its state would expect what is due to have come out."""
    if old.clock != new.clock or new.clock == "records":
        return old.clock == new.clock
    was, now = node_clocks(old), node_clocks(new)
    return all(was[before.name].branches == now[name].branches for name, before in nodes.pairs.items())


def _stands(was: Stage, now: Stage, nodes: Nodes) -> bool:
    entering = [(one.node, one.broadcast) for one in was.inputs]
    return [_before(name, nodes) for name in now.nodes] == list(was.nodes) and [
        (_before(one.node, nodes), one.broadcast) for one in now.inputs
    ] == entering


def _before(name: str, nodes: Nodes) -> str | None:
    return nodes.pairs[name].name if name in nodes.pairs else None


def _from_sources(plan: Plan) -> list[list[str]]:
    """The nodes whose records can wait in each stage: those that come from stage 0."""
    return [[entering.node for entering in plan.from_first(stage)] for stage in plan.stages]


def _sinks_stay(old: Plan, new: Plan, nodes: Nodes) -> bool:
    """Whether each sink that continues keeps its number: by it, the sink's system knows what has been written."""
    numbers: dict[tuple[str | None, object], str] = {(sink.node, place(sink.connector)): sink.id for sink in old.sinks}
    for sink in new.sinks:
        was = numbers.get((_before(sink.node, nodes), place(sink.connector)))
        if was not in (None, sink.id):
            return False
    return True
