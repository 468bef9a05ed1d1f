"""Datasets have the names that OpenLineage's naming conventions give them, and these hold no secret."""

from __future__ import annotations

import os

import pytest

from tests.plan.planted import TEXTS
from vsc.compiler import compile_topology
from vsc.lineage.job import job_of
from vsc.plan import Connector
from vsc.plan.connectors import FACTS, facts_of
from vsc.plan.connectors.dataset import Dataset, at_path


@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("/data/orders", "file", "/data/orders"),
        ("/data/orders/", "file", "/data/orders"),
        ("file:/data/orders", "file", "/data/orders"),
        ("file:///data/./orders", "file", "/data/orders"),
        ("file://host/data", "file://host", "/data"),
        ("/data/*/orders-?.json", "file", "/data"),
        ("/data/{a,b}", "file", "/data"),
        ("/*", "file", "/"),
        ("s3a://bucket/a/b", "s3://bucket", "a/b"),
        ("s3n://me:secret@bucket/a", "s3://bucket", "a"),
        ("s3://bucket", "s3://bucket", "/"),
        ("gs://bucket/a/*.csv", "gs://bucket", "a"),
        ("abfs://box@me.dfs.core.windows.net/a", "abfss://box@me.dfs.core.windows.net", "a"),
        ("wasbs://box:secret@me.blob.core.windows.net/a", "wasbs://box@me.blob.core.windows.net", "a"),
        ("hdfs://name:8020/data/orders", "hdfs://name:8020", "/data/orders"),
        ("${data}/orders", "file", "${data}/orders"),
    ],
)
def test_a_path(path: str, namespace: str, name: str) -> None:
    assert at_path(path, "") == Dataset(namespace, name)


def test_a_path_without_a_scheme_is_on_the_default_file_system() -> None:
    assert at_path("orders", "") == Dataset("file", os.path.abspath("orders"))
    assert at_path("/data/orders", "hdfs://name:8020/") == Dataset("hdfs://name:8020", "/data/orders")
    assert at_path("file:/data/orders", "hdfs://name:8020") == Dataset("file", "/data/orders")


@pytest.mark.parametrize(
    ("kind", "options", "namespace", "name"),
    [
        ("kafka", {"bootstrap_servers": "b:9093, a:9092", "topic": "t"}, "kafka://b:9093", "t"),
        ("kafka", {"bootstrap_servers": "SASL_SSL://b", "topic": "t"}, "kafka://b:9092", "t"),
        ("kafka", {"bootstrap_servers": "${brokers}", "topic": "t"}, "kafka://${brokers}", "t"),
        ("kafka", {"bootstrap_servers": "[::1]:9092", "topic": "t"}, "kafka://[::1]:9092", "t"),
        ("jdbc", {"url": "jdbc:postgresql://h:5433/d", "table": "t"}, "postgres://h:5433", "d.public.t"),
        ("jdbc", {"url": "jdbc:postgresql://h,g:1/d?currentSchema=s", "table": "t"}, "postgres://h:5432", "d.s.t"),
        ("jdbc", {"url": "jdbc:postgresql://h/d%20e", "table": "t"}, "postgres://h:5432", "d e.public.t"),
        ("jdbc", {"url": "jdbc:postgresql:d", "table": "s.t", "password": "x"}, "postgres://localhost:5432", "d.s.t"),
        ("jdbc", {"url": "jdbc:postgresql://h/d", "currentSchema": "s", "table": "t"}, "postgres://h:5432", "d.s.t"),
        ("jdbc", {"url": "jdbc:postgresql://h/d", "table": '"My.Tab"."l""e"'}, "postgres://h:5432", 'd.My.Tab.l"e'),
        ("jdbc", {"url": "jdbc:postgresql://h/d", "table": "Sales.ÄLe"}, "postgres://h:5432", "d.sales.Äle"),
        ("jdbc", {"url": "jdbc:postgresql://h/d", "table": "${Name}"}, "postgres://h:5432", "d.public.${Name}"),
        ("jdbc", {"url": "jdbc:postgresql://h/d?currentSchema=A,b", "table": "t"}, "postgres://h:5432", "d.a.t"),
        ("jdbc", {"url": "jdbc:postgresql://h/d", "currentSchema": '"$user", "X,y"', "table": "t"},
         "postgres://h:5432", "d.X,y.t"),
        ("jdbc", {"url": "${url}", "table": "t"}, "postgres", "t"),
        ("delta", {"path": "s3a://b/t"}, "s3://b", "t"),
        ("delta", {"table": "c.s.t"}, "delta", "c.s.t"),
        ("iceberg", {"table": "c.`my s`.t"}, "iceberg", "c.my s.t"),
    ],
)  # fmt: skip
def test_a_system(kind: str, options: dict[str, str], namespace: str, name: str) -> None:
    assert facts_of(kind).dataset(options, "") == Dataset(namespace, name)


def test_what_only_vsc_knows_is_no_dataset() -> None:
    assert {kind for kind, facts in FACTS.items() if facts.dataset(
        {"path": "p", "bootstrap_servers": "b", "topic": "t", "url": "jdbc:postgresql:d", "table": "t"}, "") is None
    } == {"rate", "console", "noop", "memory"}  # fmt: skip


def test_variables_have_their_values_in_names_alone() -> None:
    text = """
    stream s (k string, at bigint)
    from kafka (bootstrap_servers = '${brokers}', topic = 't-${region}', format = 'json',
      'kafka.sasl.jaas.config' = '${jaas}')
    key k timestamp at;
    sink s to jdbc (url = 'jdbc:postgresql://${host}/d?user=me&password=${password}', table = 't', 'user' = '${user}');
    """
    given = {"brokers": "b:1", "region": "eu", "jaas": "hidden1", "host": "h", "password": "hidden2", "user": "hidden3"}
    job = job_of(compile_topology(text, path="t.vdsl", variables={}), "test", given)
    assert [read.dataset for read in job.reads] == [Dataset("kafka://b:1", "t-eu")]
    assert [written.dataset for written in job.writes] == [Dataset("postgres://h:5432", "d.public.t")]
    assert "hidden" not in repr(job)


@pytest.mark.parametrize("text", TEXTS)
def test_no_name_holds_a_secret(text: str) -> None:
    planted = text.format("planted17x")
    plan = compile_topology(
        "stream s (value bigint, at timestamp) from rate (rows_per_second = 1) timestamp at;"
        "sink s to files (path = '${path}', format = 'json'); sink s to jdbc (url = '${url}', table = 't');"
        "sink s to kafka (bootstrap_servers = '${brokers}', topic = 't', format = 'json');"
        "sink s to delta (table = '${table}');",
        path="t.vdsl", variables={},
    )  # fmt: skip
    job = job_of(plan, "test", dict.fromkeys(("path", "url", "table", "brokers"), planted))
    assert len(job.writes) == 4 and isinstance(plan.sinks[0].connector, Connector)
    assert "planted17x" not in repr([written.dataset for written in job.writes])
