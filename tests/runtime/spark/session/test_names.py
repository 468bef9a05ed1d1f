"""The encoding of file names in a JVM, and what is said of a name that it cannot read. No Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vsc.runtime.spark.query.failures import translated
from vsc.runtime.spark.session.local_files_java import UNREADABLE_NAME
from vsc.runtime.spark.session.names import executor_locale, utf8_names


@pytest.mark.parametrize(
    ("given", "started"),
    [
        ({}, "C.UTF-8"), ({"LANG": "de_DE.UTF-8"}, None), ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "C.UTF-8"),
        ({"LC_CTYPE": "C.utf8", "LANG": "C"}, None), ({"LC_ALL": "", "LC_CTYPE": "POSIX"}, "C.UTF-8"),
    ],
)  # fmt: skip
def test_a_jvm_that_starts_reads_every_name(
    given: dict[str, str], started: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with utf8_names():
        assert os.environ.get("LC_ALL") == (started or given.get("LC_ALL"))
    assert dict(os.environ) == before


def test_executors_elsewhere_get_the_locale() -> None:
    assert executor_locale("local[2]") == {}
    assert executor_locale("local-cluster[1,1,1024]") == executor_locale("yarn") == {
        "spark.executorEnv.LC_ALL": "C.UTF-8"
    }  # fmt: skip


def test_a_name_that_cannot_be_read_is_shown_with_its_bytes(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"B\xfccher (1).json")).write_text("")
    said = f"[STREAM_FAILED] java.io.IOException: {UNREADABLE_NAME}UTF-8: [{tmp_path}/B\ufffdcher (1).json] SQLSTATE: X"
    error = translated(RuntimeError(said))
    assert error is not None and error.code == "VSC905"
    assert error.message == rf"Spark cannot read {tmp_path}/B\xfccher (1).json: its name is not UTF-8"
    (tmp_path / "Köln").mkdir()
    error = translated(RuntimeError(f"x: {UNREADABLE_NAME}ANSI_X3.4-1968: [{tmp_path}/K\ufffd\ufffdln]\n\tat y"))
    assert error is not None and "LC_ALL=C.UTF-8 in the environment of spark-submit" in str(error.help)
    assert (
        error.message == f"Spark's JVM reads names of files as ANSI_X3.4-1968, and cannot read that of {tmp_path}/Köln"
    )
