"""Draws the plan as it runs: every node in every stage that lists it, including nodes that the lowering added."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler.emit.clauses import clauses
from vsc.compiler.emit.drawing import Arrow, Box, Drawing, lost_by, sink_lines
from vsc.plan import (
    Aggregate,
    Correct,
    Grace,
    Node,
    Plan,
    Reorder,
    Source,
    Stage,
    StreamGlobalJoin,
    StreamStreamJoin,
    StreamTableJoin,
    Suppress,
    Window,
    WithinAggregate,
)
from vsc.plan.clocks import node_clocks
from vsc.plan.words import duration, window, within

__all__ = ["physical"]


def physical(plan: Plan) -> Drawing:
    """Draws stages as bands, repartitions and broadcasts as distinct arrows, and the reason of a status as tooltip."""
    numbers = {node.name: number for number, node in enumerate(plan.nodes)}
    holds = {name: clock.hold for name, clock in node_clocks(plan).items()} if plan.clock == "input" else {}
    boxes = [
        _box(plan.nodes[numbers[name]], numbers[name], stage, holds.get(name, 0))
        for stage in plan.stages
        for name in stage.nodes
    ]
    last = len(plan.stages)
    boxes += (
        Box(f"n{numbers[node.name]}", "stream", (node.name, "dead letters"), band=last) for node in plan.dead_letters
    )
    boxes += (Box(f"s{n}", "sink", sink_lines(sink.connector), band=last) for n, sink in enumerate(plan.sinks))
    bands = (*(f"stage {stage.id}" for stage in plan.stages), "")
    return Drawing(plan.name, tuple(boxes), tuple(_arrows(plan, numbers)), bands)


def _box(node: Node, number: int, stage: Stage, hold: int) -> Box:
    is_global = isinstance(node.operation, Source) and node.operation.global_
    kind = "global table" if is_global else node.kind
    tooltip = "" if node.status is None else node.status.reason
    lines = (*_lines(node, kind), *([f"clock {duration(hold)} behind"] if hold else []))
    return Box(f"n{number}_{stage.id}", kind, lines, tooltip, stage.id)


def _lines(node: Node, kind: str) -> Iterator[str]:
    """The box's text: name, operation, key, window, grace or wait, status and store."""
    yield node.name
    yield f"{node.operation.op} ({kind})".replace("_", " ")
    if key := ", ".join(column.name for column in node.schema.key):
        yield f"key {key}"
    match node.operation:
        case Aggregate(window=Window() as found, final=final):
            yield window(found) + (", final" if final else "")
        case (StreamStreamJoin(grace=grace) | WithinAggregate(grace=grace)) as join:
            yield within(join) + (f", grace {duration(grace)}" if grace else "")
        case Correct() | Grace() | StreamTableJoin() | StreamGlobalJoin() as join:
            yield from clauses(join)
        case Reorder(within=late):
            yield f"within {duration(late)}"
        case Suppress(wait=wait):
            yield f"wait {duration(wait)}"
        case _:
            pass
    if node.status is not None:
        yield "versioned" if node.status.versioned else "unversioned"
    if node.store is not None and node.store.retention is not None and node.store.grace is not None:
        yield f"retention {duration(node.store.retention)}"
        if node.store.grace != node.store.retention:
            yield f"store grace {duration(node.store.grace)}"
        if node.complete:
            yield "complete history"
    if node.expire is not None:
        yield f"expire {duration(node.expire)}"


def _arrows(plan: Plan, numbers: dict[str, int]) -> Iterator[Arrow]:
    """All paths of records: inside a stage, between stages, and to the sinks."""
    emitting = {name: f"n{numbers[name]}_{stage.id}" for stage in plan.stages for name in stage.emits}
    for stage in plan.stages:
        for name in stage.nodes:
            node, end = plan.nodes[numbers[name]], f"n{numbers[name]}_{stage.id}"
            if isinstance(node.operation, Source) and stage.id > 0:
                yield Arrow(f"n{numbers[name]}_0", end, "broadcast" if node.operation.global_ else "repartition")
            for read in node.inputs:
                inside = read in stage.nodes
                start = f"n{numbers[read]}_{stage.id}" if inside else emitting[read]
                yield Arrow(start, end, "plain" if inside else "repartition")
    for letters in plan.dead_letters:
        emitting[letters.name] = f"n{numbers[letters.name]}"
        if (of := lost_by(letters)) is not None:
            yield Arrow(emitting[of], emitting[letters.name], "lost")
    yield from (Arrow(emitting[sink.node], f"s{number}") for number, sink in enumerate(plan.sinks))
