"""The lowest stage in which each node of a plan can run: its *level*.

* A stream source: 0. What is stateless and reads streams: the highest of its inputs.
* What needs the records of one key in one place (a table, a join, a merge of two paths from one source): at least 1,
  and above every input whose records are not in the partition of their key.
* What looks into a global table: at least 1.
* A stateless stream node, if both it and its input are read by key: at least 1. Kafka Streams takes a record depth
  first, each consumer in the order of its declaration, and only one stage can do that for both of them.

A repartition brings records to the partition of their key. After an operation that gives them another key, they are
elsewhere: they move to another stage before the next operation that needs them by key. Kafka Streams has a repartition
topic there. What a record causes without passing one is processed before what passes one.

The rows of a windowed table are in the partition of their key without the window: all of a group are together.
"""

from __future__ import annotations

from collections.abc import Sequence

from vsc.plan import Node

__all__ = ["find_levels", "is_made_of_stream"]


def find_levels(nodes: Sequence[Node]) -> dict[str, int]:
    """The level of every node; for a source table, that of the first stage that can store it."""
    keyed = {node.name for node in nodes if _is_keyed(node)} | _meeting(nodes)
    together = _read_together(nodes, keyed)
    levels: dict[str, int] = {}
    moving: set[str] = set()  # nodes whose records are not in the partition of their key
    for node in nodes:
        by_key = node.name in keyed
        least = 1 if by_key or node.name in together or node.operation.looks_up else 0
        above = [levels[name] + (1 if by_key and name in moving else 0) for name in node.inputs]
        level = levels[node.name] = max([least, *above])
        carried = any(name in moving and levels[name] == level for name in node.inputs)
        if node.operation.moves or (carried and not by_key):
            moving.add(node.name)
    return levels


def is_made_of_stream(node: Node) -> bool:
    """Whether a table begins at `node`, which is made from the records of a stream."""
    return node.kind == "table" and node.operation.reads == ("stream",)


def _is_keyed(node: Node) -> bool:
    """Whether a node needs the records of one key in one place."""
    return node.kind == "table" or node.operation.by_key


def _meeting(nodes: Sequence[Node]) -> set[str]:
    """The merges where two paths from one node meet again: only within a stage does a record take them one by one."""
    behind: dict[str, frozenset[str]] = {}
    found = set()
    for node in nodes:
        ways = [behind[name] for name in node.inputs]
        behind[node.name] = frozenset({node.name}).union(*ways)
        if len(node.inputs) > 1 and "streams" in node.operation.reads and len(behind[node.name]) <= sum(map(len, ways)):
            found.add(node.name)
    return found


def _read_together(nodes: Sequence[Node], keyed: set[str]) -> frozenset[str]:
    """The stateless stream nodes that lead to a reader by key, and whose input has one itself."""
    by_key = {name for node in nodes if node.name in keyed for name in node.inputs}
    leading = set(by_key)
    found = set()
    for node in reversed(nodes):
        if node.name in keyed or not node.inputs or node.operation.moves or node.name not in leading:
            continue
        leading.update(node.inputs)
        if not by_key.isdisjoint(node.inputs):
            found.add(node.name)
    return frozenset(found)
