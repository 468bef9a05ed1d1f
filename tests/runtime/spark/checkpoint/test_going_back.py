"""Going back to an older epoch: what the sinks hold in the end is as if nothing had happened."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, write_json
from vsc.runtime.spark.base.job import Run
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.query.preflight import prepare
from vsc.runtime.spark.query.run import run
from vsc.runtime.spark.report.displays import display

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPOLOGY = """
stream orders (id bigint, currency string, at bigint)
from files (path = '${in}/orders', format = 'json', 'maxFilesPerTrigger' = '1') timestamp at;
table rates (currency string, rate bigint, at bigint)
from files (path = '${in}/rates', format = 'json', 'maxFilesPerTrigger' = '1')
key currency timestamp at materialize versioned (retention = 1 minute);
stream priced = left join orders with rates on currency grace 15 ms select id, rate;
sink priced to files (path = '${out}', format = 'parquet');
"""
FILES = 3
LAST = 40 * FILES - 30


class Case:
    """Orders are read ahead of the rates, four times as far with each file; so they wait, and the newest for grace."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.plan = spark, folder, compiled(TOPOLOGY)
        for i in range(FILES):
            orders = [{"id": at, "currency": "a", "at": at} for at in range(40 * i + 5, 40 * i + 45, 10)]
            write_json(folder / f"in/orders/{i}.json", orders, i)
            write_json(folder / f"in/rates/{i}.json", [{"currency": "a", "rate": 10 * i, "at": 10 * i}], i)
        write_json(folder / f"in/rates/{FILES}.json", [{"currency": "a", "rate": LAST, "at": LAST}], FILES)

    def run(self, back_to: int | None = None) -> list[tuple[int, int]]:
        """The rows of the sink after a run to the end of the input, and the drain."""
        variables = {"in": str(self.folder / "in"), "out": str(self.folder / "out")}
        job = Run(self.plan, str(self.folder / "ck"), variables, partitions=2, drain=True, back_to=back_to)
        run(prepare(job), self.spark, display("none", sys.stderr))
        return [(row["id"], row["rate"]) for row in parquet_rows(self.folder / "out")]

    def waiting(self) -> list[int]:
        reports = Checkpoint.open(self.spark, str(self.folder / "ck"), self.plan, None).reports()
        return [sum(size.waiting for size in report.state.values()) for report in reports]


def test_several_sources_records_that_wait_a_drain_and_a_crash_on_the_way(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(spark, tmp_path)
    whole = case.run()
    times = range(5, 40 * FILES, 10)
    assert dict(whole) == {at: LAST if at > LAST else min(at // 10, FILES - 1) * 10 for at in times}
    assert len(whole) == 4 * FILES
    waited = case.waiting()
    assert min(waited[1 : FILES - 1]) > 0
    assert case.run(back_to=1) == whole
    assert case.waiting() == waited

    def pulled(checkpoint: Checkpoint, epoch: int) -> None:
        raise OSError("the plug was pulled")

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "forget_after", pulled)
        with pytest.raises(OSError, match="pulled"):
            case.run(back_to=len(waited) - 2)
    assert case.run() == whole  # goes back first
    assert case.waiting() == waited
