"""What users are shown of stream time: the clock of the node that keeps a store, and how far it is behind its sources.

By the clock of the input, a node's clock is that less its hold, but never below what its partitions had before. By
records, each partition has its own. Always shown is the lowest, since that is what something may wait for. Also what
keeps a table's history for longer than its retention: a node that looks into it by a clock that is behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vsc.plan.clocks import node_clocks
from vsc.plan.nodes import Plan
from vsc.runtime.operators.layout import askers
from vsc.runtime.spark.exchange.counters import EpochReport

__all__ = ["NO_CLOCK", "HeldHistory", "NodeClocks", "ShownClock"]


class ShownClock(NamedTuple):
    """The clock of a node, and how far it is behind its sources; both in ms, None where nothing has come yet."""

    time: int | None
    behind: int | None


NO_CLOCK = ShownClock(None, None)


class HeldHistory(NamedTuple):
    """The node that keeps a table's history, and how far its clock is behind the table's, in ms; None: nothing has come
    yet that could move it."""

    node: str
    behind: int | None


class NodeClocks:
    """The clocks of the nodes of `plan`."""

    def __init__(self, plan: Plan) -> None:
        self._nodes, self._by_input = node_clocks(plan), plan.clock == "input"
        self._retention = {n.name: n.store.retention for n in plan.nodes if n.store is not None and n.store.retention}
        self._owners = {node.name: node.owner for node in plan.nodes}
        self._asking: dict[str, set[str]] = {}
        for stage in plan.stages if self._by_input else ():
            for name, asking in askers(plan, stage).items():
                self._asking.setdefault(name, set()).update(asking)

    def clocks(self, report: EpochReport) -> Mapping[str, int]:
        """How far an epoch has brought the clocks of sources."""
        return report.gone_on if self._by_input else report.clocks

    def shown(self, node: str, lowest: int | None, sources: Mapping[str, int]) -> ShownClock:
        """The clock of `node`, where its lowest partition is at `lowest`, and each of the `sources` at its time."""
        own, of_input = self._of_input(node, sources), self._nodes[node].of_input(sources)
        if own is None:
            return ShownClock(lowest, None)
        time = lowest
        if self._by_input and own >= 0:
            time = own if lowest is None else max(lowest, own)
        return ShownClock(time, None if time is None else max(0, of_input - time))

    def history(self, node: str, sources: Mapping[str, int]) -> HeldHistory | None:
        """What keeps the history of the table of `node` for more than twice its retention, if something does."""
        own, retention = self._of_input(node, sources), self._retention.get(node)
        if own is None or retention is None:
            return None
        behind = {}
        for name in self._asking.get(node, ()):
            shown = self._of_input(name, sources)
            behind[name] = None if shown is None else own - shown
        late = {name: by for name, by in behind.items() if by is None or by > retention}
        if not late:
            return None
        name = max(sorted(late), key=lambda one: own + 1 if (by := late[one]) is None else by)
        return HeldHistory(self._owners[name], late[name])

    def _of_input(self, node: str, sources: Mapping[str, int]) -> int | None:
        """What the input makes of the clock of `node`; None where nothing has come yet."""
        own = self._nodes[node]
        return own.shown(sources) if own.sources.intersection(sources) else None
