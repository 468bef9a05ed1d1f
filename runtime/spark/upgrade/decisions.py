"""What an upgrade does with each source, store and sink, and when it has to be asked: decisions about stores, positions
of sources (`--position SOURCE=POSITION`).

Works without Spark; a connector may ask its system for the positions that there are. Not for what is written of
positions: that is `positions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from vsc.changes import Change, Verdict, decision
from vsc.plan import Plan
from vsc.runtime.errors import ConfigurationError, UpgradeError
from vsc.runtime.spark.connectors.registry import Ends, open_source

__all__ = ["check_decided", "check_placed", "covered", "emptied", "remarks", "settled_positions"]


def check_decided(changes: Sequence[Change], reset: Collection[str], accept: Collection[str], plan: Plan) -> None:
    """UpgradeError if a change cannot be made, or a store needs a decision that was not given; ConfigurationError for a
    name in `reset` or `accept` that is not a store in need of a decision. `plan` is the new one."""
    stores = {change.name: change.verdict for change in changes if change.kind == "store"}
    for option, names in (("--reset", reset), ("--accept", accept)):
        for name in names:
            if name not in stores:
                there = f"there are {', '.join(sorted(stores))}" if stores else "neither topology keeps a store"
                raise ConfigurationError(f"{option} {name}: there is no such store", there)
            if stores[name] is not Verdict.REBUILD:
                raise ConfigurationError(
                    f"{option} {name}: the verdict on this store is `{stores[name].value}`, there is nothing to decide",
                    f"remove `{option} {name}`",
                )
    emptied, kept = covered(reset, changes), covered(accept, changes)
    for name in sorted(emptied & kept):
        raise ConfigurationError(f"the store {name} is in --reset and in --accept", "decide for one of them")
    asked = [c for c in changes if c.kind == "store" and c.verdict is Verdict.REBUILD]
    open_ = [c for c in asked if c.name not in emptied | kept]
    if open_:
        found = "".join(f"\n  {c.name}: {c.reason} (line {c.line})" for c in open_)
        again = " ".join(f"--reset {c.name} --position {begin}" for c in open_ for begin in _beginning(c, plan))
        filled = f"; `{again}` empties it and fills it again, from its source" if again else ""
        raise UpgradeError(
            f"decide what becomes of these stores:{found}",
            f"{decision(open_)}{filled}; or start the new topology with a new checkpoint, which reads everything again",
        )


def _beginning(change: Change, plan: Plan) -> Iterator[str]:
    """The position at which the source that fills a store gives everything again, if it can: ``rates=beginning``."""
    for node in plan.sources:
        first = open_source(plan, node).first
        if node.name == change.owner and not change.gone and first is not None:
            yield f"{node.name}={first}"


def covered(names: Collection[str], changes: Sequence[Change]) -> frozenset[str]:
    """The stores in need of a decision that `names` mean. A node's store stands for all stores of that node."""
    asked = (c for c in changes if c.kind == "store" and c.verdict is Verdict.REBUILD)
    return frozenset(c.name for c in asked if c.name in names or c.owner in names)


def emptied(changes: Sequence[Change], reset: Collection[str], placed: Collection[str], plan: Plan) -> list[str]:
    """What to know of the tables of sources that are emptied, and whose sources do not begin again."""
    return [
        f"store {change.name}: it begins empty, and look-ups find only what is read from now on; --position {begin} "
        "fills it again"
        for change in changes
        if change.kind == "store" and change.name in covered(reset, changes) and change.owner not in placed
        for begin in _beginning(change, plan)
    ]


def remarks(changes: Sequence[Change], placed: Collection[str] = ()) -> list[str]:
    """What to know of sources and sinks whose verdict asks for more than the stores do; `placed` are the sources that
    have been given a position."""
    lines = []
    for change in changes:
        if change.kind == "topology":
            lines.append(f"topology {change.name}: no partition's stream time goes back when the clock changes")
        if change.kind == "sink" and change.verdict is Verdict.REBUILD:
            lines.append(f"sink {change.name}: what it holds stays as the old text computed it; new results follow")
        if change.kind == "source" and change.verdict is Verdict.REBUILD:
            lines.append(f"source {change.name}: what has been read is not read again; the new text reads the rest")
        if change.kind == "source" and change.verdict is Verdict.NEW and change.name not in placed:
            lines.append(f"source {change.name}: begins at its beginning")
        if change.kind == "store" and change.verdict is Verdict.NEW:
            lines.append(f"store {change.name}: {change.reason or 'begins empty, with what comes from now on'}")
        if change.kind == "store" and change.verdict is Verdict.DROPPED and change.reason:
            lines.append(f"store {change.name}: {change.reason}")
    return lines


def check_placed(changes: Sequence[Change], plan: Plan, given: Mapping[str, str]) -> None:
    """UpgradeError for a source whose connector has changed and that has no position in `given`; ConfigurationError for
    a name in `given` that is not a source's of the new `plan`."""
    sources = {node.name: node for node in plan.sources}
    for name in given:
        if name not in sources:
            raise ConfigurationError(f"--position {name}: unknown source", f"the sources are {', '.join(sources)}")
    for change in changes:
        if change.kind == "source" and change.verdict is Verdict.MOVED and change.name not in given:
            raise UpgradeError(
                f"source {change.name} (line {change.line}): {change.reason}",
                f"say where it begins with --position {change.name}=POSITION: "
                f"{open_source(plan, sources[change.name]).position_help()}",
            )


def settled_positions(ends: Ends, given: Mapping[str, str]) -> dict[str, str]:
    """The positions by source; a Kafka position is an offset for each partition. PositionError for an invalid one."""
    return {
        source.node.name: source.settled_position(given[source.node.name])
        for source in ends.sources
        if source.node.name in given
    }
