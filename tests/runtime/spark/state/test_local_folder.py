"""Damage to a local folder costs a restore, never an error: it is only a copy of what Spark keeps."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.runtime.spark.state.test_protocol import Blobs
from vsc.runtime.errors import LocalStoreError
from vsc.runtime.spark.state.local_folder import opened
from vsc.runtime.spark.state.protocol import STAMP_KEY, PartitionState

ROWS = {f"key{i:05}".encode(): f"value {i}".encode() * 20 for i in range(3000)}


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    """A state of two epochs, and a local folder that holds the first one."""
    blobs = Blobs()
    for number, rows in enumerate((ROWS, {b"later": b"1"})):
        with opened(tmp_path / "db", blobs.loaded) as base:
            state = PartitionState.open(blobs, base, blobs.loaded)
            state.kv.write(rows.items())
            state.commit(f"{number}-1-0-x")
    return blobs


def read(folder: Path, blobs: Blobs) -> dict[bytes, bytes]:
    """As a stage does it: what a damaged folder makes fail is done again with a new one."""
    import shutil

    for _ in range(2):
        try:
            with opened(folder, blobs.loaded) as base:
                state = PartitionState.open(blobs, base, blobs.loaded)
                return {k: v for k, v in state.kv.scan(b"", None) if k != STAMP_KEY}
        except LocalStoreError:
            shutil.rmtree(folder)
    raise AssertionError("a new folder is damaged, too")


def test_any_flipped_byte_cut_or_missing_file_of_the_local_folder_leads_to_a_restore(
    tmp_path: Path, blobs: Blobs
) -> None:
    chance = random.Random(5)
    expected = {**ROWS, b"later": b"1"}
    assert read(tmp_path / "db", blobs) == expected
    for number in range(40):
        files = sorted(f for f in (tmp_path / "db").iterdir() if f.name != "LOCK")
        file = chance.choice(files)
        data = bytearray(file.read_bytes())
        if number % 4 == 0:
            file.unlink()
        elif number % 4 == 1:
            file.write_bytes(data[: chance.randrange(len(data) + 1)])
        elif data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            file.write_bytes(data)
        assert read(tmp_path / "db", blobs) == expected, file
