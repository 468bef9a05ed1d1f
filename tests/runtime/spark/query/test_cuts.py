"""A history in files, read in epochs bounded at random by files or bytes, with crashes, restarts, any partition count.

Where the files of one source do not overlap in time, the result is that of the test driver fed with everything in one
D12 order: no bound and no crash shows. Where they do, a later file's earlier rows are late, as the bound makes them:
then the driver is fed in the order in which a small model of the waiting lets the rows go on.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.oracle.epochs import EpochRow, order_epoch
from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.plan.nodes import Plan, Source
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.testing import TopologyTestDriver

pytestmark = [pytest.mark.spark, pytest.mark.release, pytest.mark.long]

TOPOLOGY = """
stream orders (id bigint, currency string, account string, at bigint)
from files (path = '${in}/orders', format = 'json', #orders)
timestamp at;

table rates (currency string, rate bigint, at bigint, gone boolean)
from files (path = '${in}/rates', format = 'json', #rates)
key currency timestamp at delete when gone
materialize versioned (retention = 40 ms, segment = 7 ms);

table accounts (account string, owner string, at bigint)
from files (path = '${in}/accounts', format = 'json', #accounts)
key account timestamp at;

stream priced = left join orders with rates on currency grace 5 ms select id, account, orders.at as at, rate;
stream named = left join priced with accounts on account select id, currency, rate, owner;

sink priced to files (path = '${out}/priced', format = 'parquet', with_timestamp = true);
sink named to files (path = '${out}/named', format = 'parquet', with_timestamp = true);
sink rates to files (path = '${out}/rates', format = 'parquet');
"""
SOURCES = ("rates", "accounts", "orders")


@dataclass(frozen=True)
class Bound:
    """What an epoch takes of a source: a number of files, or files of so many bytes, but at least one file."""

    option: str
    most: int

    def taken(self, sizes: Sequence[int]) -> int:
        """How many of the files that are left."""
        if self.option == "maxFilesPerTrigger":
            return min(self.most, len(sizes))
        return max(sum(size <= self.most for size in accumulate(sizes)), min(1, len(sizes)))


class Inputs:
    """Random files for each source, in the order in which they are read, and how many of them an epoch takes."""

    def __init__(self, seed: int, overlap: bool) -> None:
        chance = self.chance = random.Random(seed)
        self.numbers = iter(range(1_000_000))
        self.bounds = {
            name: Bound("maxBytesPerTrigger", chance.choice((1, 200, 900)))
            if chance.random() < 0.4
            else Bound("maxFilesPerTrigger", chance.randint(1, 3))
            for name in SOURCES
        }
        self.files: dict[str, list[list[dict[str, Any]]]] = {}
        for name in SOURCES:
            self.files[name], start = [], chance.randint(0, 30)
            for _ in range(chance.randint(2, 6)):
                rows = [self.row(name, 0 if overlap else start) for _ in range(chance.choice((0, 1, 3, 12)))]
                start = max((row["at"] for row in rows), default=start) + chance.choice((0, 1, 10))
                self.files[name].append(rows)
        # Names do not follow the order of reading: within an epoch the order of equal times is by name.
        self.names = {name: chance.sample(range(100), len(self.files[name])) for name in SOURCES}

    def row(self, source: str, start: int) -> dict[str, Any]:
        chance, number = self.chance, next(self.numbers)
        at = start + chance.randint(0, 100 if start == 0 else 25)
        if source == "orders":
            return {"id": number, "currency": chance.choice("abc"), "account": chance.choice("xyz"), "at": at}
        if source == "rates":
            return {"currency": chance.choice("abc"), "rate": number, "at": at, "gone": chance.random() < 0.2}
        return {"account": chance.choice("xyz"), "owner": f"o{number}", "at": at}

    @property
    def topology(self) -> str:
        """The topology with the bounds."""
        text = TOPOLOGY
        for name, bound in self.bounds.items():
            text = text.replace(f"#{name}", f"'{bound.option}' = '{bound.most}'")
        return text

    def size(self, source: str, file: int) -> int:
        """The bytes of a file as `write_json` writes it."""
        return sum(len(json.dumps(row)) + 1 for row in self.files[source][file])

    def path(self, source: str, file: int) -> str:
        return f"{source}/f{self.names[source][file]:02}.json"

    def fed(self, source: str, file: int) -> list[EpochRow]:
        rows = enumerate(self.files[source][file])
        return [EpochRow(source, self.path(source, file), offset, row, row["at"]) for offset, row in rows]


class Crash(Exception):
    """What a test lets an epoch fail with."""


@pytest.fixture
def crashes(monkeypatch: pytest.MonkeyPatch) -> Callable[[random.Random], None]:
    """Lets epochs fail at random, once each: before anything is computed, or when all is done but nothing committed."""

    def set_up(chance: random.Random) -> None:
        for name in ("keep_pace", "keep"):
            monkeypatch.setattr(Checkpoint, name, failing(chance, getattr(Checkpoint, name)))

    return set_up


def failing(chance: random.Random, method: Callable[..., None]) -> Callable[..., None]:
    failed: set[object] = set()

    def attempt(checkpoint: Checkpoint, what: Any, *more: Any) -> None:
        method(checkpoint, what, *more)
        epoch = what if isinstance(what, int) else what.epoch
        if epoch not in failed and chance.random() < 0.25:
            failed.add(epoch)
            raise Crash
        failed.add(epoch)

    return attempt


@pytest.mark.parametrize(
    ("seed", "overlap"),
    [
        (72, False),
        pytest.param(110, True, marks=pytest.mark.slow),
        *([(17, False)] if "VSC_KILLS" in os.environ else []),
    ],
)
def test_every_cut_gives_what_the_test_driver_gives(
    spark: Any, tmp_path: Path, seed: int, overlap: bool, crashes: Callable[[random.Random], None]
) -> None:
    inputs = Inputs(seed, overlap)
    plan = compiled(inputs.topology)
    partitions = random.Random(seed).randint(1, 3)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    crashes(inputs.chance)
    # The second run finds some new files, in half of the cases nothing on the local disk.
    halves = {name: inputs.chance.randint(0, len(inputs.files[name]) // 2) for name in SOURCES}
    runs = [{n: range(halves[n]) for n in SOURCES}, {n: range(halves[n], len(inputs.files[n])) for n in SOURCES}]
    local = tmp_path / "local"
    expected: dict[str, list[tuple[Any, ...]]] = {"priced": [], "named": [], "rates": []}
    with TopologyTestDriver(inputs.topology, variables=variables, partitions=partitions) as driver:
        for run in runs:
            for source in SOURCES:
                (tmp_path / "in" / source).mkdir(parents=True, exist_ok=True)
                for file in run[source]:
                    write_json(tmp_path / "in" / inputs.path(source, file), inputs.files[source][file], file)
            arguments = {"variables": variables, "partitions": partitions, "local_dir": str(local)}
            reports = until_done(lambda: run_once(plan, spark, tmp_path / "ck", **arguments))  # noqa: B023
            if reports:
                assert not any(size.waiting for size in reports[-1].state.values())
            if seed % 2:
                shutil.rmtree(local, ignore_errors=True)
            for row in model(plan, inputs, run):
                driver.pipe(row.source, row.row)
            if not overlap:
                assert model(plan, inputs, run) == order_epoch(
                    plan, [row for source in SOURCES for file in run[source] for row in inputs.fed(source, file)]
                )
            for node, found in expected.items():
                found.extend(driver_row(node, record) for record in driver.read(node))
    for node, records in expected.items():
        found = [spark_row(row) for row in parquet_rows(tmp_path / "out" / node)]
        assert by_key(found) == by_key(records), node


def until_done(run: Callable[[], list[EpochReport]]) -> list[EpochReport]:
    """Starts a query again until it ends by itself."""
    while True:
        try:
            return run()
        except StreamingQueryException as error:
            assert "Crash" in str(error), error


def model(plan: Plan, inputs: Inputs, run: dict[str, range]) -> list[EpochRow]:
    """The rows of a run as they go on: a waiting one waits for the sources that have rows left, and goes by D12."""
    ranks = {n.name: n.operation.rank for n in plan.nodes if isinstance(n.operation, Source)}
    left = {name: list(files) for name, files in run.items()}
    clocks = dict.fromkeys(SOURCES, -1)
    waiting: list[tuple[tuple[int, int, str, int], EpochRow]] = []
    found: list[EpochRow] = []
    while any(left.values()):
        for source in SOURCES:
            taken = inputs.bounds[source].taken([inputs.size(source, file) for file in left[source]])
            for file in left[source][:taken]:
                clock = -1
                for row in inputs.fed(source, file):
                    clock = max(clock, row.row["at"])
                    waiting.append(((clock, ranks[source], row.part, row.offset), row))
                clocks[source] = max(clocks[source], clock)
            del left[source][:taken]
        places = [
            (clocks[source], ranks[source], min(inputs.path(source, file) for file in rest))
            for source, files in left.items()
            if (rest := [file for file in files if inputs.files[source][file]])
        ]
        frontier = min(places, default=(1 << 62, 0, ""))
        due = [one for one in waiting if one[0][:3] < frontier]
        waiting = [one for one in waiting if one[0][:3] >= frontier]
        found += [row for _, row in sorted(due, key=lambda one: one[0])]
    assert not waiting
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
