"""The folders that a run writes to. No Spark."""

from __future__ import annotations

import pytest

from tests.runtime.spark.support import compiled
from vsc.runtime.spark.base.disks import Place
from vsc.runtime.spark.query.places import places_of


def test_the_folders_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/s1,/s2")
    monkeypatch.setattr("tempfile.tempdir", "/t")
    source = "stream s (k string) from files (path = '/in', format = 'json');\n"
    plan = compiled(source + "sink s to files (path = 'file:///out', format = 'json');\nsink s to noop ();")
    assert places_of(plan, "hdfs://h/ck", None) == (
        Place("the sink of 's'", "/out"), Place("Spark's local folder", "/s1"), Place("the temporary folder", "/t"),
    )  # fmt: skip
    assert places_of(plan, "ck", "/l")[0] == Place("the checkpoint", "ck")
    assert places_of(plan, "ck", "/l")[2] == Place("--local-dir", "/l")
