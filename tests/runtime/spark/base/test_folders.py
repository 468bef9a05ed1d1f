"""Whether a folder can be written: seen by making one."""

from __future__ import annotations

from pathlib import Path

import pytest

from vsc.runtime.spark.base.folders import unwritable


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
