"""Blobs that stay outside the JVM: on one machine a task writes them to a file, and the wire row says where they are.

What goes through Spark is copied from Arrow to rows of the JVM, to the shuffle, and back, at each border of a stage.
Where all tasks run on the driver's machine they read each other's files, so that large blobs need none of that.

Guarantees: each attempt of a task has a file of its own, which holds every blob that it has handed out; a file stays
until its epoch is over, so any task of it may be repeated; the payloads of a node sort by the place of their first
record, however often an epoch runs. Not for what outlives its epoch.
"""

from __future__ import annotations

import os
import struct
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from vsc.runtime.errors import StateError
from vsc.runtime.operators.in_step import Frontier
from vsc.runtime.records import Batch

__all__ = ["LEAST_BYTES", "MOST_BYTES", "BlobFile", "BlobFiles", "blob_of"]

LEAST_BYTES = 64 << 10
"""How big a batch has to be for a file to cost less than the way through Spark."""

MOST_BYTES = 1 << 20
"""About how big a blob in a file may be, unless a single record is bigger."""

_MARK = b"@"
"""What a payload that names a file begins with. A blob of Arrow begins with other bytes."""

_WHERE, _LENGTH = struct.Struct(">IQQ"), struct.Struct(">H")
"""The end of such a payload: the task's partition, the offset and the bytes there; the path; how long the path is."""

_AGAIN = "keep other programs out of Spark's local folders, and run it again: the epoch is repeated"


@dataclass(frozen=True, slots=True)
class BlobFiles:
    """The files of a run, in `folder`, which the driver has made."""

    folder: str

    @classmethod
    def made(cls, home: Path) -> BlobFiles:
        """Those in a folder below `home`, which is made."""
        folder = home / "blobs"
        folder.mkdir(exist_ok=True)
        return cls(str(folder))

    def clear(self) -> None:
        """Removes the files of epochs that are over, as far as possible."""
        with suppress(OSError):
            for path in Path(self.folder).iterdir():
                with suppress(OSError):
                    path.unlink()


class BlobFile:
    """The file of one attempt of a task, which is made when there is something to write."""

    def __init__(self, files: BlobFiles, partition: int) -> None:
        self._path = os.path.join(files.folder, uuid.uuid4().hex)
        self._partition = partition
        self._file: pa.OSFile | None = None

    def put(self, batch: Batch) -> bytes:
        """Writes a batch in its order: at least one record. The payload that stands for it.

        A folder that is gone, as after a clean-up of temporary ones, is made again. OSError with the path if the batch
        cannot be written.
        """
        try:
            if self._file is None:
                os.makedirs(os.path.dirname(self._path), exist_ok=True)
                self._file = pa.OSFile(self._path, "wb")
            at = self._file.tell()
            batch.write_ipc(self._file)  # at once: there is no buffer
            size = self._file.tell() - at
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or 0), self._path) from error
        place, path = Frontier.at(batch).place.encoded, os.fsencode(self._path)
        return b"".join((_MARK, place, _WHERE.pack(self._partition, at, size), path, _LENGTH.pack(len(path))))

    def close(self) -> None:
        """Nothing more is written."""
        if self._file is not None:
            self._file.close()


def blob_of(payload: bytes | pa.Buffer) -> bytes | pa.Buffer:
    """The blob that a payload is, or stands for. StateError if it is gone or damaged."""
    if payload[:1] != _MARK:
        return payload
    told = memoryview(payload)
    end = len(told) - _LENGTH.size
    start = end - _LENGTH.unpack(told[end:])[0]
    _, offset, size = _WHERE.unpack(told[start - _WHERE.size : start])
    path = os.fsdecode(bytes(told[start:end]))
    try:
        with pa.OSFile(path) as file:
            file.seek(offset)
            blob = file.read_buffer(size)
    except OSError as error:
        raise StateError(f"a file of this epoch cannot be read: {str(error)[:200]}", _AGAIN) from error
    if len(blob) != size:
        raise StateError(f"a file of this epoch is damaged: {path} ends too early", _AGAIN)
    return blob
