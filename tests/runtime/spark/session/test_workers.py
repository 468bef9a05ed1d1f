"""Spark's Python workers, and what Spark does with the files of a checkpoint: what makes small epochs cheap."""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zipimport import zipimporter

import psutil
import pytest
from pyspark.sql import SparkSession

from vsc.compiler import compile_topology
from vsc.runtime.spark import start
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.session.local_files import use_local_files
from vsc.runtime.spark.session.ship import ship, warm_up

pytestmark = [pytest.mark.spark, pytest.mark.release]

PATH = "org.apache.hadoop.fs.Path"
TOPOLOGY = "topology t; stream r (value bigint, at timestamp) from rate (rows_per_second = 10); sink r to noop ();"


def _seen(_: int) -> tuple[bool, bool]:
    return "vsc.runtime.operators.stream_table_join" in sys.modules, gc.get_freeze_count() > 10_000


def test_a_worker_is_forked_with_everything_loaded(spark: SparkSession) -> None:
    ship(spark)
    assert spark.sparkContext.parallelize([1], 1).map(_seen).collect() == [(True, True)]


def _archives(_: int) -> tuple[int, int]:
    """How many importers of archives there are, and how many archives Python reads when it is to look again."""
    with patch("zipimport._read_directory", return_value={}) as read:
        importlib.invalidate_caches()
    return sum(isinstance(finder, zipimporter) for finder in sys.path_importer_cache.values()), read.call_count


def test_an_archive_is_read_once(spark: SparkSession) -> None:
    ship(spark)
    ((archives, read),) = spark.sparkContext.parallelize([1], 1).map(_archives).collect()
    assert archives >= 3
    assert read == 0


def _daemons(spark: SparkSession) -> dict[int, bool]:
    """What forks workers: whether these are to shorten their tracebacks, which only those of sources would be."""
    found: dict[int, bool] = {}
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    for child in psutil.Process(gateway.proc.pid).children():
        with suppress(psutil.NoSuchProcess):  # Java also forks what ends at once, such as `chmod`
            if "vsc.runtime.spark.worker_daemon" in child.cmdline():
                found[child.pid] = "SPARK_SIMPLIFIED_TRACEBACK" in child.environ()
    assert found
    return found


def test_sources_and_stages_share_the_workers_that_were_warmed_up(spark: SparkSession, tmp_path: Path) -> None:
    ship(spark)
    settings, tracker = dict(spark.conf.getAll), spark.sparkContext.statusTracker()
    jobs = set(tracker.getJobIdsForGroup(None))
    warming = warm_up(spark)
    assert dict(spark.conf.getAll) == settings
    assert warming is not None
    warming.join()
    (job,) = set(tracker.getJobIdsForGroup(None)) - jobs
    told = tracker.getJobInfo(job)
    assert told is not None
    (number,) = told.stageIds
    stage = tracker.getStageInfo(number)
    while stage is not None and stage.numActiveTasks:  # Spark counts a task a little later than its job ends
        time.sleep(0.1)
        stage = tracker.getStageInfo(number)
    assert stage is not None and stage.numCompletedTasks == spark.sparkContext.defaultParallelism
    before = _daemons(spark)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text(json.dumps({"k": "a", "at": 1}))
    text = f"topology t; stream r (k string, at bigint) from files (path = '{tmp_path}/in', format = 'json') "
    text += "key k timestamp at; table c = aggregate r group by k select count(*) as c; sink c to noop ();"
    written: list[int] = []
    query = start(
        compile_topology(text), spark, checkpoint=str(tmp_path / "ck"),
        on_epoch=lambda report: written.append(report.written.total()),
    )  # fmt: skip
    query.awaitTermination()
    assert written == [1]
    assert _daemons(spark) == before


def _local_files(spark: SparkSession) -> Any:
    """Hadoop's file system of this machine."""
    here = java_class(spark, "java.net.URI")("file:///")
    return java_class(spark, "org.apache.hadoop.fs.FileSystem").get(here, spark._jsc.hadoopConfiguration())


def test_no_process_is_started_for_the_permissions_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    files = _local_files(spark)
    assert files.getRawFileSystem().getClass().getName() == "vsc.LocalFiles$Raw"
    path, permission = java_class(spark, PATH), java_class(spark, "org.apache.hadoop.fs.permission.FsPermission")
    for mode in ("640", "701", "1777"):
        place = tmp_path / mode
        files.create(path(str(place))).close()
        files.setPermission(path(str(place)), permission(mode))
        assert oct(place.stat().st_mode)[-4:] == mode.zfill(4)


def test_what_has_checksums_of_its_own_or_is_for_others_gets_none_of_hadoop(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = _local_files(spark)
    attempt = f"_vsc-{'0' * 16}-0/3-{'a' * 32}/_temporary/0"
    without = ["state/0/1/12_u.changelog", "state/0/1/.12_u.changelog.crc.u.tmp", "state/0/1/12_u.zip.crc",
               "state/0/1/left/12_u.changelog", f"{attempt}/part-00000.json"]  # fmt: skip
    checked = ["state/0/1/SSTs/000001-u.sst", "state/0/_metadata/v2/0", "offsets/12", "sources/0/12.compact",
               "12_u.zip", "_vsc-x/3._commit"]  # fmt: skip
    for name in (*without, *checked):
        files.create(java_class(spark, PATH)(str(tmp_path / name))).close()
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    sums = {str(Path(name).with_name(f".{Path(name).name}.crc")) for name in checked}
    assert found == {*without, *checked, *sums}


def test_a_file_system_that_the_user_has_set_stays(spark: SparkSession) -> None:
    settings, before = spark._jsc.hadoopConfiguration(), _local_files(spark)
    settings.set("fs.file.impl", "org.apache.hadoop.fs.LocalFileSystem")
    try:
        use_local_files(spark)
        assert _local_files(spark).equals(before)
    finally:
        settings.unset("fs.file.impl")


def test_no_process_is_started_to_look_at_a_file_of_a_local_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    query = start(compile_topology(TOPOLOGY), spark, checkpoint=str(tmp_path / "ck"), trigger="10 seconds")
    try:
        settings = query._jsq.streamingQuery().sparkSessionForStream().conf()
        manager = settings.get("spark.sql.streaming.checkpointFileManagerClass")
    finally:
        query.stop()
    assert manager.endswith(".FileSystemBasedCheckpointFileManager")
    names = {path.name for path in (tmp_path / "ck" / "vsc").iterdir()}
    assert "identity.json" in names
    assert ".identity.json.crc" not in names
