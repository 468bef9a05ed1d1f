"""Whether a folder can be written: seen by making one, and a file; and whether it can be read."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from vsc.runtime.spark.base.folders import data_files, unreadable, unwritable


def test_a_folder_that_can_be_made(tmp_path: Path) -> None:
    assert unwritable(str(tmp_path / "a/b")) is None
    assert unwritable(str(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux")
def test_a_file_system_without_folders_of_others() -> None:
    """To the root user, its permissions say that it can be written."""
    assert str(unwritable("/proc/vsc/out")).startswith(("no folder can be made in /proc", "there is no permission"))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert unwritable(str(tmp_path / "file/out")) == f"{tmp_path}/file is not a folder"


def test_a_folder_into_which_nothing_fits(tmp_path: Path) -> None:
    """A file that may not grow stands for a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        found = unwritable(str(tmp_path / "a"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert found == f"no file of 64 KiB can be written to {tmp_path}: File too large"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def close(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """What takes the right to read a path from this process, which root cannot lose."""
    access, closed = os.access, set[str]()
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) not in closed and access(path, mode))
    return lambda path: closed.add(str(path))


def test_what_may_not_be_read(close: Callable[[Path], None], tmp_path: Path) -> None:
    for name in ("a", "b", ".c", "d"):
        (tmp_path / name).write_text("")
    (tmp_path / "gone").symlink_to("nowhere")
    close(tmp_path / "gone")
    close(tmp_path / ".c")
    assert unreadable(str(tmp_path)) is None
    close(tmp_path / "b")
    assert unreadable(str(tmp_path)) == f"{tmp_path}/b"
    assert (unreadable(str(tmp_path / "a")), unreadable(str(tmp_path / "b"))) == (None, f"{tmp_path}/b")
    close(tmp_path)
    assert unreadable(str(tmp_path)) == str(tmp_path)


def test_a_folder_of_a_value_is_not_hidden(tmp_path: Path) -> None:
    """As Spark has it: `_day=1` is read, `_day` and `.day=1` are not."""
    for name in ("_day=1/b.json", "a=1/_b=2/c.json", "_day/b.json", ".day=1/b.json", "a/_b.json", "a/.b=1.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert list(data_files(str(tmp_path))) == ["_day=1/b.json", "a=1/_b=2/c.json"]
