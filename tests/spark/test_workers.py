"""Spark's Python workers, and what Spark does with the files of a checkpoint: what makes small epochs cheap."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from vsc.compiler import compile_topology
from vsc.runtime.spark import start

pytestmark = pytest.mark.spark

TOPOLOGY = "topology t; stream r (value bigint, at timestamp) from rate (rows_per_second = 10); sink r to noop ();"


def _seen(_: int) -> tuple[bool, bool]:
    return "vsc.runtime.operators.stream_table_join" in sys.modules, gc.get_freeze_count() > 10_000


def test_a_worker_is_forked_with_everything_loaded(spark: SparkSession) -> None:
    assert spark.sparkContext.parallelize([1], 1).map(_seen).collect() == [(True, True)]


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
