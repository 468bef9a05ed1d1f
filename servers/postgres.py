"""A real PostgreSQL server: installed programs, a temporary folder, a free port on loopback."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg

from servers.missing import program
from servers.ports import free_port

__all__ = ["PostgresServer", "programs"]


def programs() -> Path:
    """The folder of the newest installed server's programs. Raises MissingProgramError if none is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    initdb = (
        found[-1] if found else Path(program("initdb", "install PostgreSQL, such as with apt-get install postgresql"))
    )
    return initdb.parent


@dataclass
class PostgresServer:
    """A server with one superuser, `vsc`, who has a password. `crash` and `start` may be called repeatedly."""

    programs: Path
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="vsc-postgres-")))
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: "pw-" + secrets.token_hex(8))

    def create(self) -> None:
        """Creates the cluster. Its programs refuse to run as root, so root runs them as the package's user."""
        secret = self.folder / "password"
        secret.write_text(self.password)
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
            shutil.chown(secret, "postgres")
        self._run(
            "initdb", "-D", str(self.folder / "data"), "-U", "vsc", "--auth-host=scram-sha-256", "--auth-local=trust",
            "--pwfile", str(secret), "--no-sync", "-E", "UTF8", "--locale=C.UTF-8",
        )  # fmt: skip
        secret.unlink()

    def start(self) -> None:
        """Starts the server; returns once it answers."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c fsync=off"
        options += " -c log_statement=all -c log_destination=stderr"
        self._run(
            "pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", str(self.folder / "log"), "-o", options, "start"
        )

    def stop(self) -> None:
        """Stops the server if it runs, and removes its files."""
        if (self.folder / "data/postmaster.pid").exists():
            self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "fast", "-w", "stop")
        shutil.rmtree(self.folder)

    def crash(self) -> None:
        """``kill -9`` of the server and its children: a surviving child would keep the server from restarting."""
        server = psutil.Process(int((self.folder / "data/postmaster.pid").read_text().splitlines()[0]))
        server.suspend()  # so that it starts no new processes meanwhile
        every = [server, *server.children(recursive=True)]
        for process in reversed(every):  # the server last: its processes end when they see it gone
            process.kill()
        _, alive = psutil.wait_procs(every, 30)
        assert not alive

    def url(self, database: str = "vsc") -> str:
        """The JDBC URL."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "vsc") -> psycopg.Connection[tuple[Any, ...]]:
        """A connection in autocommit."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="vsc", password=self.password, dbname=database, autocommit=True
        )

    def query(self, statement: str, parameters: Sequence[Any] = (), database: str = "vsc") -> list[tuple[Any, ...]]:
        """The rows of a statement; an empty list if it returns none."""
        with self.connect(database) as connection:
            found = connection.execute(statement, parameters or None)
            return found.fetchall() if found.description else []

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
