"""``vsc run`` and the connector that Spark lacks: fetched, or told exactly what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from servers.jars import CACHE
from servers.kafka import Broker, Record
from tests.runtime.spark.support import parquet_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPOLOGY = """
stream rows (v string) from kafka (bootstrap_servers = '${brokers}', topic = '${topic}', format = 'string');
sink rows to files (path = '${out}', format = 'parquet');
"""
NOWHERE = """<ivysettings>
  <settings defaultResolver="nowhere"/>
  <resolvers><ibiblio name="nowhere" m2compatible="true" root="file:///nowhere/"/></resolvers>
</ivysettings>
"""


@pytest.fixture
def run(tmp_path: Path, broker: Broker, topic: Callable[..., str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    name = topic()
    broker.write(name, [Record(None, b"hello", 1000)])
    (tmp_path / "t.vdsl").write_text(TOPOLOGY)

    def run(*conf: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "vsc", "run", "t.vdsl", "--master", "local[1]", "--checkpoint", "ck"]
        command += ["--partitions", "1", "--progress", "none", "--var", f"brokers={broker.address}"]
        command += ["--var", f"topic={name}", "--var", f"out={tmp_path}/out", *(f"--conf={one}" for one in conf)]
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)

    return run


def test_the_connector_is_fetched(run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    done = run(f"spark.jars.ivy={CACHE / 'ivy'}")
    assert done.returncode == 0, done.stderr
    assert [row["v"] for row in parquet_rows(tmp_path / "out")] == ["hello"]


def test_where_it_cannot_be_fetched(run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    (tmp_path / "ivy.xml").write_text(NOWHERE)
    done = run(f"spark.jars.ivy={tmp_path / 'ivy'}", f"spark.jars.ivySettings={tmp_path / 'ivy.xml'}")
    assert done.returncode == 1, done.stderr
    assert "error[VSC913]: Spark has no Kafka connector: " in done.stderr
    for jar in (
        "spark-sql-kafka-0-10_2.13:4.",
        "spark-token-provider-kafka-0-10_2.13",
        "kafka-clients",
        "commons-pool2",
    ):
        assert jar in done.stderr
    assert "--conf spark.jars=" in done.stderr
