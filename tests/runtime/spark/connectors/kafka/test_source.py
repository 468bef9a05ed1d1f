"""Rows from a real broker: keys, values, tombstones, times, bad records, order, offsets to begin at, new partitions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servers.kafka import Broker, Record
from tests.runtime.spark.support import compiled, parquet_rows, run_epochs, run_once
from vsc.plan.parts import Connector
from vsc.runtime.errors import BadRowError, SourceError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.client import admin_for_python
from vsc.runtime.spark.connectors.kafka.topics import JavaTopics, TopicLook
from vsc.runtime.spark.query.failures import translated
from vsc.runtime.spark.query.running_query import QueryFailedError

pytestmark = pytest.mark.spark

ROWS = """
table rates ({columns}) from kafka (bootstrap_servers = '${{brokers}}', topic = '${{topic}}', {options}) {clauses};
sink rates to files (path = '${{out}}', format = 'parquet');
"""


class Case:
    """A topology that writes what it reads from a topic, and its folder."""

    def __init__(self, spark: Any, folder: Path, broker: Broker, topic: str, text: str) -> None:
        self.spark, self.folder, self.broker, self.topic = spark, folder, broker, topic
        self.plan = compiled(text)
        self.arguments: dict[str, Any] = {
            "variables": {"brokers": broker.address, "topic": topic, "out": str(folder / "out")}, "partitions": 2,
        }  # fmt: skip

    def run(self, **more: Any) -> list[Any]:
        return run_once(self.plan, self.spark, self.folder / "ck", **self.arguments, **more)

    def rows(self) -> list[dict[str, Any]]:
        return parquet_rows(self.folder / "out")


@pytest.fixture
def case(spark: Any, tmp_path: Path, broker: Broker, topic: Callable[..., str]) -> Callable[..., Case]:
    def make(columns: str, options: str = "format = 'json'", clauses: str = "key k", partitions: int = 1) -> Case:
        text = ROWS.format(columns=columns, options=options, clauses=clauses)
        return Case(spark, tmp_path, broker, topic(partitions), text)

    return make


@pytest.mark.seam("kafka source")
def test_a_null_value_is_a_tombstone_and_the_record_has_its_own_time(case: Callable[..., Case]) -> None:
    one = case("k string, rate double")
    one.broker.write_json(one.topic, [("a", {"rate": 1.5}, 1000), ("b", {"rate": 2}, 900), ("a", None, 2000)])
    one.run()
    rows = [(r["k"], r["rate"], r["_change"], r["_timestamp"]) for r in one.rows()]
    assert sorted(rows, key=lambda row: row[3]) == [
        ("b", 2.0, "upsert", 900), ("a", 1.5, "upsert", 1000), ("a", None, "delete", 2000),
    ]  # fmt: skip


def test_a_timestamp_clause_goes_before_the_record_s_time_but_for_tombstones(case: Callable[..., Case]) -> None:
    one = case("k string, at bigint", clauses="key k timestamp at")
    one.broker.write_json(one.topic, [("a", {"at": 7}, 1000), ("a", None, 2000)])
    one.run()
    assert [(r["k"], r["at"], r["_timestamp"]) for r in one.rows()] == [("a", 7, 7), ("a", None, 2000)]


@pytest.mark.seam("kafka source", first=1)
@pytest.mark.parametrize(
    ("columns", "options", "records", "rows"),
    [
        (
            "id bigint, x int", "format = 'json'",
            [(b'{"id": 1}', b'{"x": 2}'), (b"3", b'{"x": 4, "id": 9}')], [(1, 2), (3, 4)],
        ),
        (
            "id bigint, x string", "format = 'string'",
            [(b"1", b"plain"), (b"2", "grün".encode())], [(1, "plain"), (2, "grün")],
        ),
        (
            "id bigint, x int", "format = 'json', key_format = 'none'",
            [(None, b'{"id": 5, "x": 6}'), (b"\xff", b'{"id": 7, "x": null}')], [(5, 6), (7, None)],
        ),
        (
            "id string, x int", "format = 'json', key_format = 'json'",
            [(b'"q"', b'{"x": 1}'), (b'{"id": "r"}', b'{"x": 2}')], [("q", 1), ("r", 2)],
        ),
    ],
)  # fmt: skip
def test_keys_and_values_in_their_formats(
    columns: str,
    options: str,
    records: list[tuple[bytes | None, bytes]],
    rows: list[tuple[Any, Any]],
    case: Callable[..., Case],
) -> None:
    one = case(columns, options, "key id")
    one.broker.write(one.topic, [Record(key, value, 1000 + i) for i, (key, value) in enumerate(records)])
    one.run()
    assert sorted((r["id"], r["x"]) for r in one.rows()) == rows


BAD = [
    (b"1", b'{"x": 1}', None),
    (b"1", b'{"x": "one"}', "cannot be read: column 'x' (int) cannot hold 'one'"),
    (b"1", b"{x", "cannot be read: '{x' is not JSON"),
    (b"1", b"", "cannot be read: '' is not JSON"),
    (b"1", b"[1]", "cannot be read: '[1]' is not a JSON object"),
    (b"1", b"\xff\xfe", "cannot be read: its value is not UTF-8 text"),
    (b"one", b'{"x": 1}', "cannot be read: its key 'one' is not JSON for (id bigint)"),
    (b"\xff", b'{"x": 1}', "cannot be read: its key is not UTF-8 text"),
    (None, b'{"x": 1}', "has a null key column"),
]


@pytest.mark.seam("bad records", first=1)
@pytest.mark.parametrize(("place", "message"), [(i, message) for i, (_, _, message) in enumerate(BAD) if message])
def test_a_bad_record_is_told_with_topic_partition_and_offset(
    place: int, message: str, case: Callable[..., Case]
) -> None:
    one = case("id bigint, x int", clauses="key id")
    one.broker.write(one.topic, [Record(b"5", b'{"x": 5}', 5), Record(BAD[place][0], BAD[place][1], 6)])
    with pytest.raises(Exception) as caught:  # Spark's exception, of whatever kind, quotes ours
        one.run(on_bad_row="fail")
    known = translated(caught.value)
    assert isinstance(known, BadRowError)
    assert f"source 'rates': row 1 of {one.topic}-000000 {message}" in known.message
    [report] = one.run(on_bad_row="drop")
    reasons = report.metrics.as_dict()["dropped_records"]["rates"]
    assert reasons == {"null_key" if "null" in message else "unreadable": 1}
    assert [(r["id"], r["x"]) for r in one.rows()] == [(5, 5)]


def test_the_order_is_that_of_partition_numbers_then_offsets(
    spark: Any, tmp_path: Path, broker: Broker, topic: Callable[..., str]
) -> None:
    """All of the same time, so that nothing else decides; eleven partitions, so that text would put 10 before 2."""
    text = """
    stream s (x int) from kafka (bootstrap_servers = '${brokers}', topic = '${topic}', format = 'json') key x;
    stream one = rekey s by 'k' as k;
    table all = aggregate one group by k select collect_list(x) as xs;
    sink all to files (path = '${out}', format = 'parquet');
    """
    case = Case(spark, tmp_path, broker, topic(11), text)
    places = [(10, 0), (2, 1), (0, 2), (10, 3), (2, 4), (1, 5)]
    broker.write(case.topic, [Record(b"%d" % x, b"{}", 1000, partition) for partition, x in places])
    case.run()
    assert case.rows()[-1]["xs"] == [2, 5, 1, 4, 0, 3]


def test_offsets_to_begin_at(case: Callable[..., Case]) -> None:
    offsets = '{"${topic}": {"0": 2}}'
    one = case("k string, x int", f"format = 'json', starting_offsets = '{offsets}'")
    one.broker.write_json(one.topic, [("a", {"x": i}, i + 1) for i in range(4)])
    one.run()
    assert [r["x"] for r in one.rows()] == [2, 3]
    one.broker.write_json(one.topic, [("a", {"x": 9}, 9)])
    one.run()
    assert [r["x"] for r in one.rows()] == [2, 3, 9]


def test_a_topic_that_grows_partitions_while_it_is_read(case: Callable[..., Case]) -> None:
    one = case("k string, x int")

    def first() -> None:
        one.broker.write(one.topic, [Record(b"a", b'{"x": 1}', 1, 0)])

    def more() -> None:
        one.broker.grow(one.topic, 3)
        one.broker.write(one.topic, [Record(b"b", b'{"x": 2}', 2, 2), Record(b"a", b'{"x": 3}', 3, 0)])

    run_epochs(one.plan, one.spark, one.folder / "ck", [first, more], **one.arguments)
    assert sorted((r["k"], r["x"]) for r in one.rows()) == [("a", 1), ("a", 3), ("b", 2)]


def test_a_record_at_a_time_that_spark_cannot_read(case: Callable[..., Case]) -> None:
    """Spark makes microseconds of the time of each record, whatever is read of it."""
    one = case("k string, at bigint", clauses="key k timestamp at")
    topic = f"{one.topic}-at-any-time"
    one.broker.create(topic, 1, **{"message.timestamp.after.max.ms": str(2**63 - 1)})
    one.arguments["variables"]["topic"] = topic
    records = [Record(b"a", b'{"at": 1}', time) for time in (-1, 2**53, 1_700_000_000_000_000_000)]
    one.broker.write(topic, records[:2])
    one.run()
    assert [(r["k"], r["at"], r["_timestamp"]) for r in one.rows()] == [("a", 1, 1)] * 2
    one.broker.write(topic, records[2:])
    with pytest.raises(QueryFailedError, match=r"\[VSC905\] a record of Kafka has a timestamp that Spark cannot read"):
        one.run()
    assert len(one.rows()) == 2


def test_a_group_says_how_far_the_query_has_read(case: Callable[..., Case]) -> None:
    one = case("k string, x int", "format = 'json', group = '${topic}-readers'", partitions=2)
    one.broker.write(one.topic, [Record(b"a", b'{"x": 1}', 1, 0), Record(b"b", b'{"x": 2}', 2, 1)])
    one.run()
    one.broker.write(one.topic, [Record(b"a", b'{"x": 3}', 3, 0)])
    one.run()
    assert one.broker.committed(f"{one.topic}-readers") == {(one.topic, 0): 2, (one.topic, 1): 1}


def test_records_that_kafka_has_deleted(case: Callable[..., Case]) -> None:
    one = case("k string, x int", "format = 'json', 'failOnDataLoss' = '${strict}'")
    one.arguments["variables"]["strict"] = "true"
    for first in (0, 2):
        one.broker.write_json(one.topic, [("a", {"x": first + i}, 1000) for i in range(2)])
        if first == 0:
            one.run()
    one.broker.delete(one.topic, 0, 3)
    with pytest.raises(Exception) as caught:
        one.run()
    known = translated(caught.value)
    assert isinstance(known, SourceError)
    assert known.message.startswith("Kafka no longer holds records that the checkpoint has still to read")
    one.arguments["variables"]["strict"] = "false"
    [report] = one.run()
    assert [r["x"] for r in one.rows()] == [0, 1, 3]
    assert report.metrics.as_dict()["dropped_records"] == {"rates": {"lost": 1}}


def test_a_topic_that_is_deleted_and_created_again(case: Callable[..., Case]) -> None:
    """Between two runs, and while one goes on; the new one has the offsets that come next."""
    one = case("k string, x int", "format = 'json', 'failOnDataLoss' = '${strict}'")
    one.arguments["variables"]["strict"] = "true"

    def write(first: int, count: int) -> None:
        one.broker.write_json(one.topic, [("a", {"x": first + i}, 1000) for i in range(count)])

    write(0, 2)
    one.run()
    one.broker.recreate(one.topic, 1)
    write(10, 3)
    with pytest.raises(SourceError, match="was deleted and created again since this checkpoint read it"):
        one.run()
    one.arguments["variables"]["strict"] = "false"

    def again() -> None:
        one.broker.recreate(one.topic, 1)
        write(20, 4)

    reports = run_epochs(one.plan, one.spark, one.folder / "ck", [lambda: None, again], **one.arguments)
    assert [r["x"] for r in one.rows()] == [0, 1, 10, 11, 12, 23]
    assert [r.metrics.as_dict()["dropped_records"] for r in reports] == [{}, {"rates": {"lost": 3}}]
    write(30, 1)
    one.run()
    assert [r["x"] for r in one.rows()] == [0, 1, 10, 11, 12, 23, 30]


def test_the_client_for_java_says_the_same_of_a_topic(spark: Any, broker: Broker, topic: Callable[..., str]) -> None:
    """A source with options that only it understands is asked for in the same way."""
    name = topic(2)
    broker.write(name, [Record(b"a", b"{}", 1, 1) for _ in range(3)])
    broker.delete(name, 1, 2)
    given = (("bootstrap_servers", broker.address), ("topic", name))
    plain = Options("source 's'", Connector("kafka", given))
    java = Options("source 's'", Connector("kafka", given, (("kafka.ssl.truststore.location", "trust.jks"),)))
    look = TopicLook(spark)
    assert admin_for_python(java) is None
    assert look.id(java) == look.id(plain)
    assert look.ranges(java) == look.ranges(plain) == {0: (0, 0), 1: (2, 3)}
    gone = Options("source 's'", Connector("kafka", (*given[:1], ("topic", "nowhere"))))
    with pytest.raises(SourceError, match=r"Kafka does not tell about the topic 'nowhere': .+does not host"):
        JavaTopics(spark).id(gone)


JOIN = """
table rates (c string, rate bigint)
from kafka (bootstrap_servers = '${brokers}', topic = '${rates}', format = 'json', 'maxOffsetsPerTrigger' = '3') key c
materialize versioned (retention = 1 day);
stream orders (id string, c string)
from kafka (bootstrap_servers = '${brokers}', topic = '${orders}', format = 'json') key id;
stream priced = left join orders with rates on c select id, rate;
sink priced to files (path = '${out}', format = 'parquet');
"""


def test_a_stream_waits_for_a_table_that_needs_more_epochs(
    spark: Any, tmp_path: Path, broker: Broker, topic: Callable[..., str]
) -> None:
    rates, orders = topic(2), topic(1)
    broker.write_json(rates, [("ab"[i % 2], {"rate": i}, 10 * i + 1) for i in range(20)])
    broker.write_json(orders, [(f"o{i}", {"c": "ab"[i % 2]}, 10 * i + 5) for i in range(20)])
    variables = {"brokers": broker.address, "rates": rates, "orders": orders, "out": str(tmp_path / "out")}
    reports = run_once(compiled(JOIN), spark, tmp_path / "ck", variables=variables, partitions=2)
    assert len(reports) > 5
    found = sorted((r["id"], r["rate"]) for r in parquet_rows(tmp_path / "out"))
    assert found == sorted((f"o{i}", i) for i in range(20))
    assert reports[0].outstanding["rates"] == {"offsets": 17}
