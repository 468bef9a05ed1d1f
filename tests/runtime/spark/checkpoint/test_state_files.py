"""Every file of a state that is emptied, cut, changed or removed is named, with the way back. No Spark."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vsc.runtime.spark.checkpoint.state_files import StateFiles

PARTITION = "state/0/1"
FIRST, SECOND = f"{PARTITION}/SSTs/000008-x.sst", f"{PARTITION}/SSTs/000011-y.sst"
OLD, NEW, LAST = f"{PARTITION}/3_a.zip", f"{PARTITION}/7_b.zip", f"{PARTITION}/8_c.changelog"


class LocalFiles:
    """What is asked of the files of a checkpoint, with another checksum than Spark's, of a file system without any."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, name: str) -> str:
        return f"ck/{name}"

    def exists(self, name: str) -> bool:
        return (self._root / name).exists()

    def size(self, name: str) -> int | None:
        return (self._root / name).stat().st_size if self.exists(name) else None

    def files(self, name: str) -> list[str]:
        folder = self._root / name
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    def read(self, name: str, most: int) -> str:
        return self.read_bytes(name).decode()

    def read_bytes(self, name: str) -> bytes:
        return (self._root / name).read_bytes()

    def crc32c(self, name: str) -> int:
        return zlib.crc32(self.read_bytes(name))


def snapshot(*tables: str) -> bytes:
    """A zip as Spark writes it for a state with these tables of four bytes."""
    listed = [{"localFileName": f"{t[:6]}.sst", "dfsSstFileName": t, "sizeBytes": 4} for t in tables]
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("metadata", "v1\n" + json.dumps({"sstFiles": listed}))
    return target.getvalue()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Two snapshots that share a table, and a change."""
    files = {
        FIRST: b"0123", SECOND: b"4567", OLD: snapshot("000008-x.sst"),
        NEW: snapshot("000008-x.sst", "000011-y.sst"), LAST: b"a changelog",
    }  # fmt: skip
    for name, data in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if "SSTs" not in name:
            value = zlib.crc32(data)
            signed = value - (1 << 32) if value >= 1 << 31 else value
            note = {"algorithm": "CRC32C", "value": signed, "mainFileSize": len(data), "timestampMs": 1}
            note["creator"] = {"executorId": "driver", "taskInfo": "Task= 3.0"}
            path.with_name(f"{path.name}.crc").write_text(json.dumps(note))
    return tmp_path


def found(checkpoint: Path, failure: str = "") -> tuple[str, str | None] | None:
    files: Any = LocalFiles(checkpoint)
    error = StateFiles(files, lambda epoch: f"before {epoch}").damaged(failure)
    return None if error is None else (error.message, error.help)


def empty(data: bytes) -> bytes:
    return b""


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flip(data: bytes) -> bytes:
    return data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]


def test_nothing_is_said_of_whole_states(checkpoint: Path) -> None:
    assert found(checkpoint) is None


@pytest.mark.parametrize("damage", [empty, half, flip])
@pytest.mark.parametrize(("name", "epoch"), [(OLD, 2), (NEW, 6), (LAST, 7)])
def test_a_damaged_snapshot_or_change(
    checkpoint: Path, name: str, epoch: int, damage: Callable[[bytes], bytes]
) -> None:
    path = checkpoint / name
    path.write_bytes(damage(path.read_bytes()))
    assert found(checkpoint) == (f"ck/{name} is damaged: its checksum is wrong", f"before {epoch}")
    path.with_name(f"{path.name}.crc").unlink()  # a zip has to say, too, which tables it needs
    alone = f"ck/{name} is damaged: it does not say which tables belong to it", f"before {epoch}"
    assert found(checkpoint) == (alone if name != LAST and damage is not flip else None)


@pytest.mark.parametrize("damage", [empty, half, lambda data: b"[1]", lambda data: b'{"algorithm": "CRC32C"}',
                                    lambda data: data.replace(b"timestampMs", b"uimestampMs")])  # fmt: skip
def test_a_damaged_checksum(checkpoint: Path, damage: Callable[[bytes], bytes]) -> None:
    path = checkpoint / f"{NEW}.crc"
    path.write_bytes(damage(path.read_bytes()))
    assert found(checkpoint) == (f"ck/{NEW} is damaged: ck/{NEW}.crc does not hold its checksum", "before 6")


@pytest.mark.parametrize(("name", "epoch"), [(FIRST, 2), (SECOND, 6)])
def test_a_damaged_table_takes_all_states_with_it(checkpoint: Path, name: str, epoch: int) -> None:
    path = checkpoint / name
    path.write_bytes(b"")
    assert found(checkpoint) == (f"ck/{name} is damaged: it has 0 bytes, not 4", f"before {epoch}")
    path.unlink()
    assert found(checkpoint) == (f"ck/{name} is missing", f"before {epoch}")
    path.write_bytes(b"abcd")  # of the right length: only RocksDB can tell
    assert found(checkpoint) is None
    failure = (
        f"Caused by: org.rocksdb.RocksDBException: block checksum mismatch in /tmp/spark/{path.name[:6]}.sst offset 0"
    )
    assert found(checkpoint, failure) == (f"ck/{name} is damaged: RocksDB cannot read it", f"before {epoch}")


def test_a_snapshot_that_is_gone(checkpoint: Path) -> None:
    (checkpoint / OLD).unlink()
    (checkpoint / NEW).unlink()
    assert found(checkpoint) == (f"ck/{PARTITION}/*.zip is missing", "before -1")
