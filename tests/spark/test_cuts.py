"""Records cut at random into micro-batches, with random partition counts and a restart in the middle: the result is
that of the test driver, fed in the order that D12 gives for those cuts."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.local import EpochRow, order_epoch
from vsc.testing import TopologyTestDriver

pytestmark = pytest.mark.spark

TOPOLOGY = """
stream orders (id bigint, currency string, account string, at bigint)
from files (path = '${in}/orders', format = 'json', 'maxFilesPerTrigger' = '${orders}')
timestamp at;

table rates (currency string, rate bigint, at bigint, gone boolean)
from files (path = '${in}/rates', format = 'json', 'maxFilesPerTrigger' = '${rates}')
key currency timestamp at delete when gone
materialize versioned (retention = 40 ms, segment = 7 ms);

table accounts (account string, owner string, at bigint)
from files (path = '${in}/accounts', format = 'json', 'maxFilesPerTrigger' = '${accounts}')
key account timestamp at;

stream priced = left join orders with rates on currency grace 5 ms select id, account, orders.at as at, rate;
stream named = left join priced with accounts on account select id, currency, rate, owner;

sink priced to files (path = '${out}/priced', format = 'parquet', with_timestamp = true);
sink named to files (path = '${out}/named', format = 'parquet', with_timestamp = true);
sink rates to files (path = '${out}/rates', format = 'parquet');
"""
SOURCES = ("rates", "accounts", "orders")


class Inputs:
    """Random files for each source, and how many of them an epoch takes."""

    def __init__(self, seed: int) -> None:
        chance = self.chance = random.Random(seed)
        self.numbers = iter(range(1_000_000))
        self.per_trigger = {name: chance.randint(1, 3) for name in SOURCES}
        self.files = {name: [self.rows(name) for _ in range(chance.randint(2, 5))] for name in SOURCES}
        # Names do not follow the order of arrival: the order of an epoch is by name, that of epochs by time.
        self.names = {name: chance.sample(range(100), len(self.files[name])) for name in SOURCES}

    def rows(self, source: str) -> list[dict[str, Any]]:
        chance = self.chance
        rows: list[dict[str, Any]] = []
        for _ in range(chance.choice((0, 1, 3, 12))):
            at = chance.randint(0, 100)
            number = next(self.numbers)
            if source == "orders":
                rows.append({"id": number, "currency": chance.choice("abc"), "account": chance.choice("xyz"), "at": at})
            elif source == "rates":
                rows.append({"currency": chance.choice("abc"), "rate": number, "at": at, "gone": chance.random() < 0.2})
            else:
                rows.append({"account": chance.choice("xyz"), "owner": f"o{number}", "at": at})
        return rows

    def path(self, source: str, file: int) -> str:
        return f"{source}/f{self.names[source][file]:02}.json"


@pytest.mark.parametrize("seed", range(2))
def test_every_cut_gives_what_the_test_driver_gives(spark: Any, tmp_path: Path, seed: int) -> None:
    inputs = Inputs(seed)
    plan = compiled(TOPOLOGY)
    partitions = random.Random(seed).randint(1, 3)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    variables |= {name: str(n) for name, n in inputs.per_trigger.items()}
    # Two runs: the second one finds some new files, and in half of the cases nothing on the local disk.
    halves = {name: inputs.chance.randint(0, len(inputs.files[name])) for name in SOURCES}
    runs = [{n: range(halves[n]) for n in SOURCES}, {n: range(halves[n], len(inputs.files[n])) for n in SOURCES}]
    local = tmp_path / "local"
    expected: dict[str, list[tuple[Any, ...]]] = {"priced": [], "named": [], "rates": []}
    with TopologyTestDriver(TOPOLOGY, variables=variables, partitions=partitions) as driver:
        for run in runs:
            for source in SOURCES:
                (tmp_path / "in" / source).mkdir(parents=True, exist_ok=True)
                for file in run[source]:
                    write_json(tmp_path / "in" / inputs.path(source, file), inputs.files[source][file], file)
            run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=partitions, local_dir=str(local))
            if seed % 2:
                shutil.rmtree(local, ignore_errors=True)
            for epoch in epochs(inputs, run):
                for row in order_epoch(plan, epoch):
                    driver.pipe(row.source, row.row)
            for node, found in expected.items():
                found.extend(driver_row(node, record) for record in driver.read(node))
    for node, records in expected.items():
        found = [spark_row(row) for row in parquet_rows(tmp_path / "out" / node)]
        assert by_key(found) == by_key(records), node


def epochs(inputs: Inputs, run: dict[str, range]) -> list[list[EpochRow]]:
    """The rows of each epoch of a run, as Spark cuts them: the oldest files first, so many of each source."""
    found: list[list[EpochRow]] = []
    steps = {n: [list(run[n])[i : i + k] for i in range(0, len(run[n]), k)] for n, k in inputs.per_trigger.items()}
    for number in range(max(map(len, steps.values()))):
        rows = []
        for source in SOURCES:
            for file in steps[source][number] if number < len(steps[source]) else ():
                for offset, row in enumerate(inputs.files[source][file]):
                    rows.append(EpochRow(source, inputs.path(source, file), offset, row, row["at"]))
        found.append(rows)
    return found


def driver_row(node: str, record: Any) -> tuple[Any, ...]:
    """A record of the driver as (key, timestamp, sorted other columns)."""
    (key,) = record.key.values()
    value = record.value
    if node == "rates":
        value = {"rate": None, "at": None, "gone": None} if value is None else value
        value = {**value, "_change": "delete" if record.value is None else "upsert"}
    return key, record.timestamp, tuple(sorted(value.items()))


def spark_row(row: dict[str, Any]) -> tuple[Any, ...]:
    """A row of a sink's file, the same way: its key is its first column."""
    (_, key), *rest = row.items()
    value = dict(rest)
    return key, value.pop("_timestamp"), tuple(sorted(value.items()))


def by_key(records: list[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    """The records of each key, in their order: between keys there is none to keep."""
    found = defaultdict(list)
    for key, *rest in records:
        found[key].append(tuple(rest))
    return dict(found)
