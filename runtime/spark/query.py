"""Starts a plan as one streaming query on a Spark session.

The shape, whatever the plan: each source is packed into blobs (stage 0); then for each later stage a shuffle by
partition and a stateful operator; then foreachBatch with the sinks. The state protocol, the order of records and
the sinks' promise of once are in the modules that this one puts together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from vsc.plan.nodes import Node, Plan, Source
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.task import RunOptions
from vsc.runtime.spark.checkpoint import Checkpoint
from vsc.runtime.spark.control import broadcast, stages_in_step
from vsc.runtime.spark.counters import EpochReport
from vsc.runtime.spark.epoch import EpochWriter
from vsc.runtime.spark.local_folder import LocalFolders, new_run
from vsc.runtime.spark.observed import observed
from vsc.runtime.spark.options import resolve_plan
from vsc.runtime.spark.pace import PROPERTY, Pacer
from vsc.runtime.spark.pack import Pack
from vsc.runtime.spark.session import configured, query_configuration
from vsc.runtime.spark.ship import ship
from vsc.runtime.spark.sinks import check_sinks, make_sinks
from vsc.runtime.spark.sources import check_sources, source_frame
from vsc.runtime.spark.stage import StageProcessor
from vsc.runtime.spark.unread import query_inputs
from vsc.runtime.spark.wire import WIRE_DDL

__all__ = ["check", "start", "start_query"]

SOURCE_TASKS = 16
"""Tasks that read one source's files in one epoch, for each of the cluster's cores, at most."""

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+)\s*(ms|millisecond|s|second|m|minute|h|hour|d|day)s?\Z")


def start(
    plan: Plan,
    spark: SparkSession,
    *,
    checkpoint: str,
    variables: Mapping[str, str] | None = None,
    partitions: int | None = None,
    trigger: str = "available-now",
    max_idle: str | None = None,
    local_dir: str | None = None,
    on_bad_row: Literal["drop", "fail"] = "drop",
    on_error: Literal["drop", "fail"] = "fail",
    on_epoch: Callable[[EpochReport], None] | None = None,
) -> StreamingQuery:
    """Starts `plan` and returns the running query.

    `checkpoint` is a folder on any file system that Spark reaches, kept for this plan alone; `partitions` None takes
    what it has, 4 at first. `trigger` is ``available-now`` (all input there is, then stop), ``once`` (the same in one
    epoch) or a duration (``10 seconds``) between epochs, for ever; with one, `max_idle` is a duration for which other
    sources wait for one that has nothing new (None: not at all). `on_epoch` is called, on a thread of its own, after
    each epoch. The session's settings are as before when this returns.

    Raises VscRuntimeError (ConfigurationError, SourceError, SinkError, CheckpointError) for what can be seen before
    the first row is read; what happens later is the query's exception.
    """
    return start_query(
        plan,
        spark,
        checkpoint,
        variables or {},
        partitions,
        trigger,
        max_idle,
        local_dir,
        RunOptions(on_bad_row, on_error),
        on_epoch,
    )[0]


def check(plan: Plan, variables: Mapping[str, str], trigger: str, max_idle: str | None = None) -> Plan:
    """Refuses what can be refused without Spark; returns the plan with its variables resolved."""
    _trigger(trigger)
    if max_idle is not None and _idle_ms(max_idle) and _ends(trigger):
        raise ConfigurationError(
            f"--max-idle {max_idle}: with the trigger {trigger} nobody waits for input that is not there yet",
            "use it with a duration as trigger, such as --trigger '10 seconds'",
        )
    resolved = resolve_plan(plan, variables)
    check_sources(resolved)
    check_sinks(resolved)
    return resolved


def start_query(
    plan: Plan,
    spark: SparkSession,
    checkpoint: str,
    variables: Mapping[str, str],
    partitions: int | None,
    trigger: str,
    max_idle: str | None,
    local_dir: str | None,
    options: RunOptions,
    on_epoch: Callable[[EpochReport], None] | None,
) -> tuple[StreamingQuery, Checkpoint, EpochWriter]:
    """`start`, for who wants to see the checkpoint and what foreachBatch last failed with."""
    resolved = check(plan, variables, trigger, max_idle)
    opened = Checkpoint.open(spark, checkpoint, plan, partitions)
    sinks = make_sinks(spark, resolved, opened.id)
    for sink in sinks:
        sink.prepare()
    if opened.fresh:
        opened.create(plan)  # not before: a topology whose sink was refused may be mended and run again
    ship(spark)
    writer = EpochWriter(opened, sinks, on_epoch, _pacer(spark, plan, opened, trigger, max_idle))
    folders = LocalFolders(None if local_dir is None else os.path.abspath(local_dir), opened.id, new_run())
    # Executors need no secrets: they get the plan as it was compiled.
    with configured(spark, query_configuration(opened.partitions)):
        frame = _pipeline(spark, plan, resolved, opened, options, folders)
        query = (
            frame.writeStream.queryName(f"{plan.name}-{opened.id[:8]}")
            .outputMode("append")
            .option("checkpointLocation", opened.files.root)
            .foreachBatch(writer)
            .trigger(**_trigger(trigger))
            .start()
        )
    return query, opened, writer


def _pipeline(
    spark: SparkSession, plan: Plan, resolved: Plan, checkpoint: Checkpoint, options: RunOptions, folders: LocalFolders
) -> DataFrame:
    stages = tuple(sorted(s.id for s in plan.stages if s.id > 0))
    lines = spark.readStream.format("text").load(checkpoint.control)
    parts = [lines.mapInArrow(broadcast(stages, checkpoint.partitions), WIRE_DDL)]
    parts += [_packed(spark, plan, node, checkpoint.partitions, options) for node in resolved.nodes if _is_source(node)]
    frame = reduce(DataFrame.union, parts)
    observe = frozenset(sink.node for sink in plan.sinks)
    for stage in stages:
        processor = StageProcessor(plan, stage, checkpoint.partitions, options, folders, observe)
        frame = frame.groupBy("slot").transformWithStateInPandas(processor, WIRE_DDL, "append", "none")
    return observed(frame)


def _pacer(spark: SparkSession, plan: Plan, checkpoint: Checkpoint, trigger: str, max_idle: str | None) -> Pacer | None:
    """Who decides which sources are waited for; None where no stage reads one."""
    if not stages_in_step(plan):
        return None
    pacer = Pacer(
        checkpoint,
        lambda: query_inputs(plan, spark, _ends(trigger)),
        lambda pace: spark.sparkContext.setLocalProperty(PROPERTY, pace),
        0.0 if max_idle is None else _idle_ms(max_idle) / 1000,
    )
    pacer.resume()
    return pacer


def _packed(spark: SparkSession, plan: Plan, node: Node, partitions: int, options: RunOptions) -> DataFrame:
    # A file is a partition of its own; where there are very many, a task reads some of them, one after the other.
    frame = source_frame(spark, node).coalesce(SOURCE_TASKS * spark.sparkContext.defaultParallelism)
    return frame.mapInArrow(Pack(plan, node.name, partitions, options), WIRE_DDL)


def _is_source(node: Node) -> bool:
    return isinstance(node.operation, Source)


def _trigger(text: str) -> dict[str, Any]:
    if text == "available-now":
        return {"availableNow": True}
    if text == "once":
        return {"once": True}
    found = _milliseconds(text)
    if found is None:
        raise ConfigurationError(
            f"{text!r} is no trigger", "give available-now, once, or a duration such as '10 seconds' or '500 ms'"
        )
    return {"processingTime": f"{found} milliseconds"}


def _ends(trigger: str) -> bool:
    """Whether a query with this trigger stops when it has read what there is."""
    return trigger in ("available-now", "once")


def _idle_ms(text: str) -> int:
    found = _milliseconds(text)
    if found is None:
        raise ConfigurationError(f"--max-idle: {text!r} is no duration", "give one such as '10 seconds' or '500 ms'")
    return found


def _milliseconds(text: str) -> int | None:
    """A duration in ms; None if the text is none."""
    match = _DURATION.match(text.strip())
    if match is None:
        return None
    unit = match.group(2)
    return int(match.group(1)) * (_UNITS["ms"] if unit in ("ms", "millisecond") else _UNITS[unit[0]])
