"""The folders that a run writes to. No Spark."""

from __future__ import annotations

import pytest

from tests.runtime.spark.support import compiled
from vsc.runtime.spark.base.disks import WrittenFolder
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.query.written_folders import written_folders


def test_the_folders_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/s1,/s2")
    monkeypatch.setattr("tempfile.tempdir", "/t")
    source = "stream s (k string) from files (path = '/in', format = 'json');\n"
    ends = Ends(compiled(source + "sink s to files (path = 'file:///out', format = 'json');\nsink s to noop ();"))
    assert written_folders(ends, "hdfs://h/ck", None) == (
        WrittenFolder("the sink of 's'", "/out"),
        WrittenFolder("Spark's local folder", "/s1"),
        WrittenFolder("the temporary folder", "/t"),
    )
    assert written_folders(ends, "ck", "/l")[0] == WrittenFolder("the checkpoint", "ck")
    assert written_folders(ends, "ck", "/l")[2] == WrittenFolder("--local-dir", "/l")
