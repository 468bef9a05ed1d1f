"""Blobs in files: written by one task, read by any other of the epoch."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from vsc.runtime.errors import StateError
from vsc.runtime.spark.exchange.blob_files import BlobFile, BlobFiles, blob_of


def test_blobs_come_back_while_their_task_still_writes(tmp_path: Path) -> None:
    file = BlobFile(BlobFiles.made(tmp_path), 1)
    payloads = [file.put(blob, b"p") for blob in (b"first", b"", b"the third")]
    assert [bytes(blob_of(p)) for p in payloads] == [b"first", b"", b"the third"]
    file.close()
    assert bytes(blob_of(pa.py_buffer(payloads[2]))) == b"the third"


def test_a_payload_that_is_the_blob_itself_is_not_looked_for() -> None:
    assert blob_of(b"\xff\xff\xff\xff...") == b"\xff\xff\xff\xff..."


def test_payloads_sort_by_place_then_by_task_whatever_the_files_are_called(tmp_path: Path) -> None:
    files = BlobFiles.made(tmp_path)
    second, first = BlobFile(files, 2), BlobFile(files, 1)
    found = [second.put(b"d", b"b"), second.put(b"c", b"a"), first.put(b"b", b"a"), first.put(b"e", b"b")]
    assert [bytes(blob_of(p)) for p in sorted(found)] == [b"b", b"c", b"e", b"d"]


def test_a_task_without_large_blobs_makes_no_file(tmp_path: Path) -> None:
    files = BlobFiles.made(tmp_path)
    BlobFile(files, 0).close()
    assert list(Path(files.folder).iterdir()) == []


def test_clearing_removes_the_files_of_all_tasks(tmp_path: Path) -> None:
    files = BlobFiles.made(tmp_path)
    payloads = [BlobFile(files, partition).put(b"blob", b"p") for partition in range(3)]
    files.clear()
    assert list(Path(files.folder).iterdir()) == []
    with pytest.raises(StateError, match=r"a file of this epoch cannot be read: .*No such file"):
        blob_of(payloads[0])
    BlobFiles(str(tmp_path / "gone")).clear()  # nothing is there


def test_a_file_that_ends_too_early_is_damaged(tmp_path: Path) -> None:
    files = BlobFiles.made(tmp_path)
    payload = BlobFile(files, 0).put(b"a blob", b"p")
    (path,) = Path(files.folder).iterdir()
    path.write_bytes(b"a b")
    with pytest.raises(StateError, match="ends too early"):
        blob_of(payload)


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    files = BlobFiles.made(tmp_path)
    Path(files.folder).rmdir()
    with pytest.raises(OSError, match=rf"No such file or directory: '{files.folder}/\w+'"):
        BlobFile(files, 0).put(b"a blob", b"p")
