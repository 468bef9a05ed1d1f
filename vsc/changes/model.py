"""Verdicts on the changes between two plans."""

from __future__ import annotations

from enum import Enum

from vsc.plan.record import record

__all__ = ["Change", "Verdict"]


class Verdict(Enum):
    """What a change means for a source, a store or a sink. In order of weight, the heaviest last."""

    KEEP = "keep"
    """It means the same, and so does everything upstream, whatever the nodes' names."""
    RENAMED = "renamed"
    """It means the same, under another name."""
    LIMITS = "limits"
    """Retention, grace, another bound or the clock has changed. It applies from now on; existing rows stay valid."""
    WIDENED = "widened"
    """It has another column, or one of a wider type. In older rows, that column is read as null, or converted."""
    NEW = "new"
    """It did not exist: it begins with what comes from now on."""
    DROPPED = "dropped"
    """It no longer exists."""
    REBUILD = "rebuild"
    """It means something else: its rows were computed by the old topology. Or it is new and needs rows that it cannot
    be given."""
    MOVED = "moved"
    """It reads from another connector: an upgrade needs to know where to begin there. This says nothing about its
    meaning: the stores that it feeds have verdicts of their own."""


@record
class Change:
    """The verdict on the source, store or sink `name`; `was` is its former name, if that was different. The kind
    ``topology``, without `node` and `line`, is for a change of all nodes.

    `reason` says what has changed; it is empty if nothing has. `node` is the node that decided it. `line` is that
    node's line in the new topology, or in the old one if the node is gone. `fresh`: the store must be rebuilt, but did
    not exist before. `gone`: it no longer exists, but holds back what others wait for. `other`: its rows are of another
    kind than before.
    """

    kind: str
    name: str
    verdict: Verdict
    reason: str
    node: str
    line: int
    was: str | None = None
    fresh: bool = False
    gone: bool = False
    other: bool = False

    @property
    def owner(self) -> str:
        """The node that a store belongs to, as the user calls it."""
        return self.name.partition("#")[0]

    @property
    def acceptable(self) -> bool:
        """Whether a store that has to be decided on can be kept as it is."""
        return not (self.fresh or self.gone or self.other)
