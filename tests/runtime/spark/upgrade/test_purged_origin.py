"""Checkpoints beside one from which keys were purged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.spark.upgrade.support import ID, checkpoint
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.checksummed import LocalFiles, with_checksum
from vsc.runtime.spark.checkpoint.ancestry import ORIGIN, Origin, check_alone
from vsc.runtime.spark.checkpoint.identity import REPLACED, read_identity
from vsc.runtime.spark.upgrade.preflight import check_target

PURGED, UPGRADED = "1" * 32, "2" * 32


def purged(folder: Path) -> LocalFiles:
    """A checkpoint that has taken the place of the one with the id `ID`."""
    checkpoint(folder)
    files = LocalFiles(str(folder))
    now = replace(read_identity(files), id=PURGED, ancestors=(ID,))
    (folder / "vsc/identity.json").write_text(now.dump("t"))
    return files


def test_one_that_was_made_of_it_before_still_has_the_keys(tmp_path: Path) -> None:
    purged(tmp_path / "old")
    (tmp_path / "new/vsc").mkdir(parents=True)
    (tmp_path / "new" / ORIGIN).write_text(Origin(str(tmp_path / "old"), ID, 0).dump())
    new = LocalFiles(str(tmp_path / "new"))
    with pytest.raises(
        CheckpointError, match=r"keys were purged from the checkpoint .*/old after .*/new was made of it"
    ):
        check_alone(new, UPGRADED, LocalFiles)
    check_alone(new, PURGED, LocalFiles)  # itself, at the path of its origin


def test_no_upgrade_goes_into_a_folder_that_is_being_purged(tmp_path: Path) -> None:
    (tmp_path / "vsc").mkdir()
    (tmp_path / REPLACED).write_text(with_checksum(json.loads('{"id": "", "asked": "", "read": []}')))
    with pytest.raises(CheckpointError, match="keys are being purged"):
        check_target(LocalFiles(str(tmp_path)))
