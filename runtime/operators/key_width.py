"""By how many of its key columns a node's records are partitioned.

The rows of a windowed table stand where their group is, wherever their window is: the window's two bounds at the end of
the key do not count. What is joined with such a table, and all that takes its key over, has to be partitioned alike;
the widths are therefore one for all nodes that hand their key on to one another. All other keys count whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from vsc.plan.nodes import Node, Plan
from vsc.runtime.state.keys import KeyCodec

__all__ = ["partition_codecs", "partition_widths"]

_BOUNDS = 2
"""The key columns of a window: its start and its end."""


def partition_widths(plan: Plan) -> dict[str, int]:
    """For each node the number of leading key columns by which its records are partitioned."""
    first: dict[str, str] = {n.name: n.name for n in plan.nodes}

    def root(name: str) -> str:
        while first[name] != name:
            name = first[name]
        return name

    for node in plan.nodes:
        for one, other in _of_one_key(node):
            first[root(one)] = root(other)
    windowed = {root(n.name) for n in plan.nodes if n.operation.begins_windows}
    return {n.name: len(n.schema.key) - (_BOUNDS if root(n.name) in windowed else 0) for n in plan.nodes}


def partition_codecs(plan: Plan) -> dict[str, KeyCodec]:
    """For each node the codec of the key columns by which its records are partitioned."""
    widths = partition_widths(plan)
    return {n.name: KeyCodec([c.type for c in n.schema.key[: widths[n.name]]]) for n in plan.nodes}


def _of_one_key(node: Node) -> Iterator[tuple[str, str]]:
    """The pairs of nodes that have to be partitioned alike on account of `node`."""
    operation = node.operation
    meeting = node.inputs[:1] if operation.looks_up and not operation.by_key else node.inputs
    yield from pairwise(meeting)
    if meeting and not operation.moves and not operation.begins_windows:
        yield node.name, meeting[0]
