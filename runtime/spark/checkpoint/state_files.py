"""The files of Spark's states in a checkpoint, looked through after Spark could not load one of them.

A state of a version is a ``VERSION_ID.zip``, or one with the ``.changelog`` of each later version; the zip names the
tables of RocksDB that belong to it (``SSTs/*.sst``). Beside zips and changelogs Spark writes their checksums.
"""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.hadoop import Files, first_line

__all__ = ["StateFiles"]

SEARCH_SECONDS = 120.0
"""How long a damaged file is looked for at most."""

_STATE = re.compile(r"(?P<folder>.+)/(?P<version>\d+)_[^/]*\.(?P<kind>changelog|zip)")
_TABLE = re.compile(r"\b(\d+\.sst)\b")


class _Damage(Exception):
    """Why a file cannot be used."""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of RocksDB: its length, what it is called on an executor, and the first version that it belongs to."""

    size: int
    here: str
    version: int


class StateFiles:
    """The states in the checkpoint at `files`. `way_back` says what to do about damage that came with an epoch."""

    def __init__(self, files: Files, way_back: Callable[[int | None], str]) -> None:
        self._files = files
        self._way_back = way_back

    def damaged(self, failure: str = "") -> CheckpointError | None:
        """The newest file that is not what Spark has written, or is missing; None if none is found in time.

        `failure` is what Spark said. A table belongs to any number of states: the way back leads before all of them.
        """
        ends = time.monotonic() + SEARCH_SECONDS
        names = self._files.files("state")
        states = [match for name in names if (match := _STATE.fullmatch(name))]
        tables: dict[str, _Table] = {}
        for state in sorted(states, key=lambda state: -int(state["version"])):
            if time.monotonic() > ends:
                return None
            name, version = f"state/{state.group()}", int(state["version"])
            try:
                self._check_whole(name)
                if state["kind"] == "zip":
                    tables |= self._tables(name, f"state/{state['folder']}/SSTs", version)
            except _Damage as damage:
                return self._error(name, f"is damaged: {damage}", version)
        for name, table in tables.items():
            if time.monotonic() > ends:
                return None
            if (problem := self._problem(name, table, failure)) is not None:
                return self._error(name, problem, table.version)
        return self._without_snapshot(names)

    def _problem(self, name: str, table: _Table, failure: str) -> str | None:
        """What is wrong with a table. Where its length is right, RocksDB may have said so, of its own copy."""
        size = self._files.size(name)
        if size is None:
            return "is missing"
        if size != table.size:
            return f"is damaged: it has {size:,} bytes, not {table.size:,}"
        try:
            self._read_through(name)
        except _Damage as damage:
            return f"is damaged: {damage}"
        refused = (line for line in failure.splitlines() if "RocksDBException" in line)
        if any(table.here in _TABLE.findall(line) for line in refused):
            return "is damaged: RocksDB cannot read it"
        return None

    def _without_snapshot(self, names: list[str]) -> CheckpointError | None:
        """The error for a partition that has tables, and no zip that says which state they are."""
        with_zip = {name.rpartition("/")[0] for name in names if name.endswith(".zip")}
        for name in names:
            folder, found, _ = name.partition("/SSTs/")
            if found and folder not in with_zip:
                return self._error(f"state/{folder}/*.zip", "is missing", 0)
        return None

    def _check_whole(self, name: str) -> None:
        """Reads a file to its end, and compares it with the checksum that Spark has written beside it."""
        self._read_through(name)
        checksum = f"{name}.crc"
        if not self._files.exists(checksum):
            return
        self._read_through(checksum)
        try:
            kept = json.loads(self._files.read(checksum, 100_000))
            algorithm, value = kept["algorithm"], int(kept["value"])  # a number of 32 bits with a sign
            int(kept["mainFileSize"]), int(kept["timestampMs"]), kept["creator"]["executorId"]  # Spark wants them, too
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise _Damage(f"{self._files.path(checksum)} does not hold its checksum") from error
        if algorithm == "CRC32C" and value % (1 << 32) != self._files.crc32c(name):
            raise _Damage("its checksum is wrong")

    def _tables(self, name: str, folder: str, version: int) -> Mapping[str, _Table]:
        """The tables that belong to the state in a zip."""
        try:
            with zipfile.ZipFile(io.BytesIO(self._files.read_bytes(name))) as archive:
                _, _, text = archive.read("metadata").decode().partition("\n")
            return {f"{folder}/{key}": table for key, table in _listed(json.loads(text), version)}
        except (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError, RecursionError) as error:
            raise _Damage("it does not say which tables belong to it") from error

    def _read_through(self, name: str) -> None:
        """Reads a file to its end, so that the file system compares it with its checksum."""
        try:
            self._files.crc32c(name)
        except Py4JJavaError as error:
            raise _Damage(first_line(error)) from error

    def _error(self, name: str, problem: str, version: int) -> CheckpointError:
        return CheckpointError(f"{self._files.path(name)} {problem}", self._way_back(version - 1))


def _listed(metadata: Mapping[str, list[dict[str, str | int]]], version: int) -> Iterator[tuple[str, _Table]]:
    for table in metadata["sstFiles"]:
        yield str(table["dfsSstFileName"]), _Table(int(table["sizeBytes"]), str(table["localFileName"]), version)
