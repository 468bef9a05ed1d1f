"""How much memory is free: of the machine, or of the container in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from vsc.runtime.spark.base.memory import free_memory

MACHINE = "MemTotal:       24689764 kB\nMemFree:          512000 kB\nMemAvailable:   1024 kB\n"
SECOND = {"memory.max": "9000000\n", "memory.current": "8500000\n", "memory.stat": "file 7\ninactive_file 100000\n"}
FIRST = {
    "memory/memory.limit_in_bytes": "9000000\n", "memory/memory.usage_in_bytes": "8500000\n",
    "memory/memory.stat": "cache 7\ntotal_inactive_file 100000\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 1 << 20),
        (SECOND, 600_000),
        (FIRST, 600_000),
        (SECOND | {"memory.max": "max\n"}, 1 << 20),
        (SECOND | {"memory.max": "8000000\n"}, 0),
        ({name: text for name, text in SECOND.items() if "stat" not in name}, 500_000),
        (FIRST | {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 1 << 20),
    ],
)
def test_the_machine_or_its_container(files: dict[str, str], free: int, tmp_path: Path) -> None:
    for name, text in {
        "proc/meminfo": MACHINE,
        **{f"sys/fs/cgroup/{name}": text for name, text in files.items()},
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert free_memory(tmp_path) == free


def test_another_system_does_not_say(tmp_path: Path) -> None:
    assert free_memory(tmp_path) is None
    assert free_memory() is not None
