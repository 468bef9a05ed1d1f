"""Options as Kafka's Java clients take them, for librdkafka; which connector goes with which Spark."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.spark.support import compiled
from vsc.plan.nodes import Connector
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.spark.base.options import Options, resolve_plan
from vsc.runtime.spark.connectors.jars import KAFKA, connector_settings
from vsc.runtime.spark.connectors.kafka.client import NotForPython, client_settings
from vsc.runtime.spark.connectors.kafka.layout import layout

JAAS = "org.apache.kafka.common.security.{} required"


def settings(**given: str) -> dict[str, Any]:
    spark = tuple((f"kafka.{name.replace('_', '.')}", value) for name, value in given.items())
    found = client_settings(Options("here", Connector("kafka", (("bootstrap_servers", "b:1"),), spark)))
    assert found.pop("bootstrap.servers") == "b:1"
    return found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"security_protocol": "SSL", "linger_ms": "5"}, {"security.protocol": "SSL", "linger.ms": "5"}),
        (
            {"sasl_jaas_config": JAAS.format("plain.PlainLoginModule") + """ username="a" password="b\\"c";"""},
            {"sasl.username": "a", "sasl.password": 'b"c'},
        ),
        (
            {"sasl_jaas_config": JAAS.format("scram.ScramLoginModule") + " password='p w'\n username = 'u';"},
            {"sasl.username": "u", "sasl.password": "p w"},
        ),
        ({"ssl_endpoint_identification_algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
        ({"ssl_truststore_location": "ca.pem", "ssl_truststore_type": "PEM"}, {"ssl.ca.location": "ca.pem"}),
        ({"ssl_truststore_certificates": "---"}, {"ssl.ca.pem": "---"}),
        (
            {"ssl_keystore_location": "me.pem", "ssl_keystore_type": "PEM", "ssl_key_password": "x"},
            {"ssl.certificate.location": "me.pem", "ssl.key.location": "me.pem", "ssl.key.password": "x"},
        ),
        (
            {"ssl_keystore_location": "me.p12", "ssl_keystore_type": "PKCS12", "ssl_keystore_password": "x"},
            {"ssl.keystore.location": "me.p12", "ssl.keystore.password": "x"},
        ),
    ],
)
def test_options_of_java_for_librdkafka(given: dict[str, str], found: dict[str, str]) -> None:
    assert settings(**given) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ssl_truststore_location": "ca.jks"}, "'kafka.ssl.truststore.location' is a JKS file: give a PEM file"),
        ({"sasl_jaas_config": "com.sun.security.auth.module.Krb5LoginModule required;"}, "no username and password"),
    ],
)
def test_what_only_java_can_use(given: dict[str, str], message: str) -> None:
    with pytest.raises(NotForPython, match=message):
        settings(**given)


def test_the_connector_of_a_release_of_spark() -> None:
    sparks = ("4.0.2", "4.1.4", "4.2.1", "4.3.0", "4.9.0")
    releases = [str(KAFKA.coordinates(spark)).rpartition(":")[2] for spark in sparks]
    assert releases == ["4.0.0", "4.1.1", "4.2.0", "4.2.0", "4.2.0"]


def test_the_connector_is_fetched_unless_it_is_given() -> None:
    text = (
        "stream s (v string) from kafka (bootstrap_servers = 'b', topic = 't', format = 'string'); sink s to noop ();"
    )
    plan, other = compiled(text), compiled("stream s (v int) from memory (); sink s to noop ();")
    package = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"
    assert KAFKA.coordinates("4.1") == package
    found = connector_settings(plan, {"spark.jars.packages": "a:b:1"}, [])
    assert found["spark.jars.packages"].split(",")[0] == "a:b:1"
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13:" in found["spark.jars.packages"]
    assert connector_settings(other, {}, []) == {}
    assert connector_settings(plan, {}, [package]) == {}
    assert connector_settings(plan, {"spark.jars": "/x/spark-sql-kafka-0-10_2.13-4.1.3.jar"}, []) == {}


@pytest.mark.parametrize(
    ("columns", "given"),
    [
        ("k string, n bigint", "the value has n bigint"),
        ("k string, v string, w string", "the value has v string, w string"),
        ("k bigint, v string", "the key has k bigint"),
    ],
)
def test_a_variable_cannot_make_text_of_other_columns(columns: str, given: str) -> None:
    options = "bootstrap_servers = 'b:1', topic = 't', format = '${form}', key_format = '${form}'"
    text = f"stream s ({columns}) from kafka ({options}) key k; sink s to noop ();"
    [node] = resolve_plan(compiled(text), {"form": "string"}).sources
    with pytest.raises(ConfigurationError, match=f"the format 'string' is one column of type string, and {given}"):
        layout(Options.of_source(node), node, node.source.columns, "read")
