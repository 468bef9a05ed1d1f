"""``--share 3/8``: of the tests marked `full`, those of one of eight shares of about equal cost; of the others, all.

A file is in one share as a whole, whichever other files there are: what it costs is in `costs.txt` (seconds of its
tests marked `full`; ``python -m tools.test_costs`` writes it), from which the shares are dealt. A file that is not yet
listed there goes by its name alone, so it moves no other.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

__all__ = ["COSTS", "costs", "deal", "keep_share", "share_of"]

_TESTS = Path(__file__).parent
COSTS = _TESTS / "costs.txt"


def costs() -> dict[str, float]:
    """Seconds by file, as `costs.txt` lists them."""
    rows = (line.split() for line in COSTS.read_text(encoding="utf-8").splitlines())
    return {path: float(seconds) for seconds, path in rows}


def deal(known: Mapping[str, float], shares: int) -> dict[str, int]:
    """The share of each file, from 1 on: the longest first, each to the share that has least so far."""
    totals, found = [0.0] * shares, {}
    for path in sorted(known, key=lambda path: (-known[path], path)):
        share = min(range(shares), key=totals.__getitem__)
        totals[share] += known[path]
        found[path] = share + 1
    return found


def share_of(path: str, dealt: Mapping[str, int], shares: int) -> int:
    """The share of a file, listed or not."""
    return dealt.get(path) or zlib.crc32(path.encode()) % shares + 1


def keep_share(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects what is marked `full` and lies in another share than the one asked for."""
    asked = config.getoption("share")
    if asked is None:
        return
    share, shares = asked
    dealt = deal(costs(), shares)
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        path = item.path.relative_to(_TESTS.parent).as_posix()
        mine = item.get_closest_marker("full") is None or share_of(path, dealt, shares) == share
        (kept if mine else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = kept


def share(text: str) -> tuple[int, int]:
    """What ``--share`` takes: which share of how many."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"--share is a number of a count, such as 3/8, not {text}")
    return int(number), int(count)
