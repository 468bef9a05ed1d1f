"""A topic of which most partitions are idle, then all: its last windows close, and a late record is counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servers.kafka import Broker
from tests.runtime.spark.support import compiled, parquet_rows
from vsc.runtime.spark import start
from vsc.runtime.spark.exchange.counters import EpochReport

pytestmark = pytest.mark.spark

TOPOLOGY = """topology plant (quiet = 1 second);
stream readings (k string, at bigint) from kafka (bootstrap_servers = '${brokers}', topic = '${topic}', format = 'json')
key k timestamp at;
table counts = aggregate readings group by k window tumbling (size = 60 seconds) emit final select count(*) as n;
sink counts to files (path = '${out}', format = 'parquet');
"""


def test_a_window_closes_when_all_partitions_are_idle(
    spark: Any, tmp_path: Path, broker: Broker, topic: Callable[..., str]
) -> None:
    name, reports = topic(4), list[EpochReport]()
    variables = {"brokers": broker.address, "topic": name, "out": str(tmp_path / "out")}
    broker.write_json(name, [("a", {"at": 50_000}, 1000), ("a", {"at": 30_000}, 1001)])
    query = start(
        compiled(TOPOLOGY), spark, checkpoint=str(tmp_path / "ck"), variables=variables, partitions=2, trigger="20 ms",
        on_epoch=reports.append,
    )  # fmt: skip
    deadline = time.monotonic() + 200
    while not (reports and reports[-1].quieted) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [(row["k"], row["n"]) for row in parquet_rows(tmp_path / "out")] == [("a", 2)]
    broker.write_json(name, [("a", {"at": 58_000}, 1002)])
    query.processAllAvailable()
    query.stop()
    assert reports[-1].metrics.as_dict()["dropped_records"] == {"counts": {"window_closed": 1, "after_quiet": 1}}
