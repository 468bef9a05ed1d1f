"""The settings of a query, by where its checkpoint and its executors are. No Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.session.session import checkpoint_settings, state_settings

CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
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


@pytest.mark.parametrize(
    ("version", "package"), [("4.0.2", ""), ("4.1.4", ".checkpointing"), ("4.3.0", ".checkpointing")]
)
def test_where_the_class_is_that_writes_a_local_checkpoint(version: str, package: str) -> None:
    """Spark 4.1 has moved it."""
    spark = SimpleNamespace(version=version, sparkContext=SimpleNamespace(master="local[2]"), conf={})
    assert checkpoint_settings(cast(Any, spark), cast(Any, LOCAL))[FILE_MANAGER] == (
        f"org.apache.spark.sql.execution.streaming{package}.FileSystemBasedCheckpointFileManager"
    )


@pytest.mark.parametrize(
    ("spark", "commits", "format"),
    [("4.0.2", {}, "1"), ("4.1.4", {}, "2"), ("4.1.4", {"9": "v1", "10": "v1"}, "1"), ("4.3.0", {"0": "v2"}, "2")],
)
def test_a_checkpoint_of_spark_4_0_keeps_its_format(spark: str, commits: dict[str, str], format: str) -> None:
    """What 4.0 writes in format 2 only it can go on from: no reader of states, no upgrade, no later release."""
    assert list(state_settings(cast(Any, commits_of(commits)), spark).values()) == [format]


def test_spark_4_0_does_not_go_on_from_a_checkpoint_of_a_newer_one() -> None:
    with pytest.raises(CheckpointError, match=r"Spark 4\.0\.2 cannot read the states that a newer Spark has written"):
        state_settings(cast(Any, commits_of({"0": "v2"})), "4.0.2")


def commits_of(commits: dict[str, str]) -> SimpleNamespace:
    text = {f"commits/{epoch}": f"{version}\n{{}}" for epoch, version in commits.items()}
    return SimpleNamespace(names=lambda _: list(commits), read=text.__getitem__)
