"""Counts the versions of a table that come later than a stream-table join has waited for them.

Such a version is right in the table, but records that went out before may have missed it. Whether there was one of its
key is not kept, so the count is an upper bound. By the clock of the input only.
"""

from __future__ import annotations

from vsc.plan.nodes import Correct, StreamTableJoin
from vsc.runtime.operators.site import Site

__all__ = ["count_late"]


def count_late(site: Site, operation: StreamTableJoin | Correct, final: int = 0) -> None:
    """Counts those that the table of a join has accepted in this batch, and how long it should have waited for them.

    `final`: the time before which results are final, even where a `within` that is longer now reaches further back.
    """
    changes, clock = site.accepted(site.node.inputs[1]), site.batch.clock
    if clock is None or changes is None or not len(changes):
        return
    behind, own = clock.ahead_of(site.node.name, changes.at) - changes.time, int(not operation.strictly_before)
    if isinstance(operation, Correct):  # the records of the version's own time are not final yet
        late = (behind > operation.within) | (changes.time < final)
    elif operation.grace is None:  # records go out as they come, some of them ahead of the node's clock
        late = clock.soonest_ahead_of(site.node.name, site.node.inputs[1], changes.at) - changes.time > -own
    else:
        late = behind > operation.grace - own
    if late.any():
        site.losses.late(site.node, int(late.sum()), max(int(behind[late].max()) + own, 1))
