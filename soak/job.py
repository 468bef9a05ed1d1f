"""One topology in its own folder, its ``vsc run`` as a separate process, and what is visible of it from outside.

Everything that a run creates is below the folder, including Spark's local folders and temporary files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pyspark

from soak.subjects import ROOT, Subject

__all__ = ["KINDS", "Job", "Life"]

KINDS = ("tree", "workers", "executor")
"""What can be killed: every process of the run; its Python workers; one executor (only a cluster has any)."""

LOCAL, CLUSTER = "local[2,3]", "local-cluster[2,1,1024]"
"""The masters. With three attempts, a task sometimes survives a killed worker; otherwise the query fails."""


@dataclass(frozen=True, slots=True)
class Job:
    """A folder with ``topology.vdsl``, ``in``; after a run also ``ck``, ``out``. `master`, `conf`: see ``vsc run``."""

    subject: Subject
    folder: Path
    master: str = LOCAL
    conf: tuple[str, ...] = ()

    def prepare(self, epochs: int, seed: int) -> None:
        """Writes the topology and its input."""
        self.folder.mkdir(parents=True)
        for name in ("tmp", "spark", "out"):
            (self.folder / name).mkdir()
        self.subject.write(self.folder, epochs, seed)

    @property
    def log(self) -> Path:
        """The output of all lives, and what was done to them."""
        return self.folder / "log"

    def _spark_home(self) -> Path:
        """Spark's own folder, except ``work``, where a local cluster keeps its executors' logs: that is below ours.

        An archive of classes (`tools.class_archive`) does not fit it.
        """
        home, installed = self.folder / "spark-home", Path(pyspark.__file__).parent
        home.mkdir(exist_ok=True)
        for entry in installed.iterdir():
            if entry.name != "work" and not (home / entry.name).exists():
                (home / entry.name).symlink_to(entry)
        return home

    @property
    def command(self) -> list[str]:
        """The command that a user would type; the same at every start."""
        here = self.folder
        words = [sys.executable, "-m", "vsc", "run", f"{here}/topology.vdsl", "--checkpoint", f"{here}/ck"]
        words += ["--master", self.master, "--partitions", "2", "--progress", "json", "--local-dir", f"{here}/local"]
        words += ["--var", f"in={here}/in", "--var", f"out={here}/out", "--conf", f"spark.local.dir={here}/spark"]
        # On a busy machine, a worker may take longer to answer than Spark waits by default.
        words += ["--conf", "spark.python.authenticate.socketTimeout=120s"]
        words += [word for setting in self.conf for word in ("--conf", setting)]
        return words + ["--drain"] * self.subject.drain

    def note(self, what: str) -> None:
        """Adds a line of our own to the log."""
        with self.log.open("a") as log:
            log.write(f"-- {datetime.now():%H:%M:%S} {what}\n")

    def start(self) -> Life:
        """Starts the command; its output goes to ``log``."""
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "TMPDIR": f"{self.folder}/tmp"}
        if self.master == CLUSTER:
            environment["SPARK_HOME"] = str(self._spark_home())
        self.note("started")
        offset = self.log.stat().st_size
        with self.log.open("a") as target:
            process = subprocess.Popen(
                self.command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=target, stderr=target
            )
        return Life(self, process, offset, self.local_folders)

    @property
    def local_folders(self) -> frozenset[str]:
        """The folders of executors' state. Each life creates its own when its first stage starts to work."""
        folder = self.folder / "local"
        return frozenset(os.listdir(folder)) if folder.is_dir() else frozenset()

    @property
    def planned(self) -> int:
        """The newest epoch whose offsets are written; -1 before the first."""
        return self._newest("offsets")

    @property
    def committed(self) -> int:
        """The newest epoch that Spark has committed; -1 before the first."""
        return self._newest("commits")

    def _newest(self, log: str) -> int:
        folder = self.folder / "ck" / log
        names = os.listdir(folder) if folder.is_dir() else []
        return max((int(name) for name in names if name.isdigit()), default=-1)


@dataclass(frozen=True, slots=True)
class Life:
    """One process of a job, from its start to its end.

    `offset`: where its lines begin in the job's log. `found`: the local folders that earlier lives left behind.
    """

    job: Job
    process: subprocess.Popen[bytes]
    offset: int
    found: frozenset[str]

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self.process.poll()

    @property
    def output(self) -> str:
        """Its output so far."""
        with self.job.log.open() as log:
            log.seek(self.offset)
            return log.read()

    @property
    def events(self) -> list[dict[str, Any]]:
        """Its progress so far."""
        return [json.loads(line) for line in self.output.splitlines() if line.startswith('{"event"')]

    @property
    def at_work(self) -> bool:
        """Whether its stages have started to work."""
        return not self.job.local_folders <= self.found

    @property
    def phase(self) -> str:
        """What it is doing, as far as the checkpoint and the sinks show."""
        planned, committed = self.job.planned, self.job.committed
        if not self.at_work:
            return "starting"
        if planned <= committed:
            return "between epochs"
        staged = (self.job.folder / "out").glob(f"*/_vsc-*/{planned}*")
        return "writing sinks" if next(staged, None) is not None else "computing"

    def kill(self, kind: str) -> int:
        """Sends SIGKILL to the processes of `kind`; returns their number, 0 if there are none at the moment."""
        found = self._tree() if kind == "tree" else self._some(kind)
        sent = 0
        for victim in found:
            try:
                victim.send_signal(signal.SIGKILL)
                sent += 1
            except psutil.NoSuchProcess:
                continue  # it has ended by itself
        if kind == "tree":
            self.process.wait()  # before psutil does: that would consume the exit status
            psutil.wait_procs(found, timeout=30)
        return sent

    def _tree(self) -> list[psutil.Process]:
        try:
            root = psutil.Process(self.process.pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _some(self, kind: str) -> list[psutil.Process]:
        mark = "pyspark.worker" if kind == "workers" else "CoarseGrainedExecutorBackend"
        found = [process for process in self._tree()[1:] if mark in _command(process)]
        return found if kind == "workers" else found[:1]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""
