"""The records of a key reach every sink in the order of D12, wherever they were computed and however Spark sorts.

What is expected comes from the test driver, fed with the rows of each epoch in D12's order.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.epochs import EpochRow, order_epoch
from tests.runtime.spark.support import compiled, parquet_rows, run_epochs, write_json
from vsc.plan import Plan
from vsc.testing import TopologyTestDriver

pytestmark = pytest.mark.spark

SOURCES = """
stream orders (id bigint, currency string, account string, at bigint, pad string)
from files (path = '${in}/orders', format = 'json') timestamp at;
stream returns (id bigint, currency string, account string, at bigint, pad string)
from files (path = '${in}/returns', format = 'json') timestamp at;
table rates (currency string, rate bigint, at bigint)
from files (path = '${in}/rates', format = 'json') key currency timestamp at;
"""
STATELESS = """
stream both = merge orders, returns;
stream by_account = rekey both by account as who;
stream doubled = map by_account select id * 2 as twice, at as at;
stream unread = filter returns where id > 3;
"""
LAST_STAGE = """
stream priced = left join orders with rates on currency select id, account, orders.at as at, rate;
stream by_account = rekey priced by account as who;
"""
LATER_STAGE = """
stream direct = rekey orders by account as who;
stream priced = left join orders with rates on currency select id, account, orders.at as at, rate;
stream by_account = rekey priced by account as who;
table sums = aggregate by_account group by who select count(*) as n, sum(id) as ids;
stream changes = to_stream sums;
stream by_parity = rekey changes by n % 2 as parity;
table hours = aggregate priced group by account window tumbling (size = 20 ms) emit final select count(*) as n;
"""


def topology(nodes: str, sinks: list[str]) -> str:
    tables = {"sums", "hours"}  # their rows always have their time
    return (
        SOURCES
        + nodes
        + "".join(
            f"sink {name} to files (path = '${{out}}/{name}', format = 'parquet'"
            f"{'' if name in tables else ', with_timestamp = true'});\n"
            for name in sinks
        )
    )


class History:
    """Epochs of files; those of one epoch overlap in time."""

    def __init__(self, seed: int, pad: int = 0, rows: int = 60) -> None:
        chance = random.Random(seed)
        self.epochs: list[dict[str, list[dict[str, Any]]]] = []
        number = iter(range(10**6))

        def row(source: str, at: int) -> dict[str, Any]:
            if source == "rates":
                return {"currency": chance.choice("xyz"), "rate": chance.randint(1, 9), "at": at}
            account, pads = chance.choice("abcd"), chance.randbytes(pad // 2).hex()
            return {"id": next(number), "currency": chance.choice("xyz"), "account": account, "at": at, "pad": pads}

        for epoch in range(2):
            files: dict[str, list[dict[str, Any]]] = {}
            for source, count in (("orders", 3), ("returns", 2), ("rates", 2)):
                for file in range(count):
                    times = sorted(chance.randint(100 * epoch, 100 * epoch + 99) for _ in range(rows))
                    times = [max(0, t - chance.choice([0, 0, 0, 30])) for t in times]
                    files[f"{source}/{epoch}{file}.json"] = [row(source, at) for at in times]
            self.epochs.append(files)

    def write(self, folder: Path, epoch: int) -> None:
        for number, (path, rows) in enumerate(self.epochs[epoch].items()):
            write_json(folder / path, rows, 100 * epoch + number)

    def ordered(self, plan: Plan, epoch: int) -> list[EpochRow]:
        """The rows of an epoch as the driver has to be fed."""
        return order_epoch(
            plan,
            [
                EpochRow(path.split("/")[0], path, offset, row, row["at"])
                for path, rows in self.epochs[epoch].items()
                for offset, row in enumerate(rows)
                if any(node.name == path.split("/")[0] for node in plan.nodes)
            ],
        )


@pytest.fixture
def spilling(spark: Any) -> Iterator[None]:
    """Spark's sorts write to disk whatever is more than a few rows."""
    conf, name = spark.sparkContext._jsc.sc().conf(), "spark.shuffle.spill.numElementsForceSpillThreshold"
    conf.set(name, "3")
    yield
    conf.remove(name)


def by_key(plan: Plan, sink: str, rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    """The rows of each key, in their order."""
    schema, found = plan.node(sink).schema, defaultdict(list)
    others = [*(c.name for c in schema.value), "_timestamp"]
    for row in rows:
        found[tuple(row[c.name] for c in schema.key)].append(tuple(row.get(name) for name in others))
    return dict(found)


def driven(text: str, history: History, sinks: list[str], partitions: int) -> dict[str, list[dict[str, Any]]]:
    """What the test driver gives, as rows of each sink."""
    plan, variables = compiled(text), {"in": "-", "out": "-"}
    with TopologyTestDriver(text, variables=variables, partitions=partitions) as driver:
        for epoch in range(len(history.epochs)):
            for row in history.ordered(plan, epoch):
                driver.pipe(row.source, row.row)
        return {
            sink: [{**r.key, **(r.value or {}), "_timestamp": r.timestamp} for r in driver.read(sink)] for sink in sinks
        }


CASES = {
    "stateless": (STATELESS, ["by_account", "doubled", "both"]),
    "last stage": (LAST_STAGE, ["by_account", "priced"]),
    "only one sink": (LAST_STAGE, ["by_account"]),
    "later stage": (LATER_STAGE, ["direct", "priced", "by_account", "sums", "by_parity", "hours"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_key_reaches_a_sink_in_order(spark: Any, tmp_path: Path, case: str) -> None:
    nodes, sinks = CASES[case]
    compare_with_the_driver(spark, tmp_path, topology(nodes, sinks), sinks, History(7), 3)


def test_a_key_reaches_a_sink_in_order_when_sorts_spill(spark: Any, tmp_path: Path, spilling: None) -> None:
    nodes, sinks = CASES["later stage"]
    compare_with_the_driver(spark, tmp_path, topology(nodes, sinks), sinks, History(8, pad=30_000), 1)


def compare_with_the_driver(
    spark: Any, tmp_path: Path, text: str, sinks: list[str], history: History, partitions: int
) -> None:
    plan = compiled(text)
    reports = run_epochs(
        plan, spark, tmp_path / "ck",
        [partial(history.write, tmp_path / "in", epoch) for epoch in range(2)],
        variables={"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}, partitions=partitions,
    )  # fmt: skip
    assert len(reports) == 2
    expected = driven(text, history, sinks, partitions)
    for sink in sinks:
        if not plan.node(sink).schema.key:
            continue
        found = parquet_rows(tmp_path / "out" / sink)
        assert len(found) > 20
        assert by_key(plan, sink, found) == by_key(plan, sink, expected[sink]), sink
