"""A short soak: real runs, killed twice, end as an undisturbed one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from soak.job import Job
from soak.rounds import Limit, Pace, Plan, soak
from tests.runtime.spark.support import compiled, run_once

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def test_two_kills_leave_no_trace(spark: Any, tmp_path: Path) -> None:
    def undisturbed(job: Job, limit: Limit) -> Pace:
        """In the session of the tests: no Spark has to start for it."""
        started = time.monotonic()
        plan = compiled((job.folder / "topology.vdsl").read_text())
        variables = {"in": str(job.folder / "in"), "out": str(job.folder / "out")}
        reports = run_once(plan, spark, job.folder / "ck", variables=variables, partitions=2)
        return Pace(0, (time.monotonic() - started) / len(reports))

    # Both kills fall into an epoch; one takes Spark with it.
    kinds = ("workers", "tree")
    plan = Plan(kills=2, seed=5, kinds=kinds, subjects=("flights",), epochs=5, minutes=14, starting=0)
    told: list[str] = []
    rounds = soak(plan, tmp_path, told.append, Limit(time.monotonic() + 60 * plan.minutes), undisturbed)
    assert [fault for found in rounds for fault in found.faults] == [], told
    kills = [kill for found in rounds for kill in found.kills]
    assert len(kills) == 2, told
    assert {kill.kind for kill in kills} == set(kinds)
    assert {kill.phase for kill in kills} != {"starting"}
