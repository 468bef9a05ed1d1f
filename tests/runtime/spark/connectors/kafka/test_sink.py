"""A real topic as a sink: keys, tombstones and times as they should be, each result once whatever is repeated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from servers.kafka import Broker, Record
from servers.ports import free_port
from tests.runtime.spark.connectors.kafka.batches import records
from tests.runtime.spark.support import compiled, run_once, write_json
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.connectors.kafka.client import quiet
from vsc.runtime.spark.connectors.kafka.epochs import EpochReader, Note, OpenTransaction, create_epochs
from vsc.runtime.spark.connectors.kafka.transaction import Transaction, forget_after
from vsc.runtime.spark.query.failures import translated
from vsc.runtime.spark.query.preflight import check

pytestmark = pytest.mark.spark

SOURCE = """
{kind} rows ({columns}) from files (path = '${{in}}', format = 'json') {clauses};
{more}
sink {node} to kafka (bootstrap_servers = '${{brokers}}', topic = '${{topic}}', {options});
"""


class Case:
    """A topology that writes rows of files to a topic, and its folder."""

    def __init__(self, spark: Any, folder: Path, broker: Broker, topic: str) -> None:
        self.spark, self.folder, self.broker, self.topic, self.files = spark, folder, broker, topic, 0

    def says(
        self, columns: str, clauses: str, options: str = "format = 'json'", kind: str = "table", more: str = "",
        node: str = "rows",
    ) -> None:  # fmt: skip
        text = SOURCE.format(columns=columns, clauses=clauses, options=options, kind=kind, more=more, node=node)
        self.plan = compiled(text)

    def add(self, *rows: dict[str, Any], file: int | None = None) -> None:
        self.files += file is None
        number = self.files if file is None else file
        write_json(self.folder / f"in/{number}.json", rows, number)

    def run(self, checkpoint: str = "ck", **more: Any) -> list[Any]:
        variables = {"brokers": self.broker.address, "topic": self.topic, "in": f"{self.folder}/in"}
        variables |= more.pop("variables", {})
        return run_once(self.plan, self.spark, self.folder / checkpoint, variables=variables, partitions=2, **more)

    def fails(self, **more: Any) -> SinkError:
        with pytest.raises(Exception) as caught:  # Spark's exception, of whatever kind, quotes ours
            self.run(**more)
        known = translated(caught.value)
        assert known is not None, caught.value
        return known  # type: ignore[return-value]

    def forget_the_commit(self, epoch: int) -> None:
        """As if the driver had died between the sink and Spark's note that the epoch is done."""
        (self.folder / f"ck/commits/{epoch}").unlink()
        (self.folder / f"ck/commits/.{epoch}.crc").unlink(missing_ok=True)

    def written(self) -> list[tuple[Any, Any, int]]:
        return sorted(content(self.broker.read(self.topic)), key=repr)


def content(records: Iterable[Record]) -> list[tuple[Any, Any, int]]:
    return [(None if r.key is None else r.key.decode(), r.json, r.timestamp) for r in records]


@pytest.fixture
def case(spark: Any, tmp_path: Path, broker: Broker, topic: Callable[..., str]) -> Case:
    return Case(spark, tmp_path, broker, topic(3))


@pytest.mark.seam("kafka sink")
def test_changes_of_a_table_with_key_time_and_tombstones(case: Case) -> None:
    case.says("k string, x decimal(5,2), t timestamp, at bigint, gone boolean",
              "key k timestamp at delete when gone materialize versioned (retention = 1 day)")  # fmt: skip
    case.add(
        {"k": "a", "x": 1.5, "t": "2026-01-01T00:00:00.123456Z", "at": 1000}, {"k": "b", "at": 3000},
        {"k": "a", "at": 2000, "gone": True}, {"k": "ü", "at": 0},
    )  # fmt: skip
    case.run()
    assert case.written() == [
        ("a", None, 2000),
        ("a", {"x": 1.5, "t": "2026-01-01T00:00:00.123456Z", "at": 1000}, 1000),
        ("b", {"at": 3000}, 3000),
        ("ü", {"at": 0}, 1),  # librdkafka takes 0 for now
    ]


@pytest.mark.seam("kafka sink")
def test_records_of_a_stream_in_order_where_a_java_client_puts_their_key(case: Case, topic: Callable[..., str]) -> None:
    case.says("id bigint, n int, at bigint", "key id timestamp at", "format = 'json', with_timestamp = true", "stream")
    rows = [{"id": i % 7, "n": i, "at": 1000 + i} for i in range(100)]
    case.add(*rows)
    case.run()
    found = case.broker.read(case.topic)
    other = topic(3)  # the fixture's producer places keys as Java does
    case.broker.write(other, [Record(b'{"id":%d}' % row["id"], b"{}", row["at"]) for row in rows])
    assert {(r.key, r.partition) for r in found} == {(r.key, r.partition) for r in case.broker.read(other)}
    for key in {r.key for r in found}:
        numbers = [r.json["n"] for r in found if r.key == key]
        assert numbers == sorted(numbers)
    assert sorted((r.json["n"], r.json["_timestamp"], r.timestamp) for r in found) == [
        (row["n"], row["at"], row["at"]) for row in rows
    ]


LOST = """
stream rows (k string, n int, at bigint) from files (path = '${in}', format = 'json') key k timestamp at;
stream halves = map rows select 1 / n as half;
sink halves to noop ();
sink dropped to kafka (bootstrap_servers = '${brokers}', topic = '${topic}', format = 'json');
"""


def test_dead_letters_have_their_event_time_or_that_of_writing(case: Case) -> None:
    case.plan, now = compiled(LOST), time.time() * 1000
    case.add(
        {"k": "zero", "n": 0, "at": 1000}, {"k": "text", "n": "x", "at": 1000}, {"n": 1, "at": 1000},
        {"k": "future", "n": 1, "at": int(now) + 10 * 86_400_000},
    )  # fmt: skip
    case.run(on_error="drop")
    found = {record.json["reason"]: record.timestamp for record in case.broker.read(case.topic)}
    assert found.pop("expression_failed") == 1000
    assert sorted(found) == ["in_the_future", "null_key", "unreadable"]
    assert all(now - 1 <= written <= time.time() * 1000 + 1 for written in found.values())


def test_formats(case: Case) -> None:
    case.says("s string, at bigint", "timestamp at", "format = 'string'", "stream",
              "stream one = map rows select s;", "one")  # fmt: skip
    case.add({"s": "plain", "at": 1}, {"s": "grün", "at": 2})
    case.run()
    found = sorted((r.key, r.value, r.timestamp) for r in case.broker.read(case.topic))
    assert found == [(None, "grün".encode(), 2), (None, b"plain", 1)]
    case.says("id int, s string, at bigint", "key id timestamp at", "format = 'json', key_format = 'none'", "stream")
    case.add({"id": 5, "s": "x", "at": 3}, file=1)
    case.run("ck2")
    assert (None, b'{"id":5,"s":"x","at":3}', 3) in [
        (r.key, r.value, r.timestamp) for r in case.broker.read(case.topic)
    ]


KEYLESS = ("n int, at bigint", "timestamp at", "format = 'json'", "stream")
KEYED = ("k string, n int, at bigint", "key k timestamp at")


@pytest.mark.seam("kafka sink", first=1)
@pytest.mark.parametrize("form", [KEYLESS, KEYED])
def test_an_epoch_that_comes_again_writes_nothing(form: tuple[str, ...], case: Case) -> None:
    case.says(*form)
    case.add(*({"k": f"k{n}", "n": n, "at": 1000 + n} for n in range(20)))
    case.add(*({"k": f"k{n}", "n": n, "at": 1000 + n} for n in range(20, 40)))
    case.run()
    before = case.broker.read(case.topic)
    assert sorted(r.json["n"] for r in before) == list(range(40))
    case.forget_the_commit(0)
    [report] = case.run()
    assert sum(report.written.values()) == 40
    assert case.broker.read(case.topic) == before
    case.add({"k": "k1", "n": 99, "at": 2000})
    case.run()
    assert [r.json["n"] for r in case.broker.read(case.topic) if r not in before] == [99]


def test_an_epoch_that_comes_again_with_other_content_is_an_error(case: Case) -> None:
    case.says(*KEYED)
    case.add({"k": "a", "n": 1, "at": 1000})
    case.run()
    case.forget_the_commit(0)
    case.add({"k": "a", "n": 2, "at": 1000}, file=1)
    assert "epoch 0 was written before with other content (1:" in case.fails().message
    assert [r.json["n"] for r in case.broker.read(case.topic)] == [1]


def test_a_refused_batch_shows_nothing(case: Case) -> None:
    case.says(*KEYED)
    case.add({"k": "a", "n": 1, "at": 1000}, {"k": None, "n": 2, "at": 1000})
    assert "more than --max-bad 0 allows: nothing of the epoch is written" in case.fails(max_bad="0").message
    assert case.broker.read(case.topic, committed=False) == []
    case.run(max_bad="1")
    assert [r.json["n"] for r in case.broker.read(case.topic)] == [1]


def test_a_record_that_kafka_refuses_fails_the_epoch_and_the_rest_of_it_is_written_once(case: Case) -> None:
    """The keys are in different vsc partitions: the task of one commits, that of the other one fails."""
    case.says("k string, n string, at bigint", "key k timestamp at",
              "format = 'json', 'kafka.message.max.bytes' = '${most}'")  # fmt: skip
    keys = [f"k{i}" for i in range(8)]
    case.add(*({"k": k, "n": "x" * (3000 if k == "k0" else 3), "at": 1000} for k in keys))
    error = case.fails(variables={"most": "2000"})
    assert error.code == "VSC906"
    assert "Kafka did not take the record of key 'k0' of epoch 0: " in error.message
    assert "kafka.message.max.bytes" in (error.help or "")
    while not (shown := case.broker.read(case.topic)):  # Spark has ended the good task when the other had failed
        case.fails(variables={"most": "2000"})
    assert len(shown) < 8
    case.run(variables={"most": "9000"})
    assert sorted(r.key for r in case.broker.read(case.topic) if r.key) == [k.encode() for k in keys]


def test_going_back_writes_the_later_epochs_again(case: Case) -> None:
    case.says(*KEYED)
    for n in range(3):
        case.add({"k": "a", "n": n, "at": 1000 + n})
        case.run()
    case.run(back_to=0)
    assert [r.json["n"] for r in case.broker.read(case.topic)] == [0, 1, 2, 1, 2]


RECORDS = records((b"a", b"1", 5), (b"b", None, 6))


def test_an_attempt_that_is_overtaken_cannot_commit(broker: Broker, topic: Callable[..., str]) -> None:
    name, settings = topic(), {"bootstrap.servers": broker.address}
    task = (settings, name, f"vsc-{name}", 1, "the sink", 3)
    create_epochs(settings, f"vsc-{name}", 2, "the sink")
    with pytest.raises(SinkError, match="epoch 3"), Transaction(*task) as zombie:
        zombie.begin()
        zombie.add(RECORDS)
        with Transaction(*task) as other:
            other.begin()
            other.add(RECORDS)
            assert other.finish().records == 2
        zombie.finish()
    assert sorted(content(broker.read(name)), key=repr) == [("a", 1, 5), ("b", None, 6)]
    assert len(broker.read(name, committed=False)) >= 2


def test_a_reader_that_knows_of_no_partition_is_replaced(
    broker: Broker, topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, settings, tried = topic(), {"bootstrap.servers": broker.address}, list[EpochReader]()
    create_epochs(settings, f"vsc-{name}", 2, "the sink")
    last = EpochReader.last

    def first_fails(reader: EpochReader) -> Note | None:
        tried.append(reader)
        if reader is tried[0]:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        return last(reader)

    monkeypatch.setattr(EpochReader, "last", first_fails)
    with Transaction(settings, name, f"vsc-{name}", 0, "the sink", 4) as one:
        one.begin()
        one.add(RECORDS)
        assert one.finish().records == 2
    assert len(tried) == 2


def test_an_older_copy_of_a_checkpoint_is_refused_until_it_goes_back(broker: Broker, topic: Callable[..., str]) -> None:
    name, settings = topic(), {"bootstrap.servers": broker.address}
    create_epochs(settings, f"vsc-{name}", 2, "the sink")

    def write(epoch: int) -> int:
        with Transaction(settings, name, f"vsc-{name}", 0, "the sink", epoch) as one:
            one.begin()
            one.add(RECORDS)
            return one.finish().records

    assert [write(4), write(5), write(5)] == [2, 2, 2]
    with pytest.raises(SinkError, match="epoch 5 is written: the checkpoint, at epoch 4, is an older copy"):
        write(4)
    forget_after(settings, f"vsc-{name}", 3, "the sink")
    assert write(4) == 2
    assert len(broker.read(name)) == 6


def test_the_last_epoch_is_found_behind_attempts_that_failed(broker: Broker, topic: Callable[..., str]) -> None:
    name, settings = topic(), {"bootstrap.servers": broker.address}
    epochs = f"vsc-{name}"
    create_epochs(settings, epochs, 2, "the sink")
    create_epochs(settings, epochs, 2, "the sink")  # it is there
    producer = Producer({**settings, "transactional.id": f"{epochs}-1"}, logger=quiet)
    producer.init_transactions()

    def note(epoch: int) -> None:
        producer.begin_transaction()
        producer.produce(epochs, Note(epoch, "x").encoded(), b"1", 1)

    reader = EpochReader(settings, epochs, 1)
    assert reader.last() is None
    note(7)
    producer.flush()
    with pytest.raises(OpenTransaction, match="has not ended") as caught:
        reader.last()
    assert caught.value.note == Note(7, "x")
    producer.commit_transaction()
    assert reader.last() == Note(7, "x")
    for _ in range(20):
        note(8)
        producer.flush()
        producer.abort_transaction()
    assert reader.last() == Note(7, "x")
    reader.close()
    with pytest.raises(SinkError, match="has 2 partitions, not 3"):
        create_epochs(settings, epochs, 3, "the sink")


SINK = "stream rows (id string, x int) from files (path = '/', format = 'json') {key};" \
    " sink rows to kafka (bootstrap_servers = '${{brokers}}', topic = '${{topic}}', {options});"  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("format = 'json'", "has no topic 'nothing'"),
        ("format = 'json', 'kafka.no.such' = 'x'", "Kafka's client does not know the option 'kafka.no.such'"),
        ("format = 'json', 'kafka.batch.size' = 'x'", "does not take the value of the option 'kafka.batch.size'"),
        ("format = 'json', 'kafka.ssl.truststore.location' = 'x'", "'kafka.ssl.truststore.location' is a JKS file"),
    ],
)
def test_what_is_refused_before_spark_starts(options: str, message: str, broker: Broker) -> None:
    plan = compiled(SINK.format(options=options, key=""))
    with pytest.raises(SinkError) as caught:
        check(plan, {"brokers": broker.address, "topic": "nothing"}, "available-now")
    assert caught.value.message.startswith("the sink of 'rows' (line 1)")
    assert message in caught.value.message
    assert caught.value.help


def test_no_broker() -> None:
    nobody = f"127.0.0.1:{free_port()}"
    with pytest.raises(SinkError, match=f"no Kafka broker answers at {nobody}"):
        check(compiled(SINK.format(options="format = 'json'", key="")), {"brokers": nobody, "topic": "t"}, "once")


LEFT_JOINED = """
stream rows (id bigint, k string, n bigint, s struct<x: int>, at bigint)
from files (path = '${in}/rows', format = 'json') key id timestamp at;
table words (k string) from files (path = '${in}/tables', format = 'json') key k;
table numbers (n bigint) from files (path = '${in}/tables', format = 'json') key n;
table pairs (k string, n bigint) from files (path = '${in}/tables', format = 'json') key k, n;
table things (s struct<x: int>) from files (path = '${in}/tables', format = 'json') key s;
stream by_word = left join rows with words on k select 'word' as of_, id;
stream by_number = left join rows with numbers on n select 'number' as of_, id;
stream by_pair = left join rows with pairs on k, n select 'pair' as of_, id;
stream by_thing = left join rows with things on s select 'thing' as of_, id;
stream in_avro = map by_number select 'avro' as of_, id;
sink by_word to kafka (bootstrap_servers = '${brokers}', topic = '${topic}', format = 'json');
sink by_number to kafka (bootstrap_servers = '${brokers}', topic = '${topic}', format = 'json');
sink by_pair to kafka (bootstrap_servers = '${brokers}', topic = '${topic}', format = 'json');
sink by_thing to kafka (bootstrap_servers = '${brokers}', topic = '${topic}', format = 'json');
sink in_avro to kafka (bootstrap_servers = '${brokers}', topic = '${topic}', format = 'json', key_format = 'avro');
"""


def test_a_record_that_has_no_key_is_written_without_one(case: Case) -> None:
    case.plan = compiled(LEFT_JOINED)
    write_json(case.folder / "in/tables/0.json", [{"k": "a", "n": 1, "s": {"x": 1}}], 0)
    rows: list[dict[str, Any]] = [{"id": 1, "k": "a", "n": 1, "s": {"x": 1}}, {"id": 2}, {"id": 3, "k": "b"}]
    write_json(case.folder / "in/rows/0.json", [{**row, "at": 1000 + row["id"]} for row in rows], 0)
    case.run()
    found: dict[str, dict[int, bytes | None]] = {}
    for record in case.broker.read(case.topic):
        assert record.timestamp == 1000 + record.json["id"]
        found.setdefault(record.json["of_"], {})[record.json["id"]] = record.key
    assert found == {
        "word": {1: b"a", 2: None, 3: b"b"},
        "number": {1: b'{"n":1}', 2: None, 3: None},
        "pair": {1: b'{"k":"a","n":1}', 2: None, 3: None},
        "thing": {1: b'{"s":{"x":1}}', 2: None, 3: None},
        "avro": {1: b"\x02", 2: None, 3: None},
    }


def test_a_compacted_topic_takes_no_record_without_key(case: Case, topic: Callable[..., str]) -> None:
    case.topic, case.plan = topic(1, **{"cleanup.policy": "compact"}), compiled(LEFT_JOINED)
    write_json(case.folder / "in/tables/0.json", [{"k": "a", "n": 1, "s": {"x": 1}}], 0)
    write_json(case.folder / "in/rows/0.json", [{"id": 1, "at": 1000}], 0)
    error = case.fails()
    assert "INVALID_RECORD" in error.message or "failed to validate record" in error.message
    assert error.help is not None and error.help.startswith("a topic with cleanup.policy=compact takes no record")
