"""Random topologies on Spark: what the test driver gives on one partition, fed in the order that D12 gives (D25).

Each epoch of a history is one run of the query: its rows as files (a file is a source partition), then a restart, in
half of the cases without what was on the local disk, and sometimes an upgrade to another number of partitions. Set
``VSC_SPARK_TOPOLOGIES`` to run more (``100``) or others (``300:330``) than the usual few; the number is the seed.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import by_key
from tests.oracle.epochs import order_epoch
from tests.random_topologies.records import History, RecordSizes, history
from tests.random_topologies.seeds import seeds
from tests.random_topologies.shapes import Generated, SourceShape
from tests.random_topologies.topology import Sizes, generate
from tests.runtime.spark.files import by_age, sink_records, write_rows
from tests.runtime.spark.support import run_once
from vsc.compiler import compile_topology
from vsc.plan.nodes import Node, Plan
from vsc.runtime.spark.upgrade import Upgrade, prepare, upgrade
from vsc.testing import Record, TopologyTestDriver

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

SIZES = (
    Sizes(derived=(2, 6), bounded=False),  # a bound in records is a partition's own
    Sizes(derived=(2, 6), bounded=False),
    Sizes(derived=(2, 6), bounded=False, complete=5),
)
RECORDS = RecordSizes(epochs=(2, 3), rows=(0, 12))
Rows = list[tuple[Any, ...]]


@pytest.mark.parametrize("seed", seeds("VSC_SPARK_TOPOLOGIES", 3))
def test_spark_gives_what_the_driver_gives(spark: Any, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    topology = generate(rng, SIZES[seed % len(SIZES)])
    formats = {source.name: rng.choice(("json", "parquet")) for source in topology.sources}
    text = text_of(topology, formats)
    plan = compile_topology(text, path=f"{seed}.vdsl")
    epochs = history(rng, topology, RECORDS)
    partitions = rng.randint(1, 4)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    local, checkpoint = tmp_path / "local", tmp_path / "ck"
    for source in topology.sources:
        (tmp_path / "in" / source.name).mkdir(parents=True)
    for number, epoch in enumerate(epochs):
        if number and rng.random() < 0.3:
            checkpoint, before, partitions = tmp_path / f"ck-{number}", checkpoint, rng.randint(1, 4)
            job = Upgrade(plan, str(before), str(checkpoint), variables, partitions)
            upgrade(prepare(job), spark, lambda line: None)
        write_rows(plan, tmp_path / "in", epoch, number, formats)
        run_once(
            plan, spark, checkpoint, variables=variables, partitions=partitions, local_dir=str(local),
            on_error="drop",
        )  # fmt: skip
        if rng.random() < 0.5:
            shutil.rmtree(local, ignore_errors=True)
    expected = driven(text, plan, epochs)
    for number, node in enumerate(topology.sinks):
        found = sink_records(tmp_path / "out" / str(number), plan.node(node), by_age)
        wanted = expected[node]
        if node in plan.stages[0].emits and not plan.node(node).schema.key:  # in the order of its source partitions
            assert Counter(found) == Counter(wanted), node
            continue
        assert by_key(found) == by_key(wanted), node


def text_of(topology: Generated, formats: dict[str, str]) -> str:
    def source(one: SourceShape) -> str:
        return f"files (path = '${{in}}/{one.name}', format = '{formats[one.name]}')"

    def sink(number: int, node: str) -> str:
        time = ", with_timestamp = true" if node[0] in "sx" else ""
        return f"files (path = '${{out}}/{number}', format = 'parquet'{time})"

    return topology.text(source, sink)


def driven(text: str, plan: Plan, epochs: History) -> dict[str, Rows]:
    """What the driver gives at each sink, with one partition."""
    variables = {"in": "in", "out": "out"}
    with TopologyTestDriver(text, variables=variables, on_error="drop") as driver:
        for epoch in epochs:
            for row in order_epoch(plan, epoch):
                driver.pipe(row.source, row.row)
        nodes = {plan.node(sink.node) for sink in plan.sinks}
        return {node.name: [driver_row(node, record) for record in driver.read(node.name)] for node in nodes}


def driver_row(node: Node, record: Record) -> tuple[Any, ...]:
    """A record as a sink's file holds it: (key, event time, whether it is there, other columns), as text."""
    value: Sequence[Any] = [None] * len(node.schema.value) if record.value is None else list(record.value.values())
    present = record.value is not None or node.kind == "stream"
    return repr(tuple(record.key.values())), record.timestamp, present, repr(tuple(value))
