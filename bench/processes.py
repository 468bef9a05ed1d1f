"""The CPU time of processes."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["TICK", "cpu_seconds"]

TICK = 1 / os.sysconf("SC_CLK_TCK")
"""The resolution of CPU times, in seconds."""


def cpu_seconds(root: int) -> float:
    """What a process and all its descendants have used so far, including those that have ended."""
    ticks: dict[int, tuple[int, int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended: its time now counts for its parent
        ticks[int(stat.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    own = {root}
    while more := {pid for pid, (parent, _) in ticks.items() if parent in own} - own:
        own |= more
    return sum(ticks[pid][1] for pid in own if pid in ticks) * TICK
