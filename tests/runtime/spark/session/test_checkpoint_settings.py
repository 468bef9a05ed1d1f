"""The settings of a query, by where its checkpoint and its executors are. No Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from vsc.runtime.spark.session.session import checkpoint_settings

CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
LOCAL, HDFS = SimpleNamespace(is_local=True), SimpleNamespace(is_local=False, appears_whole=False)


@pytest.mark.parametrize("files", [LOCAL, HDFS])
@pytest.mark.parametrize(
    ("version", "master", "checksums"),
    [
        ("4.1.4", "local[2]", "true"),
        ("4.1.4", "spark://m:7077", "false"),
        ("4.1.4", "local-cluster[2,1,1024]", "false"),
        ("4.2.0", "spark://m:7077", "true"),
    ],
)
def test_spark_4_1_writes_no_checksums_on_a_cluster(files: Any, version: str, master: str, checksums: str) -> None:
    """There, a task that is interrupted as it writes one leaves a state that cannot be loaded (SPARK-54585)."""
    conf: dict[str, str] = {}
    spark = SimpleNamespace(version=version, sparkContext=SimpleNamespace(master=master), conf=conf)
    assert checkpoint_settings(cast(Any, spark), files)[CHECKSUMS] == checksums
