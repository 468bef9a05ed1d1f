"""Standalone masters that do not answer, or have nothing to give. No Spark."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from vsc.runtime.errors import StartError
from vsc.runtime.spark.session import standalone
from vsc.runtime.spark.session.standalone import check_answers, looking_for_slots, no_room, registering, watch_master

MASTER = "spark://m:7077"
WORKER = {"state": "ALIVE", "cores": 4, "coresfree": 4, "memory": 8192, "memoryfree": 8192}
RUNS = {"state": "RUNNING", "cores": 2}
APP = {"id": "app-1", "name": "vsc t", "state": "WAITING", "cores": 0, "memoryperexecutor": 1024}


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standalone, "_PATIENCE", 0.05)
    monkeypatch.setattr(standalone, "_LOOK", 0.01)


def fail(error: Exception) -> None:
    raise error


@contextlib.contextmanager
def refused() -> Iterator[Any]:
    with pytest.raises(StartError) as found:
        yield found
    assert found.value.code == "VSC907" and found.value.help


def test_a_master_that_takes_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_answers(f"spark://127.0.0.1:{port}")
        with socket.create_server(("127.0.0.1", 0)) as other:
            closed = other.getsockname()[1]
        check_answers(f"spark://127.0.0.1:{closed},127.0.0.1:{port}")
    with refused() as found:
        check_answers(f"spark://127.0.0.1:{closed},127.0.0.1:{port}")
    assert found.value.message == (
        f"no master answers at spark://127.0.0.1:{closed},127.0.0.1:{port} (127.0.0.1:{closed}: Connection refused; "
        f"127.0.0.1:{port}: Connection refused)"
    )
    with refused() as found:
        check_answers("spark://there")
    assert found.value.message == "spark://there is not the address of a master"
    for other_kind in ("local[2]", "yarn", "k8s://https://there:6443"):
        check_answers(other_kind)


def test_a_master_that_does_not_take_the_application_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standalone, "_is_registering", lambda: True)
    ended = threading.Event()
    with refused() as found, registering(MASTER, ended.set):
        assert ended.wait(20)
        fail(ConnectionError("the JVM is gone"))
    assert found.value.message.startswith(f"{MASTER} takes connections, but does not answer as a master of ")


def test_a_session_that_starts_or_fails_by_itself_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    looks = iter([True, True, False] * 5)
    monkeypatch.setattr(standalone, "_is_registering", lambda: next(looks, False))
    with registering(MASTER, lambda: ended.append("ended")):
        threading.Event().wait(0.3)
    monkeypatch.setattr(standalone, "_is_registering", lambda: True)
    with registering("yarn", lambda: ended.append("ended")):
        threading.Event().wait(0.3)
    with pytest.raises(ValueError, match="no such setting"), registering(MASTER, lambda: ended.append("ended")):
        raise ValueError("no such setting")
    assert ended == []


def said(apps: list[dict[str, Any]], workers: list[dict[str, Any]], cores: int = 1) -> tuple[str, str] | None:
    found = no_room(MASTER, {"activeapps": apps, "workers": workers}, "app-1", cores)
    if found is None:
        return None
    assert found.message.startswith(f"{MASTER} has no room for an executor: ") and found.help
    return found.message.partition("executor: ")[2], found.help


def test_what_a_master_has_not_to_give() -> None:
    busy = APP | {"id": "app-0", "name": "other", "cores": 4, "state": "RUNNING"}
    assert said([APP], [WORKER]) is None  # an executor is on its way
    assert said([APP | {"state": "RUNNING"}], []) is None
    assert said([], []) is None
    assert said([APP], [WORKER | {"state": "DEAD"}]) == (
        "it has no workers",
        "start workers that have it, or ask for less: --conf spark.executor.memory=..., spark.executor.cores=...",
    )
    taken = WORKER | {"coresfree": 0, "memoryfree": 1024}
    assert said([busy, APP], [taken, taken]) == (
        "its 2 workers have 0 of 8 cores free, and 1024, 1024 MiB; an executor takes 1 core and 1024 MiB",
        "stop what runs there, or give it fewer cores with spark.cores.max: other (app-0)",
    )
    small = said([APP | {"memoryperexecutor": 9000}], [WORKER])
    assert (
        small is not None
        and small[0] == "an executor takes 9000 MiB (spark.executor.memory), a worker has 8192 at most"
    )
    few = said([APP], [WORKER], cores=5)
    assert few is not None and few[0] == "an executor takes 5 cores (spark.executor.cores), a worker has fewer"


class Context(SimpleNamespace):
    """A Spark context whose job runs until it is cancelled."""

    def __init__(self) -> None:
        super().__init__(tags=[], cancelled=threading.Event())

    def addJobTag(self, tag: str) -> None:
        self.tags.append(tag)

    def removeJobTag(self, tag: str) -> None:
        self.tags.remove(tag)

    def cancelJobsWithTag(self, tag: str) -> None:
        assert tag in self.tags
        self.cancelled.set()


def test_a_job_for_which_there_is_no_executor_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = Context()
    spark: Any = SimpleNamespace(sparkContext=context)
    answers: list[StartError | None] = [None, None, StartError("no room", "wait")]
    monkeypatch.setattr(standalone, "_no_room", lambda spark: answers.pop(0))
    with refused() as found, looking_for_slots(spark, lambda: False):
        assert context.cancelled.wait(20)
        fail(RuntimeError("cancelled"))
    assert found.value.message == "no room" and context.tags == []
    assert [record.message.partition(",")[0] for record in caplog.records] == ["there is no executor yet"]
    answers.append(StartError("never asked"))
    monkeypatch.setattr(standalone, "_too_narrow", lambda spark: None)
    with looking_for_slots(spark, lambda: True):
        threading.Event().wait(0.2)
    assert len(answers) == 1


def test_a_job_whose_executors_end_as_they_start(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context()
    context.master, context.applicationId = MASTER, "app-1"
    context.getConf = lambda: {"spark.driver.host": "here", "spark.driver.port": "4040"}
    monkeypatch.setattr(
        standalone, "_in_charge", lambda spark: ("http://m", {"activeapps": [APP | RUNS], "workers": []})
    )
    pages = {"http://m/app/?appId=app-1": "<tr><td>EXITED</td></tr>"}
    monkeypatch.setattr(standalone, "text_of", pages.__getitem__)
    with refused() as found, looking_for_slots(cast(Any, SimpleNamespace(sparkContext=context)), lambda: False):
        assert not context.cancelled.wait(0.3)
        pages["http://m/app/?appId=app-1"] *= 2
        assert context.cancelled.wait(20)
        fail(RuntimeError("cancelled"))
    assert found.value.message == "2 executors ended as they started: its worker does not say why"


def test_executors_into_which_no_task_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look counts for nothing: an executor may be on its way."""
    looks, context = [0, 1, 0, 0], Context()
    jvm = SimpleNamespace(
        resourceProfileManager=lambda: SimpleNamespace(defaultResourceProfile=lambda: "default"),
        maxNumConcurrentTasks=lambda profile: looks.pop(0),
    )
    context.master, context.getConf = MASTER, lambda: {"spark.task.cpus": "2"}
    context._jsc = SimpleNamespace(sc=lambda: jvm)
    with refused() as found, looking_for_slots(cast(Any, SimpleNamespace(sparkContext=context)), lambda: True):
        assert context.cancelled.wait(20)
        fail(RuntimeError("cancelled"))
    assert looks == []
    assert found.value.message == (
        "no executor of spark://m:7077 has room for a task, which takes 2 cores (spark.task.cpus)"
    )


def test_executors_that_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context()
    monkeypatch.setattr(standalone, "_SILENCE", 0.2)
    monkeypatch.setattr(standalone, "_too_narrow", lambda spark: None)
    with refused() as found, looking_for_slots(cast(Any, SimpleNamespace(sparkContext=context)), lambda: True):
        assert not context.cancelled.wait(0.1)
        assert context.cancelled.wait(20)
        fail(RuntimeError("cancelled"))
    assert found.value.message.startswith("the executors have not answered for 0 seconds: their Python does not start")


class Query(SimpleNamespace):
    """A query that runs until its jobs are cancelled."""

    def __init__(self) -> None:
        super().__init__(runId="run-1", over=threading.Event())

    def awaitTermination(self, seconds: float) -> bool:
        if self.over.wait(seconds):
            raise RuntimeError("cancelled")
        return False


def watched(monkeypatch: pytest.MonkeyPatch, states: list[dict[str, Any] | None]) -> list[str]:
    """What a run fails with whose master says `states`, one after the other, and then the last one again."""
    query = Query()
    failures: list[str] = []

    def cancel(group: str) -> None:
        assert group == query.runId and failures
        query.over.set()

    def state(spark: object) -> tuple[str, dict[str, Any]] | None:
        if len(states) == 1:
            query.over.set()
        state = states.pop(0) if states else None
        return None if state is None else ("http://m:8080", state)

    monkeypatch.setattr(standalone, "_LOOK_RUNNING", 0.01)
    monkeypatch.setattr(standalone, "_in_charge", state)
    context = SimpleNamespace(master=MASTER, applicationId="app-1", cancelJobGroup=cancel)
    watch_master(cast(Any, SimpleNamespace(sparkContext=context)), cast(Any, query), lambda e: failures.append(str(e)))
    assert query.over.wait(20)
    for thread in threading.enumerate():
        if thread.name == "vsc-master":
            thread.join()
    return failures


def test_a_run_that_the_master_no_longer_knows_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, Any] = {"activeapps": [APP]}
    unknown: dict[str, Any] = {"activeapps": [APP | {"id": "app-2"}]}
    assert watched(monkeypatch, [known, unknown, known, None, unknown, None, unknown, known]) == []
    [failure] = watched(monkeypatch, [known, unknown, unknown])
    assert f"the master {MASTER} no longer knows this run (app-1)" in failure
