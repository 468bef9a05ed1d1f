"""What `pack` makes of the files of a source, in this process and without a query: with its prefix, and without."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vsc.plan.nodes import Plan
from vsc.runtime.operators.task import RunOptions
from vsc.runtime.records import Batch
from vsc.runtime.spark.counters import EpochReport
from vsc.runtime.spark.options import resolve_plan
from vsc.runtime.spark.pack import Pack
from vsc.runtime.spark.sources import source_frame
from vsc.runtime.spark.sql_nodes import prefixed
from vsc.runtime.spark.sql_prefix import Prefix
from vsc.runtime.spark.wire import CONTROL, SINK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Packed", "packed", "rows_of"]


@dataclass(frozen=True)
class Packed:
    """The records on their way, by (stage, node) in the order in which they came, each as text; and the counters."""

    records: dict[tuple[int, str], list[str]]
    report: EpochReport


def rows_of(
    spark: SparkSession, plan: Plan, source: str, variables: dict[str, str], prefix: Prefix | None
) -> DataFrame:
    """What of a source's files reaches `pack`, read at once."""
    node = resolve_plan(plan, variables).node(source)
    session: Any = SimpleNamespace(readStream=spark.read, _jvm=spark._jvm, _jsc=spark._jsc)
    frame = source_frame(session, node).coalesce(1)
    return frame if prefix is None else prefixed(plan.node(source), frame, prefix)


def packed(
    spark: SparkSession, plan: Plan, source: str, variables: dict[str, str], prefix: Prefix | None, options: RunOptions
) -> Packed:
    """What the rows of a source become on two partitions."""
    frame = rows_of(spark, plan, source, variables, prefix)
    # Small batches, as Spark hands them in: what is carried over from one to the next is looked at as well.
    rows = frame.toArrow().to_batches(max_chunksize=3)
    found: dict[tuple[int, str], list[str]] = {}
    control: list[bytes] = []
    for batch in Pack(plan, source, 2, options, prefix)(rows):
        for row in batch.to_pylist():
            if row["dest"] == CONTROL:
                control.append(row["payload"])
                continue
            name = next(s.node for s in plan.sinks if s.id == row["port"]) if row["dest"] == SINK else row["port"]
            records = Batch.from_ipc(row["payload"], plan.node(name).schema)
            found.setdefault((row["dest"], f"{row['port']} {row['partition']}"), []).extend(shown(records))
    return Packed(found, EpochReport.gather(0, control))


def shown(batch: Batch) -> list[str]:
    order = batch.order
    origins = [batch.origins[i] for i in order.origin.tolist()]
    system = pa.table({"time": order.time, "offset": order.offset, "at": batch.timestamps, "there": batch.present})
    rows = zip(system.to_pylist(), origins, order.path.tolist(), strict=True)
    columns = [c.to_pylist() for c in batch.columns]
    values = list(zip(*columns, strict=True)) if columns else [()] * len(batch)
    return [repr((*row, value)) for row, value in zip(rows, values, strict=True)]
