"""Which rows may change places: in which orders of arrival a topology promises the same results.

Two rows may swap if their event times are less far apart than every grace where they meet. So no row becomes late that
was in time, none that was late becomes in time, and what is declared nowhere is not tolerated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from itertools import product

from vsc.plan.nodes import Node, Plan
from vsc.plan.operations import (
    Aggregate,
    Correct,
    DeadLetters,
    Distinct,
    Reorder,
    StreamGlobalJoin,
    StreamStreamJoin,
    StreamTableJoin,
    WithinAggregate,
)

__all__ = ["tolerances"]

_Pairs = Set[tuple[str, str]]


def tolerances(plan: Plan) -> Mapping[tuple[str, str], int | None]:
    """By two sources, in both orders: rows that are less than so many ms apart may swap. None: all may."""
    above: dict[str, frozenset[str]] = {}
    found: dict[tuple[str, str], int | None] = {}
    met: set[tuple[str, str]] = set()
    for node in plan.nodes:
        if isinstance(node.operation, DeadLetters):
            continue
        own = frozenset(() if node.inputs else (node.name,))
        above[node.name] = own.union(*(above[name] for name in node.inputs))
        met |= _pairs(above[node.name], above[node.name])
        for pairs, limit in _limits(node, above):
            for pair in pairs:
                known = found.get(pair)
                found[pair] = limit if known is None else min(known, limit)
    names = [node.name for node in plan.sources]
    return {pair: found.get(pair, 0 if pair in met else None) for pair in product(names, names)}


def _limits(node: Node, above: Mapping[str, frozenset[str]]) -> Iterator[tuple[_Pairs, int]]:
    """The graces of a node, each for the sources whose rows it is about."""
    every, operation = _pairs(above[node.name], above[node.name]), node.operation
    if node.store is not None and node.store.grace is not None:
        yield every, node.store.grace
    match operation:
        case Aggregate(window=window) if window is not None:
            yield every, window.grace
        case StreamStreamJoin(grace=grace) | WithinAggregate(grace=grace) | Distinct(grace=grace):
            yield every, grace
        case Reorder(within=grace):
            yield every, grace
        case StreamTableJoin(grace=grace) if grace is not None:
            yield every, grace
        case Correct(within=within):
            stream, table = (above[name] for name in node.inputs)
            yield _pairs(stream, table), within
        case StreamTableJoin() | StreamGlobalJoin():
            stream, table = (above[name] for name in node.inputs)
            yield _pairs(stream, table), 0


def _pairs(some: Set[str], others: Set[str]) -> _Pairs:
    return {pair for one, other in product(some, others) for pair in ((one, other), (other, one))}
