"""Random chains of corrected joins on Spark end as batch SQL, over epochs, restarts, and an upgrade to other lengths
and another number of partitions.

The topology, the rows and the SQL are those of `test_chains`.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.random_topologies.seeds import seeds
from tests.random_topologies.test_chains import TABLES, Setting, batch, rows_of
from tests.runtime.spark.support import compiled, parquet_rows, write_json
from vsc.runtime.spark.base.job import Run
from vsc.runtime.spark.query.preflight import prepare
from vsc.runtime.spark.query.run import run
from vsc.runtime.spark.report.displays import display
from vsc.runtime.spark.upgrade import Upgrade, upgrade
from vsc.runtime.spark.upgrade import prepare as prepare_upgrade

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

EPOCHS = 3
TOGETHER = 10
"""How many seeds a run has: each topology has sources and tables of its own, and one query costs less than ten."""
NAMES = re.compile(
    r"\b(prices|customers|rates|lines|priced|placed|doubled|some|done|sums|windows|same|waited\d|doubleds|somes)\b"
)
ASKED = seeds("VSC_SPARK_TOPOLOGIES", 2)


class Chain:
    """What a seed has: its plan before and after the upgrade, as text, its rows, and what they end as."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        setting, other = Setting.of(rng, seed), Setting.of(rng, seed)
        shortest = min(setting.within[0], other.within[0])
        waits = f"grace {rng.randint(0, shortest)} ms"
        changed = setting._replace(within=other.within, grace=waits if setting.grace else "")
        setting = setting._replace(grace=waits if setting.grace else "")
        both = [min(two) for two in zip(setting.within, other.within, strict=True)]
        self.seed, self.rows = seed, rows_of(rng, setting, both)
        self.texts = [_on_files(self._named(one.text(random.Random(seed)))) for one in (setting, changed)]
        self.expected = batch(self.rows, setting)

    def named(self, name: str) -> str:
        """What a node of the chain is called beside other chains."""
        return f"{name}_{self.seed}"

    def _named(self, text: str) -> str:
        return NAMES.sub(lambda found: self.named(found[1]), text)


@pytest.mark.parametrize("some", [ASKED[begin : begin + TOGETHER] for begin in range(0, len(ASKED), TOGETHER)], ids=str)
def test_chains_on_spark_end_as_batch_sql(spark: Any, tmp_path: Path, some: range) -> None:
    chains = [Chain(seed) for seed in some]
    plan, behind = (compiled("\n".join(one.texts[number] for one in chains)) for number in range(2))
    variables, checkpoint = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}, tmp_path / "ck"
    sources = [(chain, source) for chain in chains for source in (*TABLES, "lines")]
    for chain, source in sources:
        (tmp_path / "in" / chain.named(source)).mkdir(parents=True)
    for number in range(EPOCHS):
        for chain, source in sources:
            share = -(-len(chain.rows) // EPOCHS)
            part = [one.row for one in chain.rows[number * share : (number + 1) * share] if one.source == source]
            if part:
                write_json(tmp_path / f"in/{chain.named(source)}/{number}.json", part, number)
        if number == 1:
            plan = behind
            moved = Upgrade(plan, str(checkpoint), str(tmp_path / "ck2"), variables, 3)
            upgrade(prepare_upgrade(moved), spark, lambda line: None)
            checkpoint = tmp_path / "ck2"
        job = Run(plan, str(checkpoint), variables, 3 if number else 2, drain=number == EPOCHS - 1)
        run(prepare(job), spark, display("none", sys.stderr))
    for chain in chains:
        for node, key in (("done", "id"), ("sums", "c")):
            assert _newest(tmp_path / "out" / chain.named(node), key) == chain.expected[node], chain.named(node)
        shown = parquet_rows(tmp_path / "out" / chain.named("windows"))
        windows = sorted(((r["c"], r["n"], r["usd"], r["most"]) for r in shown), key=repr)
        wanted = sorted(((c, *values) for (c, _, _), values in chain.expected["windows"].items()), key=repr)
        assert windows == wanted, chain.named("windows")


def _on_files(text: str) -> str:
    """The topology with sources and sinks of files."""
    text = re.sub(
        r"((?:table|stream) (\w+) \([^)]*\))\s*from memory \(\)",
        r"\1 from files (path = '${in}/\2', format = 'json')",
        text,
    )
    return re.sub(r"sink (\w+) to memory \(\)", r"sink \1 to files (path = '${out}/\1', format = 'parquet')", text)


def _newest(folder: Path, key: str) -> dict[Any, Any]:
    """What the changes in a sink make, in their order."""
    found: dict[Any, Any] = {}
    files = sorted(folder.glob("part-*.parquet"), key=lambda file: file.stat().st_mtime_ns)  # of two checkpoints
    for row in (row for file in files for row in pq.read_table(file).to_pylist()):
        values = tuple(value for name, value in row.items() if name != key and not name.startswith("_"))
        found.pop((row[key],), None)
        if row["_change"] == "upsert":
            found[row[key],] = values
    return found
