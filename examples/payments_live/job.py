"""``vsc run`` on the topology beside this file, as a process that can be killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from servers.jars import connector_jars

__all__ = ["Job", "JobError"]

TOPOLOGY = Path(__file__).parent / "topology.vdsl"
_SECONDS = 300
_FOR_A_SHORT_LIFE = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""A JVM that lives for half a minute starts sooner with the simplest compiler and collector."""


class JobError(Exception):
    """``vsc run`` has ended when it should not have; the message holds what it said last."""


class Job:
    """The command, in a folder for its checkpoint and its log. `secrets` go to it by its environment."""

    def __init__(self, folder: Path, variables: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        self._log = folder / "vsc.log"
        self._command = [sys.executable, "-m", "vsc", "run", str(TOPOLOGY), "--master", "local[2]", "--partitions", "2"]
        self._command += ["--checkpoint", str(folder / "checkpoint"), "--local-dir", str(folder / "local")]
        self._command += ["--progress", "json", "--conf", f"spark.jars={','.join(connector_jars())}"]
        self._command += [word for name, value in variables.items() for word in ("--var", f"{name}={value}")]
        self._environment = {**_FOR_A_SHORT_LIFE, **os.environ, **secrets}
        self._process: subprocess.Popen[bytes] | None = None
        self._read, self._epochs = 0, 0

    def start(self, *options: str) -> None:
        """Starts it, in a process group of its own: a kill takes the JVM with it, and it gets no Ctrl-C."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *options], stdout=log, stderr=log, env=self._environment, start_new_session=True
            )

    def check(self) -> None:
        """JobError if it no longer runs."""
        if self._process is not None and self._process.poll() is not None:
            raise JobError(self._ended(self._process.returncode))

    def kill(self) -> None:
        """``kill -9`` of all its processes; nothing if none runs."""
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_SECONDS)
            self._process = None

    def stop(self) -> None:
        """Asks it to end after its epoch, and waits."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_SECONDS)
        self._process = None

    def finish(self) -> None:
        """Waits for it to end by itself. JobError if it fails."""
        assert self._process is not None
        status = self._process.wait(_SECONDS)
        self._process = None
        if status:
            raise JobError(self._ended(status))

    def epochs(self) -> int:
        """How many epochs it has told of, in all its lives."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                self._epochs += line.startswith(b"{") and json.loads(line).get("event") == "batch"
        return self._epochs

    def _ended(self, status: int) -> str:
        return f"vsc run ended with status {status}:\n{self._log.read_text(errors='replace')[-3000:]}"
