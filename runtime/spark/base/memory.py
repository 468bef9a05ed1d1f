"""The memory of this machine, or of the container around this process. Imports only Python's own modules."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["free_memory"]

_GROUPS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
)
"""In a control group of version 2 or 1: the limit, what is used, and what of that can be given back at once."""


def free_memory(system: Path = Path("/")) -> int | None:
    """The bytes that processes may still take; None if the system does not say, as only Linux does. `system` is the
    root of its folders."""
    found = [_available(system / "proc/meminfo"), *(_of_group(system / "sys/fs/cgroup", *names) for names in _GROUPS)]
    return min((one for one in found if one is not None), default=None)


def _available(path: Path) -> int | None:
    kibibytes = _number(path, r"^MemAvailable:\s+(\d+) kB$")
    return None if kibibytes is None else kibibytes << 10


def _of_group(folder: Path, limit: str, used: str, stat: str, cached: str) -> int | None:
    most, taken = _number(folder / limit, r"\A(\d+)$"), _number(folder / used, r"\A(\d+)$")
    if most is None or taken is None:
        return None
    return max(0, most - taken + (_number(folder / stat, rf"^{cached} (\d+)$") or 0))


def _number(path: Path, pattern: str) -> int | None:
    try:
        found = re.search(pattern, path.read_text(encoding="ascii"), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return None if found is None else int(found[1])
