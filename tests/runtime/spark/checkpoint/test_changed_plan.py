"""A run on the checkpoint of a topology that has changed: what is applied as it is, and what is refused."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import parquet_rows, write_json
from vsc.compiler import compile_topology
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.query.start import start

pytestmark = pytest.mark.spark

TOPOLOGY = """
table rates (currency string, rate int, at bigint) from files (path = '${in}/rates', format = 'json')
  key currency timestamp at materialize versioned (retention = 10 ms);
stream orders (id bigint, currency string, at bigint) from files (path = '${in}/orders', format = 'json')
  key id timestamp at;
stream priced = left join orders with rates on currency select id, rate;
table counts = aggregate priced group by id select count(*) as n;
sink priced to files (path = '${out}/priced', format = 'parquet');
sink counts to files (path = '${out}/counts', format = 'parquet');
"""


class Query:
    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.files = spark, folder, 0

    def feed(self, rates: list[tuple[int, int]], orders: list[tuple[int, int]]) -> None:
        """Rates and their times, ids of orders and theirs."""
        self.files += 1
        rows = [{"currency": "a", "rate": rate, "at": at} for rate, at in rates]
        write_json(self.folder / f"in/rates/{self.files}.json", rows, self.files)
        rows = [{"id": id, "currency": "a", "at": at} for id, at in orders]
        write_json(self.folder / f"in/orders/{self.files}.json", rows, self.files)

    def run(self, *changes: tuple[str, str], partitions: int | None = None) -> None:
        text = TOPOLOGY
        for was, now in changes:
            assert was in text
            text = text.replace(was, now)
        variables = {"in": str(self.folder / "in"), "out": str(self.folder / "out")}
        plan = compile_topology(text, path="t.vdsl", variables={})
        query = start(plan, self.spark, checkpoint=self.folder / "ck", variables=variables, partitions=partitions)
        query.awaitTermination()

    def rows(self, sink: str) -> list[dict[str, Any]]:
        return parquet_rows(self.folder / "out" / sink)


RENAMED = [("counts", "numbers"), ("retention = 10 ms", "retention = 10 days")]


def test_names_retention_and_a_sink_more_are_applied(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(spark, tmp_path)
    query.feed([(1, 100), (2, 200)], [(1, 150), (2, 250)])
    query.run(partitions=2)
    assert {row["id"]: row["rate"] for row in query.rows("priced")} == {1: 1, 2: 2}

    query.feed([(3, 300), (4, 1000)], [(1, 350), (3, 1100)])
    numbers = ("'${out}/numbers'", "'${out}/counts'")  # its folder is where it was
    sinks = ("format = 'parquet');\nsink numbers", "format = 'parquet', with_timestamp = true);\nsink numbers")
    # killed between the two files that say whose the checkpoint is
    write = Checkpoint.take

    def pulled(self: Checkpoint, plan: Any) -> None:
        kept = (tmp_path / "ck/vsc/plan.json").read_bytes()
        write(self, plan)
        (tmp_path / "ck/vsc/plan.json").write_bytes(kept)
        (tmp_path / "ck/vsc/.plan.json.crc").unlink(missing_ok=True)
        raise OSError("the plug was pulled")

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "take", pulled)
        with pytest.raises(OSError, match="pulled"):
            query.run(*RENAMED, numbers, sinks)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        query.run(*RENAMED, numbers, sinks)
    said = [record.getMessage() for record in caplog.records if "topology has changed" in record.getMessage()]
    assert [line.removeprefix("the topology has changed, from now on: ") for line in said] == [
        "store rates: limits retention was 10 ms, is 10 days (line 2)",
        "store numbers: renamed was `counts`",
        "store numbers#groups: renamed was `counts#groups`",
        "sink priced to files '${out}/priced': limits with_timestamp was not given, is True (line 8)",
        "sink numbers to files '${out}/counts': renamed was `counts to files '${out}/counts'`",
    ]
    # the order of time 350 is joined with the version of its time: under 10 ms it would have been too old
    assert [(row["id"], row["rate"]) for row in query.rows("priced")] == [(1, 1), (2, 2), (1, 3), (3, 4)]
    assert {row["id"]: row["n"] for row in query.rows("counts")} == {1: 2, 2: 1, 3: 1}
    assert json.loads((tmp_path / "ck/vsc/identity.json").read_text())["partitions"] == 2
    caplog.clear()
    query.feed([], [(2, 1200)])
    query.run(*RENAMED, numbers, sinks)
    assert not [record for record in caplog.records if "topology has changed" in record.getMessage()]
    assert {row["id"]: row["n"] for row in query.rows("counts")}[2] == 2

    with pytest.raises(CheckpointError) as refused:
        query.run(*RENAMED, numbers, sinks, ("count(*) as n", "count(*) + 1 as n"))
    assert "store numbers: rebuild the column `n` of `numbers` holds something else" in refused.value.message
    assert refused.value.help == (
        f"carry it over: vsc upgrade TOPOLOGY --from file:{tmp_path}/ck --checkpoint NEW_FOLDER with a decision: "
        "`--accept numbers` keeps what the old topology computed, and goes on from it; "
        "`--reset numbers` empties it: what is in there is lost, unless a table can fill it again"
    )
    with pytest.raises(CheckpointError, match="has 2 partitions, not 3") as refused:
        query.run(*RENAMED, numbers, sinks, partitions=3)
    assert refused.value.help is not None and refused.value.help.endswith("--checkpoint NEW_FOLDER --partitions 3")
