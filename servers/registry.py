"""A real schema registry: Apicurio, which has the interface of Confluent's, on loopback, in memory.

``python -m servers.registry`` fetches it in advance.
"""

from __future__ import annotations

import signal
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from servers.jars import CACHE, fetched_archive
from servers.missing import program
from servers.ports import free_port

__all__ = ["RELEASE", "RegistryServer"]

RELEASE = "2.6.13.Final"
_SECONDS_TO_START, _SECONDS_TO_STOP = 180, 20


class RegistryServer:
    """A registry; `url` is that of its interface. Stopped and started again, it has forgotten everything."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        self._command = [
            program("java", "install Java 17, such as with apt-get install openjdk-17-jre-headless"),
            "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dquarkus.http.host=127.0.0.1",
            f"-Dquarkus.http.port={port}", "-jar", str(_app()),
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, cwd=self._folder
            )
        deadline = time.monotonic() + _SECONDS_TO_START
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "log").read_text()[-3000:]
            assert time.monotonic() < deadline, "the registry does not answer"
            time.sleep(0.2)

    def stop(self) -> None:
        """Ends it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(_SECONDS_TO_STOP)
            self._process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2):
                return True
        except (urllib.error.URLError, OSError):
            return False


def _app() -> Path:
    """The jar that runs it, with its libraries beside it."""
    folder = CACHE / f"apicurio-registry-{RELEASE}"
    app = folder / f"apicurio-registry-app-{RELEASE}-runner.jar"
    if not app.exists():
        archive = fetched_archive(f"io.apicurio:apicurio-registry-app:{RELEASE}:tar.gz:all", folder)
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return app


if __name__ == "__main__":
    print(_app())
