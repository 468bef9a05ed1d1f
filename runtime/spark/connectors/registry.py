"""The connectors by kind, and what is asked of those of a whole plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from pyspark.sql import SparkSession

from vsc.plan.connectors import facts_of
from vsc.plan.nodes import Node, Plan, Sink
from vsc.runtime.errors import SinkError, SourceError, VscRuntimeError
from vsc.runtime.operators.source.read_columns import read_columns
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.base.servers import Servers
from vsc.runtime.spark.connectors.builtin import Console, Memory, Noop, Rate
from vsc.runtime.spark.connectors.connector import Connector, EpochSink
from vsc.runtime.spark.connectors.delta.connector import Delta
from vsc.runtime.spark.connectors.files.connector import FilesConnector
from vsc.runtime.spark.connectors.iceberg.connector import Iceberg
from vsc.runtime.spark.connectors.kafka.connector import Kafka
from vsc.runtime.spark.connectors.position import SourceNotes
from vsc.runtime.spark.connectors.postgres.connector import Postgres
from vsc.runtime.spark.connectors.refusals import keeps_refused

__all__ = [
    "catch_up_sources",
    "check_connectors",
    "check_sink",
    "check_source",
    "connector_of",
    "empty_sources",
    "look_at_source",
    "look_at_sources",
    "make_sink",
    "make_sinks",
    "reach",
    "reach_sink",
    "reach_source",
    "servers_of",
    "take_sources",
]

_CONNECTORS: Mapping[str, Connector] = {
    one.kind: one
    for one in (FilesConnector(), Kafka(), Delta(), Iceberg(), Postgres(), Rate(), Console(), Noop(), Memory())
}


def connector_of(kind: str) -> Connector:
    """The connector of a kind. Raises KeyError for one that `check_connectors` refuses."""
    return _CONNECTORS[kind]


def check_connectors(plan: Plan, default_local: bool = True) -> None:
    """Refuses what can be refused without Spark: connectors that are not there, local paths that do not exist.

    `default_local`: paths without a scheme are on this machine.
    """
    for node in plan.sources:
        check_source(node, default_local)
    for sink in plan.sinks:
        check_sink(sink)


def check_source(node: Node, default_local: bool = True) -> None:
    """Refuses what is wrong with one source."""
    options = Options.of_source(node)
    _known(options, SourceError, "reads from").check_source(node, options, default_local)
    form, kind = options.get("format"), options.connector.kind
    if node.kind == "stream" and form in facts_of(kind).of_tables:  # the compiler looks, unless a variable says so
        raise SourceError(f"{options.place}: {form!r} brings the changes of a table", "declare it as a table")


def check_sink(sink: Sink) -> None:
    """Refuses what is wrong with one sink."""
    options = Options.of_sink(sink)
    _known(options, SinkError, "writes to").check_sink(options)


def _known(options: Options, error: type[VscRuntimeError], does: str) -> Connector:
    kind = options.connector.kind
    if kind not in _CONNECTORS:
        raise error(f"{options.place} {does} {kind!r}, an unknown connector")
    return _CONNECTORS[kind]


def reach(resolved: Plan, fresh: bool, default_local: bool) -> None:
    """Refuses, without Spark, what is seen of the sinks of a resolved plan by asking for them, and of the sources if
    the checkpoint is `fresh`; changes nothing. `default_local`: see `check_connectors`."""
    for node in resolved.sources if fresh else ():
        reach_source(node)
    for sink in resolved.sinks:
        reach_sink(resolved, sink, fresh, default_local)


def reach_source(node: Node) -> None:
    """Refuses one source that cannot be reached."""
    connector_of(node.source.connector.kind).reach_source(node, Options.of_source(node))


def reach_sink(resolved: Plan, sink: Sink, fresh: bool, default_local: bool) -> None:
    """Refuses one sink that cannot be reached."""
    connector_of(sink.connector.kind).reach_sink(sink, resolved.node(sink.node), fresh, default_local)


def look_at_sources(spark: SparkSession, resolved: Plan) -> None:
    """Refuses what is seen of the sources of a resolved plan by asking for them."""
    for node in resolved.sources:
        look_at_source(spark, node)


def look_at_source(spark: SparkSession, node: Node) -> None:
    """Refuses what is seen of one source by asking for it."""
    connector_of(node.source.connector.kind).look(spark, node, Options.of_source(node))


def take_sources(spark: SparkSession, resolved: Plan, kept: str, begun: bool) -> None:
    """Takes what is read of a source only once into its folder in `kept`; for `begun` see `Connector.take`."""
    for node in resolved.sources:
        options, read = Options.of_source(node, kept), read_columns(resolved, node.name)
        connector_of(node.source.connector.kind).take(spark, node, options, read, begun)


def catch_up_sources(spark: SparkSession, resolved: Plan, checkpoint: Files, offset: Callable[[int], str]) -> None:
    """Prepares the sources of a checkpoint that goes on: see `Connector.catch_up`. `offset` gives how far the one of a
    number has been read."""
    for number, node in enumerate(resolved.sources, start=1):  # the first is the control source
        options, notes = Options.of_source(node), SourceNotes(checkpoint, number)
        connector_of(node.source.connector.kind).catch_up(spark, notes, options, partial(offset, number))


def make_sinks(spark: SparkSession, plan: Plan, checkpoint: str, ancestors: tuple[str, ...] = ()) -> list[EpochSink]:
    """The sinks of a resolved plan; `checkpoint` is the checkpoint's id, `ancestors` are those that it goes on from."""
    sinks = [make_sink(spark, plan, sink, checkpoint) for sink in plan.sinks]
    for sink in sinks:
        sink.keeps_refused = keeps_refused(plan, sink.id)
        sink.ancestors = ancestors
    return sinks


def make_sink(spark: SparkSession, plan: Plan, sink: Sink, checkpoint: str) -> EpochSink:
    """One sink alone."""
    return connector_of(sink.connector.kind).sink(spark, sink, plan.node(sink.node), checkpoint)


def servers_of(connectors: Iterable[Options]) -> dict[Servers, str]:
    """The systems that executors connect to, each with the place of a connector that needs it."""
    found: dict[Servers, str] = {}
    for options in connectors:
        for servers in connector_of(options.connector.kind).servers(options):
            found.setdefault(servers, options.place)
    return found


def empty_sources(spark: SparkSession, resolved: Plan, read: Mapping[str, int]) -> Iterator[str]:
    """A line for each source that had nothing to bring; only those that brought nothing are asked."""
    for node in resolved.sources:
        if not read.get(node.name):
            options = Options.of_source(node)
            why = connector_of(options.connector.kind).nothing_there(spark, options)
            if why is not None:
                yield f"{options.place} has nothing to read: {why}"
