"""Which of Spark's logs have a checksum, and when one is taken, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from vsc.runtime.spark.checkpoint.log_sums import LogSums


class _Folder:
    """The local half of `hadoop.Files`."""

    is_local = True

    def __init__(self, root: Path) -> None:
        self.root = root

    def local(self, name: str = "") -> str:
        return str(self.root / name)

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def delete(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)


LOGS = ("offsets/0", "commits/0", "sources/0/0", "sources/1/9.compact", "state/0/_stateSchema/default/0_a",
        "state/0/_metadata/v2/0")  # fmt: skip
OTHERS = ("offsets/.0.crc", "vsc/plan.json", "state/0/0/1_a.zip", "state/0/_metadata/v2/1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (*LOGS, *OTHERS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def sums(folder: Path) -> LogSums:
    return LogSums(cast(Any, _Folder(folder)))


def test_each_log_has_one_and_a_changed_bit_changes_it(folder: Path) -> None:
    sums(folder).take()
    assert sorted(sums(folder).known()) == sorted(LOGS)
    known = sums(folder).known()
    for name in LOGS:
        data = bytearray((folder / name).read_bytes())
        data[-1] ^= 1
        (folder / name).write_bytes(data)
        assert sums(folder).of(name) != known[name]


def test_it_stays_as_the_log_was_first_seen(folder: Path) -> None:
    sums(folder).take()
    before = sums(folder).known()
    (folder / "offsets/0").write_text("changed")
    (folder / "sources/0/0").unlink()
    (folder / "offsets/1").write_text("new")
    sums(folder).take()
    now = sums(folder).known()
    assert now["offsets/0"] == before["offsets/0"]
    assert set(now) == set(before) - {"sources/0/0"} | {"offsets/1"}


def test_a_note_of_state_has_one_once_its_epoch_has_ended(folder: Path) -> None:
    sums(folder).take()
    assert "state/0/_metadata/v2/1" not in sums(folder).known()
    (folder / "commits/1").write_text("")
    sums(folder).take()
    assert "state/0/_metadata/v2/1" in sums(folder).known()


def test_none_are_known_after_they_are_forgotten_or_damaged(folder: Path) -> None:
    sums(folder).take()
    sums(folder).forget()
    assert sums(folder).known() == {}
    sums(folder).take()
    path = folder / "vsc/logs.json"
    path.write_text(path.read_text().replace("offsets/0", "offsets/2"))
    assert sums(folder).known() == {}
