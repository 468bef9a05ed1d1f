"""A run goes on with another query where Spark gave up on a Python worker that was slow to start, and only there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock, patch

import pytest

from vsc.runtime.errors import StartError
from vsc.runtime.spark.query import run as module
from vsc.runtime.spark.query.failures import translated
from vsc.runtime.spark.query.late_starts import PAUSES, under_way

LATE = Exception("Job aborted: org.apache.spark.SparkException: Python worker failed to connect back.")
OTHER = Exception("Job aborted: a full disk")


class _Runs:
    """What starts queries that end with one failure after another."""

    def __init__(self, *failures: Exception | None) -> None:
        self.failures: Iterator[Exception | None] = iter(failures)
        self.opened = [Mock(**{"job.trigger": "available-now"}) for _ in failures]
        for before, after in zip(self.opened, self.opened[1:], strict=False):
            before.again.return_value = after
        self.started: list[Any] = []
        self.begun = False

    def start(self, opened: Any, *_: object) -> Mock:
        self.started.append(opened)
        query = Mock(isActive=False, **{"exception.return_value": next(self.failures)})
        return Mock(query=query, writer=Mock(error=None, begun=self.begun), **{"why.side_effect": translated})

    def run(self) -> None:
        with patch.object(module, "start_query", self.start), patch.object(module, "PAUSES", (0.0, 0.0)):
            module._once(self.opened[0], Mock(), Mock(newest=-1), Mock(requested=False), [])


def test_a_worker_that_started_late_is_no_reason_to_fail(caplog: pytest.LogCaptureFixture) -> None:
    runs = _Runs(LATE, LATE, None)
    with caplog.at_level(logging.WARNING):
        runs.run()
    assert runs.started == runs.opened
    assert [line.count("took too long to start") for line in caplog.messages] == [1, 1]


def test_the_third_time_is_the_last() -> None:
    runs = _Runs(LATE, LATE, LATE, None)
    with pytest.raises(Exception, match="connect back") as raised:
        runs.run()
    assert len(runs.started) == 3
    assert isinstance(raised.value.__cause__, StartError)
    assert "10 seconds" in raised.value.__cause__.message


def test_a_query_that_a_program_starts_is_started_again(caplog: pytest.LogCaptureFixture) -> None:
    runs, pauses = _Runs(LATE, LATE, None), list[float]()
    with caplog.at_level(logging.WARNING):
        under_way(runs.opened[0], runs.start, pauses.append)
    assert runs.started == runs.opened
    assert pauses == [2.0, 5.0]
    assert len(caplog.messages) == 2


@pytest.mark.parametrize(("failure", "tries"), [(LATE, len(PAUSES) + 1), (OTHER, 1)])
def test_a_query_that_fails_is_the_one_that_the_program_gets(failure: Exception, tries: int) -> None:
    runs = _Runs(*[failure] * (len(PAUSES) + 2))
    assert under_way(runs.opened[0], runs.start, lambda pause: None).query.exception() is failure
    assert len(runs.started) == tries


def test_a_query_that_has_begun_is_not_started_again() -> None:
    runs = _Runs(LATE, None)
    runs.begun = True
    under_way(runs.opened[0], runs.start, lambda pause: None)
    assert len(runs.started) == 1


def test_no_other_failure_starts_a_query_again() -> None:
    runs = _Runs(OTHER, None)
    with pytest.raises(Exception, match="full disk"):
        runs.run()
    assert len(runs.started) == 1
