"""A real Spark cluster on loopback: a standalone master and workers, each a JVM of its own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pyspark

from servers.ports import free_port

__all__ = ["SparkCluster", "may_hide"]

_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_SECONDS = 300
_SECONDS_TO_STOP = 20
_NAMESPACE = ("unshare", "--mount", "--propagation", "private", "sh", "-c")


def may_hide() -> bool:
    """Whether this machine lets us give a process a disk of its own (a mount namespace)."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*_NAMESPACE, "mount --bind /tmp /tmp"], capture_output=True, check=False).returncode == 0


class SparkCluster:
    """A master and `workers` workers with `cores` cores each, whose files are in `folder`.

    `own`: by a worker's number, the folders that it has as a disk of its own: what it and its executors write to one is
    in the folder beside it on which the name ends (see `disk_of`), and what others write there it does not see. That
    takes a mount namespace: see `may_hide`. `programs`: a folder in which executors look for programs first. `apart`:
    each worker has an address of its own, as Spark starts no task twice on one host.
    """

    def __init__(
        self,
        folder: Path,
        workers: int = 2,
        cores: int = 1,
        own: Mapping[int, Sequence[Path]] | None = None,
        programs: Path | None = None,
        apart: bool = False,
    ) -> None:
        self._folder, self._cores, self._own, self._programs = folder, cores, own or {}, programs
        self._port, self._web = free_port(), free_port()
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._wanted, self._apart = workers, apart

    @property
    def url(self) -> str:
        """What ``--master`` takes."""
        return f"spark://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Starts the master and the workers; returns once all are registered."""
        self.start_master()
        for number in range(self._wanted):
            self.start_worker(number)
        self.wait(lambda state: self._alive(state) == self._wanted)

    def start_master(self) -> None:
        """Starts the master, on the same ports each time; it knows again what ran on it (see `kill_master`)."""
        self._master = self._run("master", [_MASTER, "--port", str(self._port), "--webui-port", str(self._web)])

    def start_worker(self, number: int) -> None:
        """Starts a worker; one of that number must not be running."""
        work = self._folder / f"work-{number}"
        arguments = ["--webui-port", str(free_port()), "-c", str(self._cores), "-m", "1g", "-d", str(work), self.url]
        host = f"127.0.0.{1 + number if self._apart else 1}"
        self._workers[number] = self._run(f"worker-{number}", [_WORKER, *arguments], self._own.get(number, ()), host)

    def disk_of(self, number: int, path: Path) -> Path:
        """Where the content of `path` is that only this worker sees."""
        return self._folder / f"disk-{number}" / path.relative_to(path.anchor)

    def kill_worker(self, number: int) -> None:
        """Ends a worker and its executors with ``kill -9``, as a machine that is gone."""
        _kill(self._workers.pop(number))

    def executors(self, number: int) -> list[psutil.Process]:
        """The executors of a worker."""
        return [c for c in psutil.Process(self._workers[number].pid).children(recursive=True) if _is_executor(c)]

    def executor_logs(self) -> str:
        """What all executors have logged."""
        return "".join(path.read_text() for path in sorted(self._folder.glob("work-*/*/*/stderr")))

    def kill_executor(self, number: int) -> None:
        """Ends the executors of a worker with ``kill -9``; the worker starts others."""
        for process in self.executors(number):
            process.kill()

    def decommission_worker(self, number: int) -> None:
        """Tells a worker to leave, as the notice before a spot instance goes does."""
        self._workers[number].send_signal(signal.SIGPWR)

    def kill_master(self, forgets: bool = False) -> None:
        """Ends the master with ``kill -9``; one that `forgets` will not know what ran on it."""
        assert self._master is not None
        _kill(self._master)
        if forgets:
            shutil.rmtree(self._folder / "recovery")

    def stop(self) -> None:
        """Stops all that runs."""
        processes = [p for p in (*self._workers.values(), self._master) if p is not None]
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            try:
                process.wait(_SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                _kill(process)

    def state(self) -> Mapping[str, Any]:
        """What the master says: its workers and applications, as its page has them."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._web}/json/", timeout=10) as answer:
            found: Mapping[str, Any] = json.load(answer)
            return found

    def wait(self, until: Any) -> None:
        """Waits until the master's state is as `until` wants it. AssertionError, with the logs, if it never is."""
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                if until(self.state()):
                    return
            except (OSError, ValueError):  # the master has not opened its page yet, or has another one there
                pass
            assert time.monotonic() < deadline, "".join(p.read_text() for p in sorted(self._folder.glob("*.log")))
            time.sleep(0.1)

    def _alive(self, state: Mapping[str, Any]) -> int:
        return sum(worker["state"] == "ALIVE" for worker in state["workers"])

    def _run(
        self, name: str, arguments: Sequence[str], own: Sequence[Path] = (), host: str = "127.0.0.1"
    ) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        command = [str(home / "bin/spark-class"), arguments[0], "--host", host, *arguments[1:]]
        if own:
            mounts = [
                f"mount --bind {shlex.quote(str(self._disk(name, path)))} {shlex.quote(str(path))}" for path in own
            ]
            command = [*_NAMESPACE, " && ".join([*mounts, f"exec {shlex.join(command)}"])]
        local = self._folder / f"local-{name}"
        local.mkdir(parents=True, exist_ok=True)
        env = {**os.environ, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_DIRS": str(local)}
        env |= {"SPARK_LOCAL_IP": host, "PYSPARK_PYTHON": sys.executable}
        recovery = {"recoveryMode": "FILESYSTEM", "recoveryDirectory": self._folder / "recovery"}
        env["SPARK_MASTER_OPTS"] = " ".join(f"-Dspark.deploy.{option}={value}" for option, value in recovery.items())
        env["JDK_JAVA_OPTIONS"] = env.get("SPARK_SUBMIT_OPTS", "")  # for the JVMs of executors, too
        env.pop("PYTHONPATH", None)  # the executors' is what the driver ships
        if self._programs is not None:
            env["PATH"] = f"{self._programs}{os.pathsep}{env['PATH']}"
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=local, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _disk(self, name: str, path: Path) -> Path:
        disk = self.disk_of(int(name.removeprefix("worker-")), path)
        disk.mkdir(parents=True, exist_ok=True)
        path.mkdir(parents=True, exist_ok=True)
        return disk


def _is_executor(process: psutil.Process) -> bool:
    try:
        return process.name() == "java" and "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # it has just ended
        return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and all that it has started."""
    every = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for one in every:
        one.suspend()  # so that it starts no others meanwhile
    for one in every:
        one.kill()
    process.wait()
