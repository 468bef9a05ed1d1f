"""Complete histories on Spark: what the test driver sends, after restarts and an upgrade to other partitions.

Set ``VSC_SPARK_HISTORIES`` to run more shapes (``30``) or others (``100:130``) than the usual ones, ten seeds of each.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.histories.law import Case
from tests.histories.shapes import SHAPES
from tests.oracle import by_key
from tests.oracle.epochs import EpochRow, order_epoch
from tests.random_topologies.seeds import seeds
from tests.random_topologies.test_spark import driver_row
from tests.runtime.spark.files import by_age, sink_records, write_rows
from tests.runtime.spark.support import run_once
from vsc.compiler import compile_topology
from vsc.runtime.spark.upgrade import Upgrade, prepare, upgrade
from vsc.testing import TopologyTestDriver

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

EPOCHS = 4
USUAL = ["results of results", "left join by a foreign key", "lists"]
ON_SPARK = [*USUAL, *(shape for shape in SHAPES if shape not in USUAL)]
TOGETHER = 10


@pytest.mark.parametrize("number", seeds("VSC_SPARK_HISTORIES", len(USUAL)))
def test_spark_sends_what_the_driver_sends(spark: Any, tmp_path: Path, number: int) -> None:
    shape = ON_SPARK[number % len(ON_SPARK)]
    case = Case.of(range(1000 + number * TOGETHER, 1000 + (number + 1) * TOGETHER), shape)
    text = case.text
    for name in sorted(SHAPES[shape].reads):
        files = f"table {name} (k string, f string, n bigint, at bigint, gone boolean) from files "
        text = text.replace(f"{files[:-6]}memory ()", f"{files}(path = '${{in}}/{name}', format = 'json')")
    for name in SHAPES[shape].complete:
        text = text.replace(
            f"sink {name} to memory ()", f"sink {name} to files (path = '${{out}}/{name}', format = 'parquet')"
        )
    plan = compile_topology(text, path="t.vdsl")
    rows = [row for epoch in case.epochs for row in epoch]
    size = -(-len(rows) // EPOCHS)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    local, checkpoint = tmp_path / "local", tmp_path / "ck"
    expected: dict[str, list[Any]] = {name: [] for name in SHAPES[shape].complete}
    for name in SHAPES[shape].reads:
        (tmp_path / "in" / name).mkdir(parents=True)
    with TopologyTestDriver(text, variables={"in": "-", "out": "-"}, on_error="drop") as driver:
        for turn in range(EPOCHS):
            epoch = [
                EpochRow(name, "", offset, row, row["at"])
                for offset, (name, row) in enumerate(rows[turn * size : (turn + 1) * size])
            ]
            if turn == 2:
                checkpoint, before = tmp_path / "ck-moved", checkpoint
                upgrade(prepare(Upgrade(plan, str(before), str(checkpoint), variables, 3)), spark, lambda line: None)
                shutil.rmtree(local, ignore_errors=True)
            write_rows(plan, tmp_path / "in", epoch, turn, dict.fromkeys(SHAPES[shape].reads, "json"))
            partitions = 2 if turn < 2 else 3
            run_once(
                plan, spark, checkpoint, variables=variables, partitions=partitions, local_dir=str(local),
                on_error="drop",
            )  # fmt: skip
            with driver.batch():
                for row in order_epoch(plan, epoch):
                    driver.pipe(row.source, row.row)
        for name, sent in expected.items():
            sent += [driver_row(plan.node(name), record) for record in driver.read(name)]
    for name, wanted in expected.items():
        assert wanted
        assert by_key(sink_records(tmp_path / "out" / name, plan.node(name), by_age)) == by_key(wanted), name
