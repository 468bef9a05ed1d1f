"""Verdicts."""

from __future__ import annotations

from enum import Enum

from vsc.plan.record import record

__all__ = ["Change", "Verdict"]


class Verdict(Enum):
    """What a change means for a source, a store or a sink. The later ones are the weightier ones."""

    KEEP = "keep"
    """It means the same: all that is upstream, whatever its nodes are called."""
    RENAMED = "renamed"
    """It means the same and has another name."""
    LIMITS = "limits"
    """Retention, grace or another bound has changed: from now on; what stands in it stays right."""
    WIDENED = "widened"
    """It has a column more, or one of a wider type: older rows are read as null, or converted."""
    NEW = "new"
    """It was not there: it begins with what comes from now on."""
    DROPPED = "dropped"
    """It is no longer there."""
    REBUILD = "rebuild"
    """It means something else: what stands in it was computed by the old text. Or it is new, and cannot be given rows
    that it needs."""
    MOVED = "moved"
    """It reads from another connector: an upgrade needs to know where to begin there. Its meaning is judged apart: the
    stores that it feeds have verdicts of their own."""


@record
class Change:
    """The verdict on one source, store or sink, called `name`; `was` is its name before, where that was another.

    `reason` says what has changed, empty where nothing has. `node` is the node that decided it, and `line` its line in
    the new text, or in the old one where it is gone. `fresh`: a store to be rebuilt that was not there before.
    """

    kind: str
    name: str
    verdict: Verdict
    reason: str
    node: str
    line: int
    was: str | None = None
    fresh: bool = False
