"""What a run has to say of its sources and sinks beside its numbers: what is not there, and what could not be used.

Guarantees: a source none of whose rows could be used is an error, at the end of a run; the other things are one line
each, as there may be good reasons for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession

from vsc.plan.nodes import Node, Plan, Source
from vsc.runtime.errors import UnusableInputError
from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.spark.hadoop import Files
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.progress_text import counted

__all__ = ["check_usable", "empty_sources"]

_BY_THE_TABLE = {Dropped.EXPIRED.value, Dropped.OUT_OF_ORDER.value}
"""Why a table refuses rows that are good in themselves; all other reasons at a source are of the row alone."""


def empty_sources(spark: SparkSession, resolved: Plan, read: Mapping[str, int]) -> Iterator[str]:
    """A line for each files source that has no file; only of those that brought nothing is it asked."""
    for node in _sources(resolved):
        options = Options.of_source(node)
        if options.connector.kind == "files" and not read.get(node.name):
            path = options.text("path")
            if not Files(spark, path).has_data():
                yield f"{options.place} has nothing to read: there are no files in {path!r}"


def check_usable(plan: Plan, read: Mapping[str, int], metrics: Metrics) -> None:
    """UnusableInputError for the first source of which rows were read, and all of them dropped."""
    dropped = metrics.as_dict()[Group.DROPPED_RECORDS.value]
    for node in _sources(plan):
        found = dropped.get(node.name)
        reasons = {} if not isinstance(found, dict) else {r: n for r, n in found.items() if r not in _BY_THE_TABLE}
        rows = read.get(node.name, 0)
        if rows and sum(reasons.values()) >= rows:
            why = ", ".join(f"{n:,} {reason}" for reason, n in sorted(reasons.items(), key=lambda of: -of[1]))
            all_of = "the only row" if rows == 1 else f"all {counted(rows, 'row')}"
            raise UnusableInputError(
                f"{Options.of_source(node).place}: {all_of} that this run read of it had to be dropped ({why})",
                "compare its columns, key, timestamp, format and options with its files; then run with a new "
                "checkpoint, as this one has read them. --on-bad-row fail names the first bad row",
            )


def _sources(plan: Plan) -> Iterator[Node]:
    return (node for node in plan.nodes if isinstance(node.operation, Source))
