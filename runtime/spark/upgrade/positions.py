"""Where the sources of a new checkpoint go on: Spark's own notes of it, written before a query begins.

What these notes are, each connector knows: `connectors.position` and `OpenSource.go_on`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote

from vsc.changes.sources import place
from vsc.plan import Node, Plan
from vsc.runtime.errors import UpgradeError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.position import NOW, SeenFiles, SourceNotes
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.connectors.sink import OpenSink
from vsc.runtime.spark.connectors.snapshot import mark_whole
from vsc.runtime.spark.connectors.source import OpenSource

__all__ = ["Position", "inherit_sinks", "positions", "read_files", "write_positions", "write_same_positions"]

_NOTHING = "-"
"""What Spark writes for a source that it has not read yet."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a `source` goes on: the `before` of the old plan read up to `offset`, as Spark has written it.

    `was` is its number in Spark's logs of the old query. `given` is the position at which the user has it begin
    instead; `before` is None for a source that is new.
    """

    source: OpenSource
    before: Node | None
    was: int
    offset: str
    given: str | None = None

    @property
    def node(self) -> Node:
        """The node of the source."""
        return self.source.node

    @property
    def was_read(self) -> bool:
        """Whether anything has been read of it."""
        return self.offset != _NOTHING

    def __str__(self) -> str:
        """For people."""
        name, before = self.node.name, self.before
        known = "" if before is None or before.name == name else f" (was {before.name})"
        if self.given is not None:
            return f"source {name}{known}: begins at {_begins(self.given)}"
        if not self.was_read:
            return f"source {name}{known}: nothing has been read of it yet"
        if self.source.restarts is not None:
            return f"source {name}{known}: {self.source.restarts}"
        return f"source {name}{known}: goes on at {_shown(self.offset)}"


def positions(
    old: Plan, new: Ends, names: Mapping[str, str], offsets: list[str], given: Mapping[str, str]
) -> list[Position]:
    """The positions of the `new` sources that go on or are in `given`; `names` has their names in `old`, `offsets` are
    the old query's.

    UpgradeError for a source whose position cannot be carried over.
    """
    before = {node.name: (number, node) for number, node in enumerate(old.sources, 1)}
    going_on = []
    for source in new.sources:
        name = source.node.name
        placed = given.get(name)
        if name in names:
            was, old_node = before[names[name]]
            going_on.append(Position(source, old_node, was, offsets[was], placed))
        elif placed is not None:
            going_on.append(Position(source, None, source.number, _NOTHING, placed))
    for one in going_on:
        if one.given is None and not (one.source.is_snapshot or one.source.goes_on):
            kind = one.node.source.connector.kind
            raise UpgradeError(
                f"source {one.node.name} (line {one.node.line}) reads from {kind}, whose position vsc cannot carry "
                "over yet",
                f"start with a new checkpoint; or --position {one.node.name}=beginning reads everything again",
            )
    return going_on


def write_positions(
    found: list[Position], old: Files, new: Files, there: Callable[[OpenSource], Iterable[tuple[str, int]]]
) -> None:
    """Writes them into the new checkpoint, with what sources have taken into the old one. `there` lists the files of a
    source: the URL of each, and when it was changed, in ms."""
    for one in found:
        if one.given is not None:
            one.source.begin_at(SourceNotes(new, one.source.number), one.given, partial(there, one.source))
        elif one.before is not None:
            _go_on(one, one.before, old, new)


def write_same_positions(found: list[Position], old: Files, new: Files) -> None:
    """Writes them into a new checkpoint that takes the place of the old one, in which what sources have taken stays."""
    for one in found:
        _write_notes(one, new, partial(read_files, one, old))
        one.source.inherit(one.node, old, new)


def inherit_sinks(was: Plan, plan: Plan, sinks: Iterable[OpenSink], old: Files, new: Files) -> None:
    """Has the `sinks` of `plan` keep what those of `was` that wrote to the same place, of the same node if there is
    one, have kept. Plans are as they were written: without the values of variables."""
    for opened, sink in zip(sinks, plan.sinks, strict=True):
        there = [one for one in was.sinks if place(one.connector) == place(sink.connector)]
        before = next((one for one in there if one.node == sink.node), there[0] if there else None)
        if before is not None:
            opened.inherit(before.id, old, new)


def read_files(one: Position, old: Files) -> Iterator[tuple[str, int]]:
    """The files that the old query has read: the URL of each, and when it was changed, in ms."""
    for entry in map(json.loads, SparkLogs(old).read_files(str(one.was), int(json.loads(one.offset)["logOffset"]))):
        yield entry["path"], entry["timestamp"]


def _go_on(one: Position, before: Node, old: Files, new: Files) -> None:
    """Writes that a source goes on where it has stopped."""
    was, now = (f"vsc/sources/{node.source.rank}" for node in (before, one.node))
    if one.source.is_snapshot and old.exists(was):
        old.copy(was, new, now)
        mark_whole(new, now)
    _write_notes(
        one, new, partial(_read_there, one, old, new, now) if one.source.is_snapshot else partial(read_files, one, old)
    )
    one.source.inherit(before, old, new)


def _write_notes(one: Position, new: Files, read: SeenFiles) -> None:
    if one.was_read:
        one.source.go_on(SourceNotes(new, one.source.number), one.offset, read)


def _read_there(one: Position, old: Files, new: Files, kept: str) -> Iterator[tuple[str, int]]:
    """The files that the old query has read of what it has taken, as they are in `kept` of the new checkpoint."""
    here = dict(new.statuses(kept))
    for path, _ in read_files(one, old):
        yield here[unquote(path).rpartition("/")[2]]


def _begins(given: str) -> str:
    if given == NOW:
        return "what comes from now on: all files that are there count as read"
    return _shown(given) if given.startswith("{") else "its beginning"


def _shown(offset: str) -> str:
    position = json.loads(offset)
    if not isinstance(position, dict):
        return str(position)
    if "logOffset" in position:
        return f"entry {position['logOffset']} of its log"
    return ", ".join(_parts(position))[:200]


def _parts(offset: dict[str, object]) -> Iterator[str]:
    for name, value in offset.items():
        if isinstance(value, dict):
            yield from (f"{name} {part}: {number}" for part, number in value.items())
        else:
            yield f"{name} {value}"
