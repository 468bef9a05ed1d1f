"""The arguments of a run are the same in `vsc.start`, in the runtime's `start`, in `Run` and in `vsc run`."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest

import vsc
from vsc.cli import main
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.spark.base.job import Run
from vsc.runtime.spark.query import preflight, start

TEXT = "stream s (value bigint, at timestamp) from rate (rows_per_second = ${n}) timestamp at; sink s to noop ();"
GIVEN: dict[str, Any] = {
    "checkpoint": Path("ck"), "variables": {"n": "1"}, "partitions": 3, "trigger": "once", "max_idle": "5 s",
    "local_dir": Path("disk"), "on_bad_row": "fail", "on_error": "drop", "on_epoch": print, "back_to": 7,
    "max_bad": "2%", "now": 9, "functions": ["scoring.rules"], "lineage": Path("events"),
}  # fmt: skip
"""None of them is its default."""
AS_RUN = {
    "checkpoint": "ck", "variables": {"n": "1"}, "partitions": 3, "trigger": "once", "max_idle": "5 s",
    "local_dir": "disk", "options": RunOptions("fail", "drop", 9, ("scoring.rules",)), "back_to": 7, "max_bad": "2%",
    "lineage": "events",
}  # fmt: skip


class Prepared(ConfigurationError):
    """As far as a run goes here."""


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that have been prepared."""
    seen: list[Run] = []

    def prepare(job: Run, local: bool = True) -> None:
        seen.append(job)
        raise Prepared("prepared", None)

    monkeypatch.setattr(start, "prepare", prepare)
    monkeypatch.setattr(preflight, "prepare", prepare)
    monkeypatch.setattr(start, "usable_session", lambda spark: spark)
    monkeypatch.setattr(start, "default_is_local", lambda spark: True)
    return seen


def test_the_signatures_are_the_same() -> None:
    ours, theirs = (inspect.signature(function).parameters for function in (vsc.start, start.start))
    assert list(ours)[1:] == list(theirs)[1:]
    assert [p.default for p in ours.values()] == [p.default for p in theirs.values()]
    assert set(GIVEN) == set(theirs) - {"plan", "spark"}


def test_every_argument_arrives_in_the_run(jobs: list[Run]) -> None:
    plan = vsc.compile(TEXT, {"n": "1"})
    for begin in (vsc.start, start.start):
        with pytest.raises(Prepared):
            begin(plan, **GIVEN)
    for job in jobs:
        assert job.plan is plan
        assert {name: getattr(job, name) for name in AS_RUN} == AS_RUN
    assert len(jobs) == 2


def test_every_option_of_the_command_arrives_in_the_run(
    jobs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.vdsl").write_text(TEXT)
    options = (
        "--checkpoint ck --var n=1 --partitions 3 --trigger once --max-idle 5s --local-dir disk --on-bad-row fail "
        "--on-error drop --back-to 7 --max-bad 2% --functions scoring.rules --lineage events --drain"
    )
    assert main(["run", "t.vdsl", *options.split()]) == 2
    [job] = jobs
    expected = {
        **AS_RUN,
        "max_idle": "5s",
        "options": RunOptions("fail", "drop", None, ("scoring.rules",)),
        "drain": True,
    }
    assert {name: getattr(job, name) for name in expected} == expected
    internal = {"plan", "observe", "began"}
    assert {field.name for field in dataclasses.fields(Run)} - internal == set(expected)
