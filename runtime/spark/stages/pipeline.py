"""A plan as one streaming frame: what Spark runs in every micro-batch, up to foreachBatch.

The shape: each source is packed into blobs (stage 0); then for each later stage a shuffle by partition and a stateful
operator; then, if a sink needs it, a last shuffle (`delivery`).
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from vsc.plan.nodes import Plan
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.exchange.blob_files import BlobFiles
from vsc.runtime.spark.exchange.delivery import delivery
from vsc.runtime.spark.exchange.wire import WIRE_DDL
from vsc.runtime.spark.session.session import frozen_session
from vsc.runtime.spark.stages.later_stage import LaterStageTask
from vsc.runtime.spark.stages.later_stage_processor import LaterStageProcessor
from vsc.runtime.spark.stages.names import stage_name, stateful_called
from vsc.runtime.spark.stages.stage_zero import StageZeroTask, stage_zero
from vsc.runtime.spark.state.control import broadcast
from vsc.runtime.spark.state.local_folder import LocalFolders

__all__ = ["pipeline"]

SOURCE_TASKS = 16
"""Tasks that read one source's files in one epoch, for each of the cluster's cores, at most."""


def pipeline(
    spark: SparkSession,
    plan: Plan,
    ends: Ends,
    control: str,
    partitions: int,
    options: RunOptions,
    folders: LocalFolders,
    files: BlobFiles | None = None,
) -> DataFrame:
    """The rows of the wire (`WIRE_DDL`) of `plan`, whose sources are those of `ends`; `control` is the control source's
    folder."""
    # A file source writes its log as its own session says, whenever it writes: this one's settings stay.
    reading = frozen_session(spark)
    # A query that waits for idle sources asks for many epochs: what was read of the control source goes.
    lines = _of(spark, reading.readStream.format("text").option("cleanSource", "delete").load(control))
    stages = tuple(sorted(s.id for s in plan.stages if s.id > 0))
    parts = [lines.mapInArrow(broadcast(stages, partitions), WIRE_DDL)]
    # A file is a partition of its own; where there are very many, a task reads some of them, one after the other.
    tasks = SOURCE_TASKS * spark.sparkContext.defaultParallelism
    for source in ends.sources:
        rows = source.rows(reading).coalesce(tasks)
        task = StageZeroTask(plan, source.node.name, partitions, options, source.reader(reading), files)
        parts.append(stage_zero(rows, task))
    frame = reduce(DataFrame.union, parts)
    observe = frozenset(sink.node for sink in plan.sinks)
    for stage in stages:
        processor = LaterStageProcessor(LaterStageTask(plan, stage, partitions, options, folders, observe, files))
        with stateful_called(stage_name(plan, stage)):
            frame = frame.groupBy("slot").transformWithStateInPandas(processor, WIRE_DDL, "append", "none")
    if delivery(plan).last_shuffle:
        frame = frame.repartition(partitions, "slot")
    return frame


def _of(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """The same rows, moved to `spark`: a query runs in the session of its first source."""
    of_rows = java_class(spark, "org.apache.spark.sql.classic.Dataset").ofRows
    return DataFrame(of_rows(spark._jsparkSession, rows._jdf.logicalPlan()), spark)
