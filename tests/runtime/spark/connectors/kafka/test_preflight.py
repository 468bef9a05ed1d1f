"""What is refused before anything is read: brokers, topics, credentials, options; within seconds, without secrets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servers.kafka import Broker
from servers.ports import free_port
from tests.runtime.spark.support import compiled
from vsc.runtime.errors import AvroSchemaError, SourceError
from vsc.runtime.spark.base.options import resolve_plan
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.query.explain import spark_plans
from vsc.runtime.spark.query.preflight import check

pytestmark = pytest.mark.spark

SOURCE = """
stream rows (id string, x int)
from kafka (bootstrap_servers = '${{brokers}}', topic = '${{topic}}', {options}) key id;
sink rows to noop ();
"""
SECRET = "hunter2"
SASL = (
    "format = 'json', 'kafka.security.protocol' = 'SASL_PLAINTEXT', 'kafka.sasl.mechanism' = 'PLAIN', "
    """'kafka.sasl.jaas.config' = 'org.apache.kafka.common.security.plain.PlainLoginModule required """
    """username="vsc" password="${password}";'"""
)


def checked(brokers: str, topic: str = "t", options: str = "format = 'json'", **variables: str) -> None:
    plan = compiled(SOURCE.format(options=options))
    check(plan, {"brokers": brokers, "topic": topic, **variables}, "available-now")


@pytest.fixture
def refused() -> Callable[..., SourceError]:
    def run(*given: Any, **variables: str) -> SourceError:
        started = time.monotonic()
        with pytest.raises(SourceError) as caught:
            checked(*given, **variables)
        assert time.monotonic() - started < 30
        assert SECRET not in str(caught.value)
        assert caught.value.message.startswith("source 'rows' (line 2)")
        assert caught.value.help
        return caught.value

    return run


def test_what_executors_connect_to_is_what_brokers_say(broker: Broker) -> None:
    host, port = broker.address.split(":")
    plan = compiled(SOURCE.format(options="format = 'json'"))
    (source,) = Ends(resolve_plan(plan, {"brokers": f"localhost:{port}", "topic": "t"})).sources
    assert source.servers() == (((host, int(port)),),)
    (source,) = Ends(resolve_plan(plan, {"brokers": f"localhost:{free_port()}", "topic": "t"})).sources
    assert source.servers() == ()  # nobody answers: `check` says so


def test_no_broker(refused: Callable[..., SourceError]) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    error = refused(nobody)
    assert f"no Kafka broker answers at {nobody}: Connect to ipv4#{nobody} failed: Connection refused" in error.message
    assert "Failed to resolve 'nowhere.invalid:1'" in refused("nowhere.invalid:1").message


def test_no_topic(broker: Broker, refused: Callable[..., SourceError]) -> None:
    assert refused(broker.address, "nothing").message.endswith(f"Kafka at {broker.address} has no topic 'nothing'")
    assert refused(broker.address, "no name").message.endswith("'no name' is not a name for a topic")
    assert refused(broker.address, "nothing").message.endswith("has no topic 'nothing'")  # asking has not made it


def test_credentials(broker: Broker, topic: Callable[..., str], refused: Callable[..., SourceError]) -> None:
    name = topic()
    checked(broker.guarded, name, SASL, password="right")
    error = refused(broker.guarded, name, SASL, password=SECRET)
    assert f"Kafka at {broker.guarded} refuses the credentials" in error.message
    assert "Invalid username or password" in error.message
    plain = refused(broker.guarded, name)
    assert "closes the connection; 'kafka.security.protocol' may be wrong" in plain.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("format = 'json', 'maxOffsetsPerTrigger' = '${password}x'", "is a whole number of at least 1, not '9x'"),
        ("format = '${password}'", "has format '9', which this version of vsc does not know for Kafka"),
        ("format = 'json', 'kafka.security.protocol' = '${password}'", "'kafka.security.protocol'"),
        ("format = 'json', starting_offsets = '${password}'", "`starting_offsets` cannot be"),
    ],
)
def test_options(options: str, message: str, broker: Broker, refused: Callable[..., SourceError]) -> None:
    assert message in refused(broker.address, "t", options, password=SECRET if "security" in options else "9").message


def test_a_schema_that_does_not_fit(broker: Broker, topic: Callable[..., str], tmp_path: Path) -> None:
    schema = tmp_path / "s.avsc"
    options = f"format = 'avro', schema = '{schema}', schema_id = ${{id}}"
    for text, id, message in (
        (None, "1", "cannot be read: No such file or directory"),
        ('"int"', "1", None),
        ('"string"', "any", "does not fit: column 'x' (int) cannot be read from its type 'string'"),
        ('"int"', "one", "schema_id is a number, or 'any', not 'one'"),
    ):
        if text is not None:
            schema.write_text(text)
        if message is None:
            checked(broker.address, topic(), options, id=id)
            continue
        with pytest.raises(AvroSchemaError) as caught:
            checked(broker.address, topic(), options, id=id)
        assert caught.value.message.startswith("source 'rows' (line 2): ")
        assert caught.value.message.endswith(message)
        assert caught.value.help


@pytest.mark.parametrize(
    "option",
    [
        "'kafka.sasl.login.callback.handler.class' = 'x'",
        "'kafka.ssl.truststore.location' = 'x.jks'",
        "'kafka.security.protocol' = 'SASL_SSL', 'kafka.sasl.mechanism' = 'AWS_MSK_IAM'",
    ],
)
def test_what_only_java_knows_is_left_to_it(option: str, broker: Broker) -> None:
    checked(broker.address, "nothing", f"format = 'json', {option}")


def test_spark_s_plan_shows_no_secret(spark: Any, broker: Broker, topic: Callable[..., str]) -> None:
    plan = compiled(SOURCE.format(options=SASL + ", 'kafka.client.id' = '${me}'"))
    variables = {"brokers": broker.guarded, "topic": topic(), "password": "right", "me": SECRET}
    text = spark_plans(plan, spark, variables)
    assert "kafka" in text
    assert set(re.findall(r"kafka\.client\.id -> ([^,\]]*)", text)) <= {"..."}  # Spark 4.3 does not show it at all
    assert SECRET not in text
    assert "password" not in text
