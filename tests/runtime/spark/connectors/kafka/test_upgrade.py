"""An upgrade of a query that reads from a real broker, and writes there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servers.kafka import Broker
from tests.runtime.spark.support import compiled, run_once
from vsc.runtime.spark.exchange.pace import Pace
from vsc.runtime.spark.upgrade import Upgrade, prepare, upgrade

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OLD = """
stream clicks (k string, n bigint)
from kafka (bootstrap_servers = '${brokers}', topic = '${in}', format = 'json') key k;
table sums = aggregate clicks group by k select count(*) as rows, sum(n) as total;
sink sums to kafka (bootstrap_servers = '${brokers}', topic = '${out}', format = 'json');
"""
NEW = """
table names (k string, name string) from files (path = '${names}', format = 'json') key k materialize;
stream visits (k string, n bigint)
from kafka (bootstrap_servers = '${brokers}', topic = '${in}', format = 'json') key k;
table totals = aggregate visits group by k select count(*) as rows, sum(n) as total;
stream named = left join visits with names on k select n, name;
sink totals to kafka (bootstrap_servers = '${brokers}', topic = '${out}', format = 'json');
sink named to noop ();
"""


def test_offsets_go_on_new_partitions_from_their_beginning_and_each_result_is_there_once(
    spark: Any, tmp_path: Path, broker: Broker, topic: Callable[..., str]
) -> None:
    (tmp_path / "names").mkdir()
    variables = {"brokers": broker.address, "in": topic(2), "out": topic(1), "names": str(tmp_path / "names")}
    keys = [f"k{i}" for i in range(6)]
    broker.write_json(variables["in"], [(k, {"n": 1}, 1000) for k in keys])
    run_once(compiled(OLD), spark, tmp_path / "old", variables=variables, partitions=2)

    said: list[str] = []
    job = Upgrade(compiled(NEW), str(tmp_path / "old"), str(tmp_path / "new"), variables)
    upgrade(prepare(job), spark, said.append)
    assert any(line.startswith("source visits (was clicks): goes on at ") and "0: " in line for line in said)
    kept = [
        json.loads((tmp_path / name).read_text())["pace"]
        for name in ("old/vsc/inputs/0.json", "new/vsc/inputs/-1.json")
    ]
    ids, carried = (Pace.load(pace).topics for pace in kept)
    assert carried == {"2": ids["1"], f"to {variables['out']}": ids[f"to {variables['out']}"]}
    broker.grow(variables["in"], 4)
    broker.write_json(variables["in"], [(k, {"n": 10}, 2000) for k in [*keys, "new"]])
    [report] = run_once(compiled(NEW), spark, tmp_path / "new", variables=variables)
    assert report.read["visits"] == 7
    found = sorted((r.key, r.json["rows"], r.json["total"]) for r in broker.read(variables["out"]))
    once = [(k.encode(), 1, 1) for k in keys] + [(k.encode(), 2, 11) for k in keys] + [(b"new", 1, 10)]
    assert found == sorted(once)
