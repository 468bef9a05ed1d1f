"""What an executor finds when the driver asks it: see `vsc.runtime.spark.session.executors`.

Imports only Python's own modules and pyspark, which Spark brings, and what imports no others: what else is missing
there is what it has to tell.
"""

from __future__ import annotations

import glob
import hashlib
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple

from vsc.runtime.spark.base.folders import free_bytes, may_read, spark_local, unwritable
from vsc.runtime.spark.base.memory import free_memory
from vsc.runtime.spark.base.servers import Servers, unreached

__all__ = ["TOKEN", "Answer", "Asked", "appears", "forget", "look", "token_file", "write"]

TOKEN = 12
"""The hexadecimal digits of a token."""

_SECONDS = 2.0
"""How long what another machine has written may take to be seen."""
_OLD_SECONDS = 86_400
"""How old a file is whose writer is gone: it is looked at for seconds."""


class Asked(NamedTuple):
    """`token` is in the names of the files that are written; `folders` are where the driver has written one,
    `files` belong to sources, with their sizes. `packages`: by name for pip, what is imported. A task takes `hold`
    seconds at least, so that others run elsewhere. `local`: where state is to be kept; None: in Spark's own folders.
    `servers`: for each system its hosts and ports, of which one has to take a connection. `modules`: those of the
    user's functions.
    `forget`: what was written is removed, and nothing else is done.
    """

    token: str
    folders: tuple[str, ...]
    files: tuple[tuple[str, int], ...]
    packages: tuple[tuple[str, str], ...]
    local: str | None = None
    servers: tuple[Servers, ...] = ()
    modules: tuple[str, ...] = ()
    hold: float = 0.0
    forget: bool = False


class Answer(NamedTuple):
    """What an executor finds. `host` and `folder`, Spark's own, tell it from others; `own` stands for both in names.

    `folders`: for each one what is wrong there, or None; `files`: which are not there with their size, or may not be
    read; `versions`: of each package, None if it is missing, an empty text if it does not say; `local`: why state
    cannot be kept there, or None; `free`: the bytes that are free there; `servers`: why no host of a system takes
    a connection, or None. `clock` is its time, and `ahead`, which the driver adds, by how many seconds at least that is
    ahead of the driver's. `memory`: the bytes that are free for processes there, None if the system does not say;
    `cores`, which the driver adds: how many it has. `lacking`: the modules that are not there.
    """

    host: str
    folder: str
    own: str
    python: str
    folders: tuple[str | None, ...]
    files: tuple[str, ...]
    versions: tuple[str | None, ...]
    spark: str
    local: str | None
    free: int
    servers: tuple[str | None, ...]
    clock: float
    ahead: float = 0.0
    memory: int | None = None
    cores: int = 1
    lacking: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What messages call the executor."""
        return f"the executor on {self.host} ({self.folder})"


def token_file(folder: str, token: str, own: str) -> str:
    """The file that `own` writes to a folder. Readers skip it: its name begins with a dot."""
    return os.path.join(folder, f".vsc-{token}-{own}")


def forget(folder: str, token: str) -> None:
    """Removes the files of a look, and those that others who were killed have left there: empty, and so old that
    nobody looks at them any more."""
    own = token_file(folder, token, "")
    for path in glob.glob(token_file(glob.escape(folder), "[0-9a-f]" * TOKEN, "*")):
        if path.startswith(own):
            os.remove(path)
        else:
            with suppress(OSError):  # another one removes it, too, or it belongs to another user
                left = os.stat(path)
                if left.st_size == 0 and left.st_mtime < time.time() - _OLD_SECONDS:
                    os.remove(path)


def write(path: str) -> None:
    """Makes an empty file."""
    with open(path, "w", encoding="utf-8"):
        pass


def appears(path: str) -> bool:
    """Whether a file that another machine has written is seen here, soon."""
    until = time.monotonic() + _SECONDS
    while not os.path.exists(path):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def look(asked: Asked, _: Iterator[int]) -> Iterator[Answer]:
    """A task: looks at folders, files and packages."""
    import pyspark
    from pyspark import SparkFiles

    host, folder = socket.gethostname(), os.path.abspath(SparkFiles.getRootDirectory())
    own = hashlib.sha256(f"{host} {folder}".encode()).hexdigest()[:12]
    if asked.forget:
        for path in asked.folders:
            _forget(token_file(path, asked.token, own))
        return
    found = tuple(_shared(path, asked.token, own) for path in asked.folders)
    files = tuple(path for path, size in asked.files if _size(path) != size)
    versions = tuple(_version(name, module) for name, module in asked.packages)
    servers = tuple(map(unreached, asked.servers))
    time.sleep(asked.hold)
    state = asked.local or str(spark_local())
    local = unwritable(state)
    free = 0 if local else free_bytes(state)
    lacking = tuple(module for module in asked.modules if find_spec(module.partition(".")[0]) is None)
    yield Answer(
        host, folder, own, sys.executable, found, files, versions, pyspark.__version__, local, free, servers,
        time.time(), memory=free_memory(), lacking=lacking,
    )  # fmt: skip


def _shared(folder: str, token: str, own: str) -> str | None:
    if not appears(token_file(folder, token, "driver")):
        return "does not see what the driver writes there"
    try:
        write(token_file(folder, token, own))
    except OSError as error:
        return f"cannot write there ({error.strerror})"
    return None


def _forget(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:
        return


def _size(path: str) -> int | None:
    try:
        return os.path.getsize(path) if may_read(path) else None
    except OSError:
        return None


def _version(name: str, module: str) -> str | None:
    try:
        if find_spec(module) is None:
            return None
    except ModuleNotFoundError:  # of a package around it
        return None
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
