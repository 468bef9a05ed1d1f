"""Where the nodes of a stage keep their state: each has its own prefix in the stage's key-value store."""

from __future__ import annotations

import struct

from vsc.plan.nodes import Stage

__all__ = ["store_prefix"]


def store_prefix(stage: Stage, node: str) -> bytes:
    """The prefix of the state of `node` in `stage`: no prefix is a prefix of another."""
    return struct.pack(">H", stage.nodes.index(node))
