"""Which disk is full, as far as this machine can tell."""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple

import pytest

from vsc.runtime.spark.base.disks import WrittenFolder, full_disk
from vsc.runtime.spark.query.failures import translated

PLACES = (
    WrittenFolder("the checkpoint", "/a/ck"),
    WrittenFolder("the sink of 's'", "/b/out"),
    WrittenFolder("--local-dir", "/b"),
)
JAVA = "org.apache.spark.SparkException: Job aborted\n\tat x\nCaused by: java.io.IOException: No space left on device"


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Free bytes of the disk on which a folder is, of a gibibyte; a megabyte less than half of it where not given."""
    known: dict[str, int] = {}

    def usage(path: str) -> Usage:
        left = next((n for folder, n in known.items() if str(path).startswith(folder)), 511 << 20)
        return Usage(1 << 30, (1 << 30) - left, left)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    return known


def test_the_place_that_the_error_names_is_told_with_what_is_free(free: dict[str, int]) -> None:
    free["/b"] = 12 << 10
    error = translated(OSError(28, "No space left on device", "/b/out/part-0.json"), PLACES)
    assert error is not None and error.code == "VSC906"
    assert error.message == "there is no space left in /b/out (the sink of 's'): 12 KiB of 1 GiB are free on its disk"
    assert error.help == "free some space there, then run again: nothing is lost"


def test_a_disk_that_is_nearly_full_is_found_where_the_error_names_none(free: dict[str, int]) -> None:
    free["/b"] = 100
    assert full_disk(JAVA, "IOException: No space left on device", PLACES).message == (
        "there is no space left in /b/out (the sink of 's') and /b (--local-dir): 100 B of 1 GiB are free on its disk"
    )


def test_where_no_disk_here_is_full_all_are_told_with_the_reason(free: dict[str, int]) -> None:
    error = translated(RuntimeError(JAVA), PLACES[:2])
    assert error is not None and error.message == (
        "there is no space left on a disk: java.io.IOException: No space left on device "
        "(the checkpoint (/a/ck): 511 MiB of 1 GiB are free on its disk; "
        "the sink of 's' (/b/out): 511 MiB of 1 GiB are free on its disk)"
    )
    quota = translated(OSError(122, "Disk quota exceeded"))
    assert quota is not None and quota.message == "the quota is used up on a disk: [Errno 122] Disk quota exceeded"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (
            "PermissionError: [Errno 13] Permission denied: '/b/out/_vsc-1-0/0'",
            "VSC906",
            "/b/out (the sink of 's') cannot be written: Permission denied",
        ),
        (
            "org.apache.spark.SparkException: Job aborted\n\tat x\nCaused by: java.io.IOException: Mkdirs failed to "
            "create file:/b/out/_vsc-1-0/0/_temporary/0 (exists=false, cwd=file:/w)",
            "VSC906",
            "/b/out (the sink of 's') cannot be written: a folder in it cannot be made",
        ),
        (
            "java.io.FileNotFoundException: /a/ck/offsets/.7.crc (Read-only file system)",
            "VSC904",
            "/a/ck (the checkpoint) cannot be written: Read-only file system",
        ),
    ],
)
def test_a_folder_that_cannot_be_written_any_more_is_told(text: str, code: str, message: str) -> None:
    error = translated(RuntimeError(text), PLACES)
    assert error is not None and (error.code, error.message) == (code, message)
    assert error.help == "make it writable for the user that runs this, then run again: nothing is lost"


def test_what_is_denied_elsewhere_is_not_a_place_of_the_run() -> None:
    assert translated(RuntimeError("Permission denied: '/elsewhere/x'"), PLACES) is None
