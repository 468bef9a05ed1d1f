"""Plans without state run in Spark SQL itself: no Python worker sees a row of them.

The query hands the rows of its sources to foreachBatch as they are. There each node becomes columns and filters of
Spark SQL; the rows for each sink are first counted, which finds whatever is bad or fails, and then written. As soon as
an expression fails, or a bad row is to stop the run, Python does the whole epoch instead: it knows which record it was
and what the options say. The decision is `docs/decisions/0009`.

Guarantees: the rows, counters and errors are those of stage 0 in Python; the rows of a source partition stay in their
order. Not for plans with state or tables: see `runs_in_sql`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vsc.plan.nodes import Explode, Filter, Item, Map, Merge, Node, Operation, Plan, Rekey, Source
from vsc.runtime.expressions import exact_in_spark, has_map
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.spark.counters import EpochReport
from vsc.runtime.spark.pack import Pack, pack
from vsc.runtime.spark.sources import quoted
from vsc.runtime.spark.sql_nodes import Counts, NodeFrames
from vsc.runtime.spark.sql_prefix import AT, VALUED
from vsc.runtime.spark.unpack import TIMESTAMP
from vsc.runtime.values import arrow_type

__all__ = ["SqlEpoch", "failed_on_a_row", "packed", "runs_in_sql", "source_rows", "tagged"]

SOURCE = "_vsc_source"
"""Column of the query's frame: the number of the source among the plan's sources; null for the control source."""

# SQLSTATE class 22 is data exceptions, P0001 what `raise_error` raises; some overflows have no class in any version.
_ROW_FAILURE = re.compile(r"SQLSTATE: (?:22|P0001)|[Oo]verflow|\[DIVIDE_BY_ZERO")


def runs_in_sql(plan: Plan) -> bool:
    """Whether all of the plan is stateless, and means in Spark SQL what it means here.

    It depends on the plan alone: a checkpoint's sources are the same for its life.
    """
    read = {name for node in plan.nodes for name in node.inputs} | {sink.node for sink in plan.sinks}
    return len(plan.stages) == 1 and all(node.name in read and _possible(node) for node in plan.nodes)


def _possible(node: Node) -> bool:
    if node.kind != "stream" or any(has_map(c.type) for c in (*node.schema.key, *node.schema.value)):
        return False
    if isinstance(node.operation, Source) and node.operation.connector.kind not in VALUED:
        return False
    return all(exact_in_spark(item.expr) for item in _items(node.operation))


def _items(operation: Operation) -> Sequence[Item]:
    match operation:
        case Source(timestamp=timestamp):
            return () if timestamp is None else (timestamp,)
        case Filter(predicate):
            return (predicate,)
        case Map(items) | Rekey(items):
            return items
        case Explode(item):
            return (item,)
        case Merge():
            return ()
        case _:
            raise ValueError(f"{operation.op} is not stateless")


def _sources(plan: Plan) -> list[Node]:
    return [node for node in plan.nodes if isinstance(node.operation, Source)]


# ------------------------------------------------------------------------------------------------- the query's frame


def tagged(lines: DataFrame, frames: Sequence[DataFrame]) -> DataFrame:
    """One frame of the rows of all sources, each in a struct of its own; `lines` is the control source."""
    parts = [lines.select(F.lit(None).cast("int").alias(SOURCE))]
    parts += [f.select(F.lit(i).alias(SOURCE), F.struct("*").alias(f"_vsc_{i}")) for i, f in enumerate(frames)]
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)


def source_rows(plan: Plan, batch: DataFrame, source: str) -> DataFrame:
    """The rows of one source in an epoch, as its connector gave them."""
    number = [node.name for node in _sources(plan)].index(source)
    return batch.where(F.col(SOURCE) == number).select(f"_vsc_{number}.*")


def packed(plan: Plan, batch: DataFrame, partitions: int, options: RunOptions) -> DataFrame:
    """What Python workers make of an epoch: blobs for the sinks, and counters."""
    parts = [
        pack(source_rows(plan, batch, node.name), Pack(plan, node.name, partitions, options)) for node in _sources(plan)
    ]
    return reduce(DataFrame.union, parts)


def failed_on_a_row(error: Exception) -> bool:
    """Whether Spark failed since a value of a row has no result, or a row is bad; not for whatever else went wrong."""
    return _ROW_FAILURE.search(str(error)) is not None


# -------------------------------------------------------------------------------------------------------- an epoch


@dataclass(frozen=True, slots=True)
class SqlEpoch:
    """One epoch in Spark SQL; an `Output`."""

    plan: Plan
    batch: DataFrame
    options: RunOptions

    def counted(self, epoch: int) -> EpochReport:
        """Computes everything once: raises what Spark raises where an expression fails."""
        report, counts = EpochReport(epoch), Counts()
        for name in dict.fromkeys(sink.node for sink in self.plan.sinks):
            sinks = [sink for sink in self.plan.sinks if sink.node == name]
            digest = any(sink.connector.kind == "files" for sink in sinks)
            rows, value = counts.of(self._frames(counts), self.plan.node(name), digest)
            for sink in sinks:
                report.written[sink.id] = rows
                if sink.connector.kind == "files":
                    report.digests[sink.id] = value
        report.read.update(counts.read)
        report.metrics.merge(counts.metrics)
        return report

    def rows(self, sink: str, node: Node, timestamp: bool = False) -> DataFrame:
        """See `Output`."""
        columns = [F.col(quoted(c.name)) for c in (*node.schema.key, *node.schema.value)]
        return self._frames(None).of(node.name).select(*columns, *[F.col(AT).alias(TIMESTAMP)] * timestamp)

    def records(self, sink: str, node: Node) -> list[Batch]:
        """See `Output`; in the order of source partitions, and of the rows in them."""
        table = self._frames(None).of(node.name).toArrow().combine_chunks()
        if not table.num_rows:
            return []
        types = [c.type for c in (*node.schema.key, *node.schema.value)]
        arrays = [table.column(i).combine_chunks().cast(arrow_type(t)) for i, t in enumerate(types)]
        count, keys = table.num_rows, len(node.schema.key)
        nothing = np.zeros(count, dtype=np.int64)
        order = Order(nothing, nothing.astype(np.int32), np.arange(count), np.zeros((count, 0), dtype=np.int64))
        times = table.column(len(types)).to_numpy()
        present = np.ones(count, dtype=np.bool_)
        origins = (Origin(node.name, 0, ""),)
        return [Batch(node.schema, origins, order, times, present, tuple(arrays[:keys]), tuple(arrays[keys:]))]

    def _frames(self, counts: Counts | None) -> NodeFrames:
        return NodeFrames(
            self.plan, partial(source_rows, self.plan, self.batch), self.options.on_bad_row == "fail", counts
        )
