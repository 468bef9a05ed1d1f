"""What tasks import. No Spark."""

from __future__ import annotations

from vsc.compiler import compile_topology
from vsc.runtime.spark.session.packages import all_packages, module_of, packages_of

ALWAYS = ("numpy", "pandas", "pyarrow", "rocksdict", "protobuf")


def packages(source: str, sink: str) -> tuple[str, ...]:
    text = f"topology t; stream s (k string) from {source} key k; sink s to {sink};"
    found = packages_of(compile_topology(text))
    assert found[: len(ALWAYS)] == ALWAYS
    return found[len(ALWAYS) :]


def test_a_plan_needs_what_its_connectors_import_in_tasks() -> None:
    files = "files (path = 'a', format = 'json')"
    kafka = "kafka (bootstrap_servers = 'h:1', topic = '{}', format = '{}')"
    assert packages(files, "noop ()") == ()
    assert packages(kafka.format("a", "json"), "noop ()") == ()
    assert packages(files, kafka.format("a", "json")) == ("confluent-kafka",)
    assert packages(kafka.format("a", "avro"), kafka.format("b", "json")) == ("fastavro", "confluent-kafka")
    assert packages("jdbc (url = 'jdbc:postgresql://h/d', table = 'a')", "noop ()") == ("psycopg",)


def test_all_packages_are_those_of_any_plan() -> None:
    assert all_packages() == (*ALWAYS, "fastavro", "confluent-kafka", "psycopg")
    assert [module_of(name) for name in ("protobuf", "confluent-kafka")] == ["google.protobuf", "confluent_kafka"]
