"""The examples' scenarios on Spark: their rows as files, cut at random into micro-batches and source partitions.

D12 orders the rows of a micro-batch by time: only cuts are made that leave the order of the steps what it is. So what
the test driver gives for the steps is what Spark has to give: the same records per key, in the same order.
"""

from __future__ import annotations

import os
import random
import zlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.epochs import EpochRow, order_epoch
from tests.runtime.spark.support import parquet_rows, run_epochs, write_json
from vsc.compiler import compile_topology
from vsc.plan import expressions
from vsc.plan.nodes import Column, Connector, Item, Node, Plan, Sink, Source
from vsc.plan.types import BIGINT, BOOLEAN
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.scenario import Scenario, load
from vsc.scenario.model import Delete, Drain, Pipe
from vsc.testing import Record, TopologyTestDriver, timestamp_column

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[4]
PARTS = 2
MOST = int(os.environ.get("VSC_SCENARIOS", "2"))
"""Of so many scenarios of an example: to start a query takes longer than all else."""
AT, GONE = "#at", "#gone"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _scenarios() -> list[Any]:
    found = []
    for path in sorted(ROOT.glob("examples/*/*.scenario.yaml")):
        for number, scenario in enumerate(load(str(path), path.read_text()).scenarios[:MOST]):
            found.append(pytest.param(scenario, id=f"{path.parent.name}-{number}"))
    return found


@pytest.mark.parametrize("scenario", _scenarios())
def test_a_scenario_gives_on_spark_what_it_gives_on_the_driver(spark: Any, tmp_path: Path, scenario: Scenario) -> None:
    chance = random.Random(zlib.crc32(scenario.name.encode()))
    partitions = chance.randint(1, 3)
    text = scenario.topology.read_text()
    plan = compile_topology(text, path=str(scenario.topology), variables=dict(scenario.variables))
    watched = sorted({expectation.node for step in scenario.steps for expectation in step.expect})
    expected = _on_the_driver(scenario, partitions, watched)
    fed, drains = _fed(scenario, plan)

    def files(number: int, epoch: list[EpochRow]) -> None:
        for node in plan.nodes:
            if isinstance(node.operation, Source):
                for part in range(PARTS):
                    rows = [row.row for row in epoch if (row.source, row.part) == (node.name, str(part))]
                    path = tmp_path / "in" / node.name / f"{part}-{number:03}.json"
                    write_json(path, rows, number * PARTS + part)

    changed = _with_files(plan, tmp_path, watched, scenario.now is not None)
    epochs: list[Callable[[], None]] = [
        partial(files, number, epoch) for number, epoch in enumerate(_cut(plan, fed, chance))
    ]
    if drains:  # an epoch of its own, of the same query: to start one takes longer
        epochs.append(lambda: Checkpoint.open(spark, str(tmp_path / "ck"), changed, partitions).request_drain())
    assert len(run_epochs(changed, spark, tmp_path / "ck", epochs, partitions=partitions, now=scenario.now)) == len(
        epochs
    )
    for name in watched:
        node = plan.node(name)
        seen = [_spark_row(node, row) for row in parquet_rows(tmp_path / "out" / name)]
        assert _by_key(seen) == _by_key([_driver_row(node, record) for record in expected[name]]), name


# ------------------------------------------------------------------------------------------------------- the driver


def _on_the_driver(scenario: Scenario, partitions: int, watched: list[str]) -> dict[str, list[Record]]:
    with TopologyTestDriver(
        scenario.topology, variables=scenario.variables, partitions=partitions, now=scenario.now
    ) as driver:
        for step in scenario.steps:
            match step.action:
                case Pipe(source, rows, timestamp):
                    for row in rows:
                        driver.pipe(source, row, timestamp=timestamp)
                case Delete(source, keys, timestamp):
                    for key in keys:
                        driver.delete(source, key, timestamp=timestamp)
                case Drain():
                    driver.drain()
        return {name: driver.read(name) for name in watched}


# ------------------------------------------------------------------------------------------------------------ input


@dataclass(frozen=True)
class Fed:
    """A row of a source: as JSON has it, and its event time."""

    source: str
    row: dict[str, Any]
    time: int


def _fed(scenario: Scenario, plan: Plan) -> tuple[list[Fed], bool]:
    """The rows of all steps, and whether a drain ends them."""
    found: list[Fed] = []
    for step in scenario.steps:
        match step.action:
            case Drain():
                if step is not scenario.steps[-1]:
                    pytest.skip("a drain before the end cannot be put into files")
                return found, True
            case Delete(name, keys, timestamp):
                if plan.node(name).kind == "stream":
                    pytest.skip("no file holds a record without value")
                found += [Fed(name, {**_json(key), AT: timestamp, GONE: True}, timestamp) for key in keys]
            case Pipe(name, rows, timestamp):
                source = plan.node(name).operation
                assert isinstance(source, Source)
                column = timestamp_column(source)
                for row in rows:
                    time = timestamp if column is None or column not in row else _milliseconds(row[column])
                    assert time is not None
                    found.append(Fed(name, {**_json(row), AT: time, GONE: False}, time))
    return found, False


def _milliseconds(value: Any) -> int:
    return value if isinstance(value, int) else (value - EPOCH) // timedelta(milliseconds=1)


def _json(value: Any) -> Any:
    match value:
        case dict():
            return {name: _json(item) for name, item in value.items()}
        case list():
            return [_json(item) for item in value]
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return value


def _cut(plan: Plan, fed: list[Fed], chance: random.Random) -> list[list[EpochRow]]:
    """The rows cut into epochs, each row in one of its source's files of that epoch, in the order of the steps."""
    epochs: list[list[EpochRow]] = [[]]
    for one in fed:
        fitting = [
            longer for part in range(PARTS) if order_epoch(plan, longer := _with(epochs[-1], one, part)) == longer
        ]
        if fitting and chance.random() < 0.85:
            epochs[-1] = chance.choice(fitting)
        else:
            epochs.append(_with([], one, chance.randrange(PARTS)))
    return epochs


def _with(epoch: list[EpochRow], one: Fed, part: int) -> list[EpochRow]:
    offset = sum(1 for row in epoch if (row.source, row.part) == (one.source, str(part)))
    return [*epoch, EpochRow(one.source, str(part), offset, one.row, one.time)]


def _with_files(plan: Plan, folder: Path, watched: list[str], bounded: bool) -> Plan:
    """The plan with files in the place of its connectors; event time and tombstones are columns of their own.

    Unless it is `bounded`, no event time is too far ahead of the machine's clock.
    """
    nodes = tuple(
        _from_files(node, folder, bounded) if isinstance(node.operation, Source) else node for node in plan.nodes
    )
    sinks = []
    for number, name in enumerate(watched):
        options: list[tuple[str, Any]] = [("path", str(folder / "out" / name)), ("format", "parquet")]
        if plan.node(name).kind == "stream":
            options.append(("with_timestamp", True))
        sinks.append(Sink(f"sink-{number}", name, Connector("files", tuple(options)), 1))
    return replace(plan, nodes=nodes, sinks=tuple(sinks), variables=())


def _from_files(node: Node, folder: Path, bounded: bool) -> Node:
    source = node.operation
    assert isinstance(source, Source)
    options = (("path", str(folder / "in" / node.name)), ("format", "json"))
    gone = expressions.Column(0, GONE, BOOLEAN)
    if source.delete_when is not None:
        gone = expressions.Call("or", (source.delete_when.expr, gone), BOOLEAN)  # type: ignore[assignment]
    changed = replace(
        source,
        connector=Connector("files", options),
        max_ahead=source.max_ahead if bounded else None,
        columns=(*source.columns, Column(AT, BIGINT), Column(GONE, BOOLEAN)),
        timestamp=Item("timestamp", expressions.Column(0, AT, BIGINT), AT),
        delete_when=Item("delete when", gone, GONE) if node.kind == "table" else None,
    )
    return replace(node, operation=changed)


# ---------------------------------------------------------------------------------------------------------- results


def _driver_row(node: Node, record: Record) -> tuple[Any, ...]:
    value = record.value
    if value is None and node.kind == "stream":
        value = dict.fromkeys(c.name for c in node.schema.value)
    return tuple(record.key.values()), (record.timestamp, value)


def _spark_row(node: Node, row: dict[str, Any]) -> tuple[Any, ...]:
    value = None if row.get("_change") == "delete" else {c.name: row[c.name] for c in node.schema.value}
    return tuple(row[c.name] for c in node.schema.key), (row["_timestamp"], value)


def _by_key(records: list[tuple[Any, ...]]) -> dict[Any, list[Any]]:
    found = defaultdict(list)
    for key, rest in records:
        found[key].append(rest)
    return dict(found)
