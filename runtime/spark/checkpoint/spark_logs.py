"""Spark's own files in a checkpoint: found damaged before Spark reads them as data, named, and the way back from them.

Spark keeps what an epoch reads in ``offsets/N``, that it ended in ``commits/N``, which files a source has seen in
``sources/I/K``, and states in ``state/OPERATOR/PARTITION/VERSION_ID.changelog`` and ``.zip`` (with RocksDB's tables
beside it, ``SSTs/*.sst``), the version being one more than the epoch. It keeps the newest
`spark.sql.streaming.minBatchesToRetain` of them (100), and so an older state.

What is checked, `SparkLogs.check`, before a query starts: that the logs have no gap at their end, and that each file
that will be read is whole. For that the file system's own checksums count (a local disk has them in ``.NAME.crc``, HDFS
and object stores inside), which Spark does not look at everywhere, those of `LogSums`, and the form of what is in it.

States are checked by Spark when it loads them, against the checksums it has written beside them. It does not always say
which file it was: `vsc.runtime.spark.checkpoint.state_files` looks for it, after a failure.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.checksummed import check_epoch, epochs_in, kept_epochs
from vsc.runtime.spark.base.hadoop import Files, first_line
from vsc.runtime.spark.checkpoint.log_sums import LogSums
from vsc.runtime.spark.checkpoint.state_files import StateFiles

__all__ = ["KNOWN", "SparkLogs", "replace_log"]

MOST_FORM = 4 << 20
"""Bytes up to which a log's form is looked at, not only its checksum."""

KNOWN = 1 << 40
"""In a source's log, the number of the batch of files that are known and were never read by the query: no batch has it.
(Spark does arithmetic with the last number, so none is below zero.)"""

MOST_LOG = 1 << 30
"""Bytes of the longest log that is read whole."""

_HEAD = 2
"""Lines of an epoch's offsets before those of the sources."""

_LOG = re.compile(r"(\d+)(\.compact)?")


class SparkLogs:
    """Spark's files in the checkpoint at `files`."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._sums = LogSums(files)
        self._kept_sums: dict[str, int] | None = None
        """The kept checksums, once they have been read."""

    def check(self, operators: int = 0) -> None:
        """CheckpointError that names a damaged or missing file, and the way back if there is one. `operators`: how many
        keep a state, from the first epoch on."""
        offsets, commits = epochs_in(self._files, "offsets"), epochs_in(self._files, "commits")
        done = max([*commits, *epochs_in(self._files, "vsc/epochs")], default=-1)
        newest = max(offsets, default=-1)
        if done > newest:
            raise self._missing(f"offsets/{done}", done)
        if newest >= 0 and (newest > 0 or commits) and max(commits, default=-1) < newest - 1:
            raise self._missing(f"commits/{newest - 1}", newest - 1)
        if newest > 0 and newest - 1 not in offsets:  # Spark reads the newest two
            raise self._missing(f"offsets/{newest - 1}", newest - 1)
        if newest >= 0 and not self._files.exists("metadata"):
            raise CheckpointError(f"{self._files.path('metadata')} is missing", "restore the checkpoint's folder")
        if self._files.exists("metadata"):  # not yet, if the first run was ended before Spark began
            self._whole("metadata", 0)
        for number in sorted(offsets)[-2:]:
            self._whole(f"offsets/{number}", number)
        for number in sorted(commits)[-2:]:
            self._whole(f"commits/{number}", number)
        if newest >= 0:
            for source, offset in self._log_offsets(newest).items():
                self._check_source(source, offset)
        for number in range(operators if commits else 0):
            if not self._files.exists(f"state/{number}"):
                raise CheckpointError(
                    f"{self._files.path(f'state/{number}')} is missing, the state of the query",
                    "restore the folder state from a copy; without one, start with a new checkpoint, which reads "
                    "everything again",
                )
        for folder in self._files.names("state"):
            for kind in ("_metadata", "_stateSchema"):
                for name in self._files.files(f"state/{folder}/{kind}"):
                    if not name.rpartition("/")[2].startswith("."):
                        self._read_through(f"state/{folder}/{kind}/{name}", None)

    def keep_sums(self) -> None:
        """Keeps the checksums of the logs that have come since the last time (`LogSums`)."""
        self._sums.take()

    @property
    def done(self) -> int:
        """The newest epoch that has ended; -1 for none."""
        return max(epochs_in(self._files, "commits"), default=-1)

    @property
    def newest(self) -> int:
        """The newest epoch that was begun; -1 for none."""
        return max(epochs_in(self._files, "offsets"), default=-1)

    def kept(self) -> list[int]:
        """The epochs whose state is kept with what goes on from it, so that one can go back to them; ascending."""
        return kept_epochs(self._files)

    def way_back(self, damaged: int | None) -> str:
        """What to do about damage that came with epoch `damaged` (None: not known)."""
        before = [n for n in self.kept() if damaged is None or n < damaged]
        newest = next((n for n in reversed(before) if self._can_be_read_on(n)), None)
        if newest is None:
            return "restore the checkpoint's folder from a copy: no older state is kept in it"
        return (
            f"restore the file from a copy, or go back: vsc run with --back-to {newest} takes up the state after "
            f"epoch {newest} (kept: {before[0]} to {before[-1]}) and reads on from there"
        )

    def offsets(self, epoch: int) -> list[str]:
        """How far epoch `epoch` has read each source, as Spark has written it; "-" for one without anything."""
        self._whole(f"offsets/{epoch}", epoch)
        return self._files.read(f"offsets/{epoch}").splitlines()[_HEAD:]

    def move_source(self, number: int, offset: str) -> None:
        """Has the query go on with source `number` at `offset`, as Spark writes it. No epoch may have been begun that
        has not ended."""
        self._kept_sums = None
        epoch = self.newest
        if epoch < 0:  # what `vsc upgrade` has written
            replace_log(self._files, f"sources/{number}/0", f"\0v1\n{offset}")
            return
        lines = self._files.read(f"offsets/{epoch}").splitlines()
        lines[_HEAD + number] = offset
        replace_log(self._files, f"offsets/{epoch}", "\n".join(lines))

    def read_files(self, source: str, offset: int) -> Iterator[str]:
        """The entries of a file source's log up to `offset`: the files that it has handed out, one a line."""
        found = self.source_log(source)
        for number in self._needed(found, offset):
            name = f"sources/{source}/{found[number]}"
            for line in self._files.read(name, MOST_LOG).splitlines()[1:]:
                batch = json.loads(line)["batchId"]
                if batch <= offset or batch == KNOWN:
                    yield line

    def source_log(self, source: str) -> dict[int, str]:
        """The files of a source's log, by number: where there are two, the one that was folded."""
        found: dict[int, str] = {}
        for name in self._files.names(f"sources/{source}"):
            match = _LOG.fullmatch(name)
            if match is not None and (match.group(2) or int(match.group(1)) not in found):
                found[int(match.group(1))] = name
        return found

    def check_kept(self, epoch: int) -> None:
        """Raises CheckpointError if the state after `epoch` is not kept, or what Spark would read of it is damaged."""
        check_epoch(self._files, epoch)
        self._whole(f"offsets/{epoch}", epoch)
        self._whole(f"commits/{epoch}", epoch)
        for source, offset in self._log_offsets(epoch).items():
            self._check_source(source, offset)

    def forget_after(self, epoch: int) -> None:
        """Forgets what came after `epoch`, whose state is kept: a query takes up the state after it."""
        self._sums.forget()
        self._kept_sums = None
        for source, offset in self._log_offsets(epoch).items():
            for name in self._files.names(f"sources/{source}"):
                match = _LOG.fullmatch(name)
                if match is not None and int(match.group(1)) > offset:
                    self._files.delete(f"sources/{source}/{name}")
        for number in sorted(epochs_in(self._files, "offsets") | epochs_in(self._files, "commits"), reverse=True):
            if number > epoch:
                self._files.delete(f"commits/{number}")
                self._files.delete(f"offsets/{number}")

    def damaged_state(self, failure: str = "") -> CheckpointError | None:
        """What is wrong with the states, after Spark has failed to load one (`StateFiles.damaged`). None where no epoch
        has been committed."""
        if not epochs_in(self._files, "commits"):
            return None
        return StateFiles(self._files, self.way_back).damaged(failure)

    def _check_source(self, source: str, offset: int) -> None:
        """Checks a file source's log up to `offset`."""
        found = self.source_log(source)
        for number in self._needed(found, offset):
            if number not in found:
                raise self._missing(f"sources/{source}/{number}", self._epoch_of(source, number))
            self._whole(f"sources/{source}/{found[number]}", self._epoch_of(source, number))

    def _needed(self, found: dict[int, str], offset: int) -> range:
        """The numbers of a log that are read to know what is in it up to `offset`."""
        return range(
            max((n for n, name in found.items() if name.endswith(".compact") and n <= offset), default=0), offset + 1
        )

    def _can_be_read_on(self, epoch: int) -> bool:
        """Whether the sources' logs reach to `epoch`: Spark removes their parts once it has folded them."""
        try:
            offsets = self._log_offsets(epoch)
        except CheckpointError:
            return False
        logs = {source: self.source_log(source) for source in offsets}
        return all(n in logs[source] for source, offset in offsets.items() for n in self._needed(logs[source], offset))

    def _epoch_of(self, source: str, offset: int) -> int | None:
        """The first epoch, of those known, that has read as far as `offset` of that source's log."""
        for number in sorted(epochs_in(self._files, "offsets")):
            with contextlib.suppress(CheckpointError):
                if self._log_offsets(number).get(source, -1) >= offset:
                    return number
        return None

    def _log_offsets(self, epoch: int) -> dict[str, int]:
        """For each source that keeps a log of files: how far epoch `epoch` has read it."""
        found = {}
        lines = self._whole(f"offsets/{epoch}", epoch)[_HEAD:]
        for source, line in enumerate(lines):
            offset = line.get("logOffset")
            if type(offset) is int and 0 <= offset < KNOWN:
                found[str(source)] = offset
        return found

    def _whole(self, name: str, epoch: int | None) -> list[dict[str, Any]]:
        """The lines of a log, those that are JSON objects. Raises CheckpointError if it is missing or damaged."""
        self._read_through(name, epoch)
        if self._files.length(name) > MOST_FORM:
            return []
        try:
            text = self._files.read(name, MOST_FORM)
        except OSError as error:
            raise self._damaged(name, str(error), epoch) from error
        lines = text.splitlines()
        if not lines:
            raise self._damaged(name, "it is empty", epoch)
        if name != "metadata" and lines[0] not in ("v1", "v2"):
            raise self._damaged(name, "it does not begin with v1 or v2", epoch)
        return [self._json(name, line, epoch) for line in lines]

    def _json(self, name: str, line: str, epoch: int | None) -> dict[str, Any]:
        if line in ("v1", "v2", "-"):
            return {}
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._damaged(name, "it is truncated or not JSON", epoch) from error
        return found if isinstance(found, dict) else {}

    def _read_through(self, name: str, epoch: int | None) -> None:
        """Reads a file to its end, so that the file system compares it with its checksum."""
        try:
            self._files.crc32c(name)
        except Py4JJavaError as error:
            raise self._damaged(name, first_line(error), epoch) from error
        if self._kept_sums is None:
            self._kept_sums = self._sums.known()
        kept = self._kept_sums.get(name)
        if kept is not None and self._sums.of(name) != kept:
            raise self._damaged(name, "its checksum is not the one in vsc/logs.json", epoch)

    def _missing(self, name: str, epoch: int | None) -> CheckpointError:
        return CheckpointError(f"{self._files.path(name)} is missing", self.way_back(epoch))

    def _damaged(self, name: str, why: str, epoch: int | None) -> CheckpointError:
        return CheckpointError(f"{self._files.path(name)} is damaged: {why}", self.way_back(epoch))


def replace_log(files: Files, name: str, text: str) -> None:
    """Writes one of Spark's files again."""
    LogSums(files).forget()
    # Not aside in the same folder: Spark takes the name of each file there for the number of an epoch.
    files.write(name, text, aside=f"vsc/_{name.replace('/', '-')}.new")
