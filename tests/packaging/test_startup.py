"""``vsc check`` starts in about the time that its two libraries take to import."""

from __future__ import annotations

import time
from pathlib import Path

from tests.packaging.conftest import Vsc

ROUNDS = 9
LIMIT = 1.5


def test_check_takes_little_more_than_its_libraries(ask: Vsc, root: Path) -> None:
    """The fastest of several interleaved runs each: what else the machine does slows both, and the fastest least."""
    libraries = ("-c", "import lark, networkx")
    check = (
        "-m",
        "vsc",
        "check",
        *(root / f"examples/{name}/topology.vdsl" for name in ("flights", "payments", "sensors")),
    )
    timed = [(_seconds(ask, libraries), _seconds(ask, check)) for _ in range(ROUNDS)]
    base, ours = min(base for base, _ in timed), min(ours for _, ours in timed)
    assert ours <= LIMIT * base, f"{ours * 1000:.0f} ms beside {base * 1000:.0f} ms"


def _seconds(ask: Vsc, arguments: tuple[str | Path, ...]) -> float:
    started = time.perf_counter()
    done = ask(*arguments)
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - started
