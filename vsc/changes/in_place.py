"""Whether a checkpoint can go on with a changed topology as it is: all of its state lies where the new plan looks for
it, and means the same."""

from __future__ import annotations

from vsc.changes.compare import compare, target
from vsc.changes.model import Change, Verdict
from vsc.changes.nodes import Nodes
from vsc.plan import Plan, Stage

__all__ = ["in_place"]

_SAME = (Verdict.KEEP, Verdict.RENAMED, Verdict.LIMITS)
_OF_SINKS = (*_SAME, Verdict.NEW, Verdict.DROPPED)


def in_place(old: Plan, new: Plan) -> tuple[Change, ...] | None:
    """What changes where the checkpoint of `old` goes on with `new`; None if it cannot.

    It can if the nodes of each stage are the same, one by one, for a store lies where its node stands; if what waits
    for a stage does so under the same name; if sources read from where they did, and sinks keep their numbers.
    """
    changes, nodes = compare(old, new), Nodes(old, new)
    fits = (
        all(change.verdict in (_OF_SINKS if change.kind == "sink" else _SAME) for change in changes)
        and [(n.name, n.source.connector) for n in old.sources] == [(n.name, n.source.connector) for n in new.sources]
        and len(old.stages) == len(new.stages)
        and all(_stands(was, now, nodes) for was, now in zip(old.stages, new.stages, strict=True))
        and _from_sources(old) == _from_sources(new)
        and all(meaning.state == "same" for meaning in nodes.meanings.values())
        and _sinks_stay(old, new, nodes)
    )
    return tuple(c for c in changes if c.verdict is not Verdict.KEEP or c.reason) if fits else None


def _stands(was: Stage, now: Stage, nodes: Nodes) -> bool:
    entering = [(one.node, one.broadcast) for one in was.inputs]
    return [_before(name, nodes) for name in now.nodes] == list(was.nodes) and [
        (_before(one.node, nodes), one.broadcast) for one in now.inputs
    ] == entering


def _before(name: str, nodes: Nodes) -> str | None:
    return nodes.pairs[name].name if name in nodes.pairs else None


def _from_sources(plan: Plan) -> list[list[str]]:
    """What can wait in each stage: what comes from stage 0."""
    return [[one.node for one in stage.inputs if one.node in plan.stages[0].nodes] for stage in plan.stages]


def _sinks_stay(old: Plan, new: Plan, nodes: Nodes) -> bool:
    """Whether each sink that goes on has the number under which its system knows what it has written."""
    numbers: dict[tuple[str | None, object], str] = {(sink.node, target(sink.connector)): sink.id for sink in old.sinks}
    for sink in new.sinks:
        was = numbers.get((_before(sink.node, nodes), target(sink.connector)))
        if was not in (None, sink.id):
            return False
    return True
