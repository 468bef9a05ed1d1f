"""What users are shown of stream time: the clock of the node that keeps a store, and how far it is behind its sources.

By the clock of the input, a node's clock is that less a constant, but never below what its partitions had before. By
records, each partition has its own. Always shown is the lowest, since that is what something may wait for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vsc.plan.clocks import node_clocks
from vsc.plan.nodes import Plan
from vsc.runtime.spark.exchange.counters import EpochReport

__all__ = ["NO_CLOCK", "NodeClocks", "ShownClock"]


class ShownClock(NamedTuple):
    """The clock of a node, and how far it is behind its sources; both in ms, None where nothing has come yet."""

    time: int | None
    behind: int | None


NO_CLOCK = ShownClock(None, None)


class NodeClocks:
    """The clocks of the nodes of `plan`."""

    def __init__(self, plan: Plan) -> None:
        self._nodes, self._by_input = node_clocks(plan), plan.clock == "input"

    def clocks(self, report: EpochReport) -> Mapping[str, int]:
        """How far an epoch has brought the clocks of sources."""
        return report.gone_on if self._by_input else report.clocks

    def shown(self, node: str, lowest: int | None, sources: Mapping[str, int]) -> ShownClock:
        """The clock of `node`, where its lowest partition is at `lowest`, and each of the `sources` at its time."""
        own = self._nodes[node]
        of_input = max((sources[source] for source in own.sources if source in sources), default=None)
        if of_input is None:
            return ShownClock(lowest, None)
        time = lowest
        if self._by_input and of_input >= own.hold:
            time = of_input - own.hold if lowest is None else max(lowest, of_input - own.hold)
        return ShownClock(time, None if time is None else max(0, of_input - time))
