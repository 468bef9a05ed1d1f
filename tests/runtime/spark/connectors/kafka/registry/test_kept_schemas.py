"""What a checkpoint keeps of a registry's schemas, in real queries: a new one that goes on from it has them, too; and
records that only look as if they had a schema cost little."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from servers.kafka import Broker, Record
from tests.runtime.spark.connectors.kafka.registry.double import Double, running
from tests.runtime.spark.connectors.kafka.registry.test_debezium import FIRST as FIRST_EVENTS
from tests.runtime.spark.connectors.kafka.registry.test_debezium import SECOND as EVENTS
from tests.runtime.spark.connectors.kafka.registry.test_debezium import event, row
from tests.runtime.spark.connectors.kafka.registry.test_sources import written
from tests.runtime.spark.support import compiled, run_once
from vsc.runtime.spark.upgrade import Upgrade, prepare, upgrade

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = {"type": "record", "name": "P", "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": "int"}]}
NEWER = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "more", "type": "int", "default": 0}]}
READ = """
stream rows (id bigint, n bigint)
from kafka (bootstrap_servers = '${brokers}', topic = '${in}', format = 'avro', key_format = 'none',
            registry = '${registry}')
key id;
sink rows to kafka (bootstrap_servers = '${brokers}', topic = '${out}', format = 'json', registry = '${registry}',
                    register = true);
"""
AFTERWARDS = READ.replace(
    "sink rows", "stream twice = map rows select n, 2 * n as twice;\nsink twice to noop ();\nsink rows"
)
GONE = "http://127.0.0.1:9"


@pytest.fixture
def double() -> Iterator[Double]:
    with running() as found:
        yield found


def test_an_upgrade_and_a_restart_behind_it_need_no_registry(
    spark: Any, tmp_path: Path, broker: Broker, double: Double, topic: Callable[..., str]
) -> None:
    names = {"in": topic(1), "out": topic(1)}
    id, newer = double.add(f"{names['in']}-value", SCHEMA), double.add("elsewhere", NEWER)

    def add(n: int, schema: Any = SCHEMA, of: int = id) -> None:
        broker.write(names["in"], [Record(None, written(of, schema, {"id": 1, "n": n, "more": 0}), 1)])

    add(1)
    add(2, NEWER, newer)
    broker.write(names["in"], [Record(None, b"\0\0\0\3\xe7x", 1)])
    variables = {"brokers": broker.address, "registry": double.url, **names}
    run_once(compiled(READ), spark, tmp_path / "a", variables=variables, partitions=1)
    plan, gone = compiled(AFTERWARDS), {**variables, "registry": GONE}
    job = Upgrade(plan, str(tmp_path / "a"), str(tmp_path / "b"), variables=gone)
    upgrade(prepare(job), spark, lambda line: None)
    add(3, NEWER, newer)
    broker.write(names["in"], [Record(None, b"\0\0\0\3\xe7x", 1)])
    [report] = run_once(plan, spark, tmp_path / "b", variables=gone)
    assert report.metrics.as_dict()["dropped_records"] == {"rows": {"unreadable": 1}}
    sent = [(record.value or b"")[:5] for record in broker.read(names["out"])]
    assert [(record.value or b"")[5:] for record in broker.read(names["out"])] == [b'{"n":%d}' % n for n in (1, 2, 3)]
    assert len(set(sent)) == 1
    assert double.asked["GET /schemas/ids/999"] == 1


def test_thousands_of_ids_that_are_none_end_nothing(
    spark: Any, tmp_path: Path, broker: Broker, double: Double, topic: Callable[..., str]
) -> None:
    names = {"in": topic(2), "out": topic(1)}
    id = double.add(f"{names['in']}-value", SCHEMA)
    garbage = [Record(None, b"\0" + n.to_bytes(4, "big") + b"x", 1) for n in range(10_000, 13_000)]
    good = [Record(None, written(id, SCHEMA, {"id": n, "n": n}), 1) for n in range(30)]
    broker.write(names["in"], [*garbage[:1500], *good, *garbage[1500:]])
    variables = {"brokers": broker.address, "registry": double.url, **names}
    plan = compiled(READ)
    [report] = run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=1)
    assert report.metrics.as_dict()["dropped_records"] == {"rows": {"unreadable": 3000}}
    assert sorted(record.json["n"] for record in _plain(broker, names["out"])) == list(range(30))
    assert 100 <= sum(n for path, n in double.asked.items() if path.startswith("GET /schemas/")) <= 250


def test_change_events_in_avro_are_a_table(
    spark: Any, tmp_path: Path, broker: Broker, double: Double, topic: Callable[..., str]
) -> None:
    names = {"in": topic(1), "out": topic(1)}
    first, second = (double.add(f"{names['in']}-value", schema) for schema in (FIRST_EVENTS, EVENTS))
    events = [
        event(first, FIRST_EVENTS, "c", 1000, after=row(1, name="Ann")),
        event(first, FIRST_EVENTS, "c", 1000, after=row(2)),
        event(second, EVENTS, "u", 2000, before={**row(1), "level": 3}, after={**row(1, name="Bea"), "level": 9}),
        event(first, FIRST_EVENTS, "d", 3000, before=row(2)),
    ]  # fmt: skip
    broker.write(names["in"], [Record(b"k", value, 1) for value in (*events, None)])
    plan = compiled("""
        table customers (id bigint, name string, level int)
        from kafka (bootstrap_servers = '${brokers}', topic = '${in}', format = 'debezium', registry = '${registry}')
        key id materialize versioned (retention = 1 day);
        sink customers to kafka (bootstrap_servers = '${brokers}', topic = '${out}', format = 'json');
    """)
    variables = {"brokers": broker.address, "registry": double.url, **names}
    [report] = run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=1)
    assert report.metrics.as_dict()["dropped_records"] == {}
    found = [(record.key, None if record.value is None else record.json) for record in broker.read(names["out"])]
    assert found == [
        (b'{"id":1}', {"name": "Ann", "level": 3}), (b'{"id":2}', {"level": 3}),
        (b'{"id":1}', {"name": "Bea", "level": 9}), (b'{"id":2}', None),
    ]  # fmt: skip


def _plain(broker: Broker, name: str) -> list[Record]:
    """The records of a topic, without their ids."""
    return [Record(one.key, (one.value or b"")[5:], one.timestamp) for one in broker.read(name)]
