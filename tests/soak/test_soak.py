"""A short soak: real runs, killed five times, end as an undisturbed one."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.rounds import Plan, soak

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def test_five_kills_leave_no_trace(tmp_path: Path) -> None:
    plan = Plan(kills=5, seed=5, kinds=("tree", "workers"), subjects=("flights",), epochs=5, minutes=14)
    told: list[str] = []
    rounds = soak(plan, tmp_path, told.append)
    assert [fault for found in rounds for fault in found.faults] == [], told
    kills = [kill for found in rounds for kill in found.kills]
    assert len(kills) == 5, told
    assert {kill.kind for kill in kills} == {"tree", "workers"}
