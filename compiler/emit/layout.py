"""What all pictures of a plan have in common: which node stands in which stage, and what goes from where to where."""

from __future__ import annotations

from vsc.compiler.words import duration, window
from vsc.plan import Aggregate, Node, Plan, Sink, Source, StreamTableJoin, Suppress, Window
from vsc.plan.record import record

__all__ = ["Arrow", "Place", "arrows", "description", "places", "sink_description", "sink_places"]

_LONGEST = 40


@record
class Place:
    """A node in one of its stages. `id` is made of numbers, so that no name can break a picture."""

    id: str
    node: Node
    stage: int


@record
class Arrow:
    """Records go from the place `start` to the place or sink `end`.

    `repartition`: through a shuffle, by key; `broadcast`: all of them to every partition.
    """

    start: str
    end: str
    repartition: bool = False
    broadcast: bool = False

    @property
    def label(self) -> str:
        """How the records get there; empty where they stay."""
        return "repartition" if self.repartition else "broadcast" if self.broadcast else ""


def places(plan: Plan) -> tuple[Place, ...]:
    """Every node in every stage that lists it, stage by stage."""
    numbers = {node.name: number for number, node in enumerate(plan.nodes)}
    return tuple(
        Place(f"n{numbers[name]}_{stage.id}", plan.nodes[numbers[name]], stage.id)
        for stage in plan.stages
        for name in stage.nodes
    )


def sink_places(plan: Plan) -> tuple[tuple[str, Sink], ...]:
    """The sinks with an id each."""
    return tuple((f"s{number}", sink) for number, sink in enumerate(plan.sinks))


def arrows(plan: Plan) -> tuple[Arrow, ...]:
    """All ways of records: inside a stage, from stage to stage, to the sinks."""
    at = {(place.node.name, place.stage): place.id for place in places(plan)}
    emitting = {name: at[name, stage.id] for stage in plan.stages for name in stage.emits}
    found = []
    for place in places(plan):
        node = place.node
        if isinstance(node.operation, Source) and place.stage > 0:
            everywhere = node.operation.global_
            found.append(Arrow(at[node.name, 0], place.id, not everywhere, everywhere))
        for name in node.inputs:
            inside = at.get((name, place.stage))
            found.append(Arrow(inside or emitting[name], place.id, inside is None))
    found.extend(Arrow(emitting[sink.node], id_) for id_, sink in sink_places(plan))
    return tuple(found)


def description(node: Node) -> tuple[str, ...]:
    """A node in a few words: its name, what it is, its key, its window, what it waits for, its status and store."""
    key = ", ".join(column.name for column in node.schema.key)
    kind = "global table" if isinstance(node.operation, Source) and node.operation.global_ else node.kind
    lines = [node.name, f"{node.operation.op} ({kind})".replace("_", " ")]
    if key:
        lines.append(f"key {key}")
    match node.operation:
        case Aggregate(window=Window() as found, final=final):
            lines.append(window(found) + (", final" if final else ""))
        case StreamTableJoin(grace=int() as grace):
            lines.append(f"grace {duration(grace)}")
        case Suppress(wait=wait):
            lines.append(f"wait {duration(wait)}")
        case _:
            pass
    if node.status is not None:
        lines.append("versioned" if node.status.versioned else "unversioned")
    if node.store is not None and node.store.retention is not None and node.store.grace is not None:
        lines.append(f"retention {duration(node.store.retention)}")
        if node.store.grace != node.store.retention:
            lines.append(f"store grace {duration(node.store.grace)}")
    return tuple(lines)


def sink_description(sink: Sink) -> tuple[str, ...]:
    """A sink in a few words: its connector, and where it writes; of a long path the end."""
    options = dict(sink.connector.options)
    where = next((str(options[name]) for name in ("path", "topic", "table") if name in options), None)
    if where is not None and len(where) > _LONGEST:
        where = "..." + where[3 - _LONGEST :]
    return (sink.connector.kind, "sink") if where is None else (sink.connector.kind, "sink", where)
