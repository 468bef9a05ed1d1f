"""Ctrl-C and SIGTERM, without Spark: what they ask for, and when a JVM is ended."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from subprocess import Popen
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from vsc.runtime.spark.query.lost_processes import lost_driver
from vsc.runtime.spark.query.run import _to_its_end, _Watch
from vsc.runtime.spark.report.progress import Activity, Phase
from vsc.runtime.spark.session.interrupts import Interrupts


class Jvm:
    """A process that notes its end."""

    killed = False

    def kill(self) -> None:
        self.killed = True


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)


def session(jvm: Any) -> Any:
    server = SimpleNamespace(handle_error=lambda *call: print("told"))
    return SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=jvm), _accumulatorServer=server))


def send(number: signal.Signals = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def test_before_there_is_a_jvm_it_is_ended_as_soon_as_it_is_there() -> None:
    jvm: Any = Jvm()
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        send(signal.SIGTERM)
        assert interrupts.requested and interrupts.at_once
        interrupts.launching(jvm)
    assert jvm.killed
    assert signal.getsignal(signal.SIGINT) is before


def test_while_a_query_runs_the_second_ends_the_jvm_and_pyspark_says_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    jvm: Any = Jvm()
    spark = session(jvm)
    with Interrupts() as interrupts:
        interrupts.launched(spark)
        interrupts.orderly = True
        send()
        spark.sparkContext._accumulatorServer.handle_error(None, None)
        assert (interrupts.requested, interrupts.at_once, jvm.killed) == (True, False, False)
        send(signal.SIGTERM)
        spark.sparkContext._accumulatorServer.handle_error(None, None)
        assert (interrupts.at_once, jvm.killed) == (True, True)
    assert capsys.readouterr().out == "told\n"


def test_a_jvm_of_others_is_left_alone() -> None:
    with Interrupts() as interrupts:
        interrupts.launched(session(None))
        with pytest.raises(KeyboardInterrupt):
            send()
        assert not interrupts.at_once


def test_a_stop_waits_for_the_commit_of_an_epoch_that_is_written() -> None:
    shown: list[object] = []
    progress = json.dumps({"batchId": 3, "durationMs": {"addBatch": 1, "triggerExecution": 2}, "sources": []})
    looks = iter([[], [], [SimpleNamespace(json=lambda: progress)]])
    query = SimpleNamespace(isActive=True, stop=lambda: shown.append("stopped"))
    query._jsq = SimpleNamespace(recentProgress=lambda: next(looks))
    show: Any = SimpleNamespace(doing=shown.append, batch=lambda batch: shown.append(f"epoch {batch}"))
    tracker: Any = SimpleNamespace(batch=lambda report, took, job: report.epoch)
    watch = _Watch(show, tracker)
    report: Any = SimpleNamespace(epoch=3)
    watch.done(report)
    started: Any = SimpleNamespace(query=query, writer=SimpleNamespace(running=None))
    interrupts = Interrupts()
    interrupts.requested = True
    assert _to_its_end(started, watch, True, interrupts)
    stopping = Activity(Phase.STOPPING, 3)
    assert shown == [stopping, stopping, "epoch 3", stopping, "stopped"]


def test_what_breaks_off_with_a_jvm_that_was_killed_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    jvm = Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    spark = session(jvm)
    answer = Py4JError("An error occurred while calling o297.isActive")
    with Interrupts() as interrupts:
        interrupts.launched(spark)
        assert lost_driver(RuntimeError(), interrupts.jvm_status) is None
        jvm.kill()
        spark.sparkContext._accumulatorServer.handle_error()
        raised = SimpleNamespace(exc_type=Py4JError, exc_value=answer, exc_traceback=None, thread=None)
        threading.excepthook(raised)  # type: ignore[arg-type]
        found = lost_driver(answer, interrupts.jvm_status)
    assert threading.excepthook is threading.__excepthook__ or threading.excepthook is interrupts._excepthook
    assert found is not None
    assert found.message == "the JVM of Spark's driver ended while it was at work, by signal 9 (SIGKILL)"
    assert "the same command continues with this epoch" in str(found.help)
    assert capsys.readouterr() == ("", "")
