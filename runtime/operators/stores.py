"""Where the nodes of a stage keep what they keep: each has a prefix of its own in the stage's key-value store."""

from __future__ import annotations

import struct

from vsc.plan.nodes import Stage

__all__ = ["store_prefix"]


def store_prefix(stage: Stage, node: str) -> bytes:
    """The prefix of what `node` keeps in `stage`: no prefix is the beginning of another one."""
    return struct.pack(">H", stage.nodes.index(node))
