"""Processes: what they cost, with all that they start."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["TICK", "Ended", "cpu_seconds", "run"]

_PAUSE = 0.05

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


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended: seconds, CPU seconds, peak memory (PSS, MiB; 0 if it was not asked for), its output."""

    seconds: float
    cpu: float
    memory: float
    said: str


def run(command: Sequence[str], log: Path, memory: bool = False) -> Ended:
    """Runs a command to its end, its output in `log`. Raises RuntimeError with the end of it if it fails."""
    cpu, peak, began = 0.0, 0.0, time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
        while process.poll() is None:
            cpu = max(cpu, cpu_seconds(process.pid))
            peak = max(peak, _memory(process.pid)) if memory else 0.0
            time.sleep(_PAUSE)
    seconds, said = time.monotonic() - began, log.read_text(errors="replace")
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {said[-5000:]}")
    return Ended(seconds, cpu, peak, said)


def _memory(pid: int) -> float:
    found = 0
    try:
        for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
            found += process.memory_full_info().pss
    except psutil.NoSuchProcess:
        return 0.0  # it has just ended: the next check sees that
    return found / (1 << 20)
