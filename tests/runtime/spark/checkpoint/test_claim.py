"""One query at a time on a checkpoint, whatever ended the one before; and what signals do to a running process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled
from vsc.cli import main
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.checkpoint import claim as claims
from vsc.runtime.spark.checkpoint.claim import _BeatingClaim

TOPOLOGY = """
stream r (value bigint, at timestamp) from rate (rows_per_second = 10);
stream keyed = rekey r by value % 3 as k;
table newest = to_table keyed;
sink newest to noop ();
"""


class SharedFolder:
    """The part of `Files` that claims use, on a dictionary: a file system without locks."""

    root = "shared://ck"

    def __init__(self) -> None:
        self.contents: dict[str, str] = {}

    def make(self, name: str) -> None:
        pass

    def names(self, folder: str) -> list[str]:
        return sorted(name.rpartition("/")[2] for name in list(self.contents) if name.startswith(folder + "/"))

    def exists(self, name: str) -> bool:
        return name in self.contents

    def read(self, name: str, most: int) -> str:
        return self.contents[name]

    def overwrite(self, name: str, text: str) -> None:
        self.contents[name] = text

    def delete(self, name: str) -> None:
        self.contents.pop(name, None)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.2)
    monkeypatch.setattr(claims, "_POLL_SECONDS", 0.01)


@pytest.fixture
def alive(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No driver of the test is taken for dead, however slow its beat is on a busy machine."""
    monkeypatch.setattr(claims, "LEASE_SECONDS", 1e9)


def take(folder: SharedFolder) -> _BeatingClaim:
    return _BeatingClaim.take(folder)  # type: ignore[arg-type]


def other(folder: SharedFolder, **more: Any) -> str:
    name = "vsc/claims/0-other.json"
    claim = {"host": "elsewhere", "pid": 7, "since": "2026-01-01T00:00:00Z", "state": "running", **more}
    folder.contents[name] = json.dumps(claim)
    return name


def test_of_two_drivers_without_locks_the_second_is_refused(alive: None) -> None:
    folder = SharedFolder()
    first = take(folder)
    with pytest.raises(CheckpointError, match=rf"shared://ck is in use .*: process {os.getpid()} on .*, since 20"):
        take(folder)
    first.check()
    assert len(folder.contents) == 1
    first.release()
    first.release()
    assert folder.contents == {}
    take(folder).release()


def test_of_many_that_start_at_once_at_most_one_runs(alive: None) -> None:
    folder = SharedFolder()
    won: list[_BeatingClaim] = []

    def start() -> None:
        with contextlib.suppress(CheckpointError):
            won.append(take(folder))

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    won[0].release()


def test_a_dead_driver_without_locks_does_not_block(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SharedFolder()
    name = other(folder)  # another machine: after the lease
    started = time.monotonic()
    take(folder).release()
    assert time.monotonic() - started >= 0.2
    assert name not in folder.contents
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    other(folder, host=socket.gethostname(), machine=claims._machine(), pid=ended.pid)  # this machine: at once
    monkeypatch.setattr(claims, "LEASE_SECONDS", 1e9)
    take(folder).release()


def test_a_container_of_the_same_name_is_another_machine(quick: None) -> None:
    folder = SharedFolder()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    other(folder, host=socket.gethostname(), machine="another", pid=ended.pid)  # there it may well be running
    started = time.monotonic()
    take(folder).release()
    assert time.monotonic() - started >= 0.2


def test_a_driver_that_was_taken_for_dead_stops(quick: None) -> None:
    folder = SharedFolder()
    held = take(folder)
    other(folder)
    with pytest.raises(CheckpointError, match="taken over by another query"):
        held.check()
    held.release()
    held = take(SharedFolder())
    held._files.delete(held._name)
    with pytest.raises(CheckpointError, match="taken over by another query"):
        held.check()


def test_claims_that_are_no_json_are_dead_ones(quick: None) -> None:
    folder = SharedFolder()
    for number, text in enumerate(("", "{", "[" * 5000, "7", '{"pid": "x", "host": 3}', '{"pid": 1e999}')):
        folder.contents[f"vsc/claims/{number}.json"] = text
    take(folder).release()
    assert folder.contents == {}


@pytest.fixture
def plan() -> Any:
    return compiled(TOPOLOGY)


@contextlib.contextmanager
def running(plan: Any, spark: Any, checkpoint: Path) -> Iterator[Any]:
    from vsc.runtime.spark import start

    done = threading.Event()
    query = start(
        plan, spark, checkpoint=str(checkpoint), partitions=1, trigger="1 hour", on_epoch=lambda report: done.set()
    )
    try:
        assert done.wait(200)
        yield query
    finally:
        query.stop()


def test_a_checkpoint_in_use_is_refused_without_a_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("vsc.cli.run._run", lambda *_: 42)
    monkeypatch.setattr("vsc.cli.run.check_java", lambda: None)
    (tmp_path / "t.vdsl").write_text(TOPOLOGY)
    run = ["run", str(tmp_path / "t.vdsl"), "--checkpoint", str(tmp_path / "ck"), "--progress", "none"]
    lock = tmp_path / "ck/vsc/claim.lock"
    claims.check_unclaimed(str(tmp_path / "ck"))  # which is not there yet
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps(claims._me()))
    assert main(run) == 42
    holder = locked_elsewhere(lock)
    assert holder
    try:
        assert main(run) == 1
        words = f"the checkpoint {tmp_path}/ck is in use by another query: process {os.getpid()} on "
        assert words in capsys.readouterr().err
        with pytest.raises(CheckpointError, match="is in use by another query"):
            claims.check_unclaimed(str(tmp_path / "ck"), reads=True)
        gone = subprocess.Popen(["true"])
        gone.wait()
        lock.write_text(json.dumps({**claims._me(), "pid": gone.pid}))
        assert main(run) == 42  # its JVM is about to end
    finally:
        holder.kill()
        holder.wait()
    lock.write_text(json.dumps(claims._me()))
    assert main(run) == 42


@pytest.mark.spark
def test_a_checkpoint_on_a_local_disk_is_locked(
    plan: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "STOPPING_SECONDS", 0.3)
    lock = tmp_path / "ck/vsc/claim.lock"
    with running(plan, spark, tmp_path / "ck") as query:
        for _ in range(2):  # the second attempt of a session must not free what the first one holds
            with pytest.raises(CheckpointError, match=f"is in use by another query: process {os.getpid()} on "):
                running(plan, spark, tmp_path / "ck").__enter__()
        assert not locked_elsewhere(lock)
        assert query.isActive
    deadline = time.monotonic() + 120
    while not (holder := locked_elsewhere(lock)):
        assert time.monotonic() < deadline
    with pytest.raises(CheckpointError, match="is in use by another query"):
        running(plan, spark, tmp_path / "ck").__enter__()
    holder.kill()
    holder.wait()
    with running(plan, spark, tmp_path / "ck") as query:
        assert query.isActive


def locked_elsewhere(lock: Path) -> subprocess.Popen[str] | None:
    """A process that holds the lock; None if it cannot have it."""
    script = f"import fcntl; f = open({str(lock)!r}, 'r+'); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB); "
    script += "print('locked', flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    if process.stdout.readline() == "locked\n":
        return process
    process.wait()
    return None


class Process:
    """``vsc run`` in a process group of its own."""

    def __init__(self, folder: Path) -> None:
        self.checkpoint = folder / "ck"
        (folder / "topology.vdsl").write_text(TOPOLOGY)
        command = [sys.executable, "-m", "vsc", "run", str(folder / "topology.vdsl"), "--master", "local[1]"]
        command += ["--checkpoint", str(self.checkpoint), "--partitions", "1", "--progress", "none"]
        command += ["--trigger", "100 ms", "--local-dir", str(folder / "local")]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip

    def wait(self, what: Callable[[], Any]) -> None:
        deadline = time.monotonic() + 150
        while not what():
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def epochs(self) -> int:
        return max((int(n.stem) + 1 for n in (self.checkpoint / "vsc/epochs").glob("[0-9]*.json")), default=0)

    def at_work(self) -> set[str]:
        """The epoch that has begun and not ended, if there is one."""
        ended, begun = ({n.name for n in (self.checkpoint / log).glob("[0-9]*")} for log in ("commits", "offsets"))
        return begun - ended

    def is_stuck(self) -> bool:
        """Whether an epoch does not end. (One whose tasks have ended would, within moments.)"""
        first = self.at_work()
        time.sleep(2)
        return bool(first) and self.at_work() == first

    def machines(self) -> list[int]:
        """The JVMs among them."""
        return [pid for pid, command in self.below().items() if "java" in command]

    def below(self) -> dict[int, str]:
        """All processes that this one, or one of them, has started: id and command line."""
        parents, found = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                found[int(folder.name)] = (folder / "cmdline").read_text(errors="replace").replace("\0", " ")
                parents[int(folder.name)] = parent  # only now: it may just have ended
        mine = {self.process.pid}
        while more := {p for p, parent in parents.items() if parent in mine} - mine:
            mine |= more
        return {p: found[p] for p in mine - {self.process.pid}}


def runs(pid: int) -> bool:
    """Whether the process runs; one that nobody has taken note of the end of has no command line."""
    with contextlib.suppress(OSError):
        return bool(Path(f"/proc/{pid}/cmdline").read_text())
    return False


@pytest.mark.seam("rate source", "noop sink", "a kill")
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the workers in /proc")
def test_signals_and_a_restart_after_a_kill(tmp_path: Path) -> None:
    # Python alone is killed: its JVM sees that and ends. The same command, started at once, goes on.
    first = Process(tmp_path)
    first.wait(lambda: first.epochs() >= 1)
    first.process.kill()
    first.process.communicate()
    done = first.epochs()

    second = Process(tmp_path)
    second.wait(lambda: second.epochs() > done)
    workers = [pid for pid, command in second.below().items() if "pyspark" in command and "java" not in command]
    assert workers
    try:
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)  # an epoch that does not end
        second.wait(second.is_stuck)
        os.killpg(second.process.pid, signal.SIGINT)
        time.sleep(2)
        assert second.process.poll() is None
        os.killpg(second.process.pid, signal.SIGINT)
        _, err = second.process.communicate(timeout=120)
    finally:
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert second.process.returncode == 130
    assert err.splitlines()[-1:] == ["interrupted: the same command continues from here"], err
    assert "Traceback" not in err  # of what was broken off

    # While Spark starts there is nothing to finish.
    third = Process(tmp_path)
    third.wait(lambda: third.machines())
    machines = third.machines()
    third.process.terminate()
    _, err = third.process.communicate(timeout=120)
    assert third.process.returncode == 130
    assert "interrupted" in err
    deadline = time.monotonic() + 120
    while any(map(runs, machines)):
        assert time.monotonic() < deadline, "a JVM was left behind"
        time.sleep(0.05)
