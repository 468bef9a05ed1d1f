"""Checksums of Spark's logs in a checkpoint on a local disk, kept in ``vsc/logs.json``.

Spark's logs (``offsets``, ``commits``, ``sources``, the schemas of ``state``) hold none, and those that Hadoop keeps
beside them (``.NAME.crc``) stay behind where a folder is copied without its hidden files. A changed digit or letter
would be taken for what was written: files would be read twice, or not at all. HDFS and object stores have their own.

Guarantees: a log is compared with what it was when a run first saw it. A log that no run has seen is not compared, nor
is any after a crash while logs were being replaced.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator
from pathlib import Path

from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.checksummed import LocalFiles, epochs_in, read_checksummed, with_checksum
from vsc.runtime.spark.base.hadoop import Files

__all__ = ["LogSums"]

_log = logging.getLogger(__name__)
_NAME = "vsc/logs.json"
_ONCE = ("offsets/*", "commits/*", "sources/*/*", "state/*/_stateSchema/*/*")
"""What Spark writes once."""
_NOTES = "state/*/_metadata/v2/*"
"""What an epoch writes again when it is repeated; the name of each is the epoch's number."""


class LogSums:
    """The checksums of the logs in the checkpoint at `files`; none where the file system has its own."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def known(self) -> dict[str, int]:
        """The CRC-32 of each log, by its path; of none if the file that holds them is damaged itself."""
        if not self._files.is_local:
            return {}
        files = LocalFiles(self._files.local())
        if not files.exists(_NAME):
            return {}
        try:
            return dict(read_checksummed(files, _NAME)["logs"])
        except CheckpointError as error:
            _log.warning("%s: Spark's logs are not compared with it", error.message)
            return {}

    def of(self, name: str) -> int | None:
        """The CRC-32 of a log as it is, None if it is gone; the file system has to be a local one."""
        try:
            return zlib.crc32(Path(self._files.local(name)).read_bytes())
        except FileNotFoundError:
            return None

    def take(self) -> None:
        """Keeps the checksums of logs that have come since, and forgets those of logs that are gone."""
        if not self._files.is_local:
            return
        before = self.known()
        now = {name: before[name] if name in before else self.of(name) for name in self._there()}
        now = {name: found for name, found in now.items() if found is not None}  # Spark forgets the oldest meanwhile
        if now != before:
            self._files.write(_NAME, with_checksum({"logs": now}))

    def forget(self) -> None:
        """Forgets all of them, before logs are replaced."""
        if self._files.is_local:
            self._files.delete(_NAME)

    def _there(self) -> Iterator[str]:
        root = Path(self._files.local())
        done = max(epochs_in(LocalFiles(str(root)), "commits"), default=-1)
        written = [path for pattern in _ONCE for path in root.glob(pattern)]
        written += [path for path in root.glob(_NOTES) if path.name.isdecimal() and int(path.name) <= done]
        logs = (path for path in sorted(written) if not path.name.startswith(".") and path.is_file())
        return (str(path.relative_to(root)) for path in logs)  # Iceberg has a folder of its own in that of a source
