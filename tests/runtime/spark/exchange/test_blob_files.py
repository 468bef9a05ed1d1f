"""Blobs in files: written by one task, read by any other of the epoch."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from vsc.plan.nodes import Schema
from vsc.runtime.errors import StateError
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.spark.exchange.blob_files import BlobFile, BlobFiles, blob_of
from vsc.runtime.spark.query.start import _local

SCHEMA = Schema((), ())


def at(time: int, offset: int) -> Batch:
    """Two records, of which the first has this place."""
    offsets = np.array([offset, offset + 1])
    order = Order(np.full(2, time), np.zeros(2, np.int32), offsets, np.zeros((2, 0), np.int64))
    return Batch(SCHEMA, (Origin("s", 0, "a"),), order, offsets, np.ones(2, np.bool_), (), ())


def read(payload: bytes | pa.Buffer) -> list[int]:
    """The offsets of the records of a blob."""
    return list(map(int, Batch.from_ipc(blob_of(payload), SCHEMA).order.offset))


def test_blobs_come_back_while_their_task_still_writes(tmp_path: Path) -> None:
    file = BlobFile(BlobFiles.made(tmp_path), 1)
    payloads = [file.put(at(5, offset)) for offset in (7, 1, 4)]
    assert [read(payload) for payload in payloads] == [[7, 8], [1, 2], [4, 5]]
    file.close()
    assert read(pa.py_buffer(payloads[2])) == [4, 5]


def test_a_payload_that_is_the_blob_itself_is_not_looked_for() -> None:
    assert read(at(5, 7).to_ipc()) == [7, 8]


def test_payloads_sort_by_place_then_by_task_whatever_the_files_are_called(tmp_path: Path) -> None:
    files = BlobFiles.made(tmp_path)
    second, first = BlobFile(files, 2), BlobFile(files, 1)
    found = [second.put(at(9, 8)), second.put(at(5, 7)), first.put(at(5, 7)), first.put(at(9, 4))]
    assert [found.index(payload) for payload in sorted(found)] == [2, 1, 3, 0]


def test_a_task_without_large_blobs_makes_no_file(tmp_path: Path) -> None:
    files = BlobFiles.made(tmp_path)
    BlobFile(files, 0).close()
    assert list(Path(files.folder).iterdir()) == []


def test_clearing_removes_the_files_of_all_tasks(tmp_path: Path) -> None:
    files = BlobFiles.made(tmp_path)
    payloads = [BlobFile(files, partition).put(at(1, 1)) for partition in range(3)]
    files.clear()
    assert list(Path(files.folder).iterdir()) == []
    with pytest.raises(StateError, match=r"a file of this epoch cannot be read: .*No such file"):
        blob_of(payloads[0])
    BlobFiles(str(tmp_path / "gone")).clear()  # nothing is there


def test_a_file_that_ends_too_early_is_damaged(tmp_path: Path) -> None:
    files = BlobFiles.made(tmp_path)
    payload = BlobFile(files, 0).put(at(1, 1))
    (path,) = Path(files.folder).iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StateError, match="ends too early"):
        blob_of(payload)


def test_a_folder_that_is_gone_is_made_again(tmp_path: Path) -> None:
    files = BlobFiles.made(tmp_path)
    Path(files.folder).rmdir()
    assert read(BlobFile(files, 0).put(at(1, 1))) == [1, 2]


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    files = BlobFiles.made(tmp_path)
    Path(files.folder).rmdir()
    Path(files.folder).write_text("")
    with pytest.raises(OSError, match=rf"File exists: '{files.folder}/\w+'"):
        BlobFile(files, 0).put(at(1, 1))


@pytest.mark.parametrize(
    ("master", "here"),
    [("local[2]", True), ("local", True), ("local-cluster[2,1,1024]", False), ("spark://host:7077", False)],
)
def test_there_are_files_only_where_all_tasks_run_on_this_machine(tmp_path: Path, master: str, here: bool) -> None:
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=master, _temp_dir=str(tmp_path)))
    what: Any = SimpleNamespace(
        job=SimpleNamespace(local_folder=None), checkpoint=SimpleNamespace(id="ck", ancestors=())
    )
    folders, files = _local(spark, what)
    assert folders.root == (str(tmp_path) if here else None)
    assert (files is not None) == here
    assert [path.name for path in tmp_path.glob("vsc-ck-*/*")] == ["blobs"] * here
