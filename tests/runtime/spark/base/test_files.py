"""What vsc writes on file systems that are neither a local disk nor an object store, as HDFS is: here on Hadoop's
``viewfs:`` of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vsc.runtime.spark.base.hadoop import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    name = "".join(filter(str.isalnum, tmp_path.name))
    spark._jsc.hadoopConfiguration().set(f"fs.viewfs.mounttable.{name}.link./data", f"file://{tmp_path}/data")
    (tmp_path / "data").mkdir()
    return Files(spark, f"viewfs://{name}/data/ck")


def test_a_file_is_written_and_replaced_by_a_rename(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not files.is_local
    assert not files.appears_whole
    files.make("vsc")
    files.write("vsc/a.json", "1")
    monkeypatch.setattr(files, "delete", None)  # a crash behind it would leave no file
    files.write("vsc/a.json", "22")
    assert files.read("vsc/a.json") == "22"
    assert files.names("vsc") == ["a.json"]
    assert (tmp_path / "data/ck/vsc/a.json").read_text() == "22"


def test_what_is_not_there(files: Files) -> None:
    assert files.names("no") == files.files("no") == []
    assert files.sizes("no") == {}
    assert files.size("no") is None
