"""Checkpoints of former formats and releases, kept as data: they are read, go on in place, and are upgraded, on the
Spark in use.

They were written in another folder, which is not there: a checkpoint that was moved goes on, too.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once
from tools import kept_checkpoint as kept
from vsc import __version__
from vsc.cli import main
from vsc.plan import load
from vsc.runtime.spark import read_store
from vsc.runtime.spark.base.checksummed import LocalFiles
from vsc.runtime.spark.base.releases import minor_release
from vsc.runtime.spark.checkpoint.identity import FORMAT, OLDEST, read_identity
from vsc.runtime.spark.upgrade import Upgrade, prepare, upgrade

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.release]

# What the rest of the input brings: by currency the orders with their rates, and the windows with counts and sums.
PRICED = {
    "a": {6: 10, 9: 10, 100: 10, 103: 20, 106: 20, 109: 30, 200: 30, 203: 30, 206: 30, 209: 30, 300: 30, 303: 30,
          306: 30},
    "b": {4: 1, 7: 11, 10: 11, 101: 11, 104: 11, 107: 21, 110: 31, 201: 21, 204: 31, 207: 31, 210: 31, 301: 31,
          304: 31, 307: 31},
    "c": {5: 2, 8: 2, 11: 12, 102: 12, 105: 12, 108: 22, 111: 22, 202: 22, 205: 32, 208: 32, 211: 32, 302: 32,
          305: 32, 308: 32},
}  # fmt: skip
CLOSED = {
    "a": [(0, 2, 3), (40, 3, 5), (80, 2, 4), (120, 3, 7), (160, 3, 5)],
    "b": [(0, 2, 5), (40, 3, 3), (80, 2, 6), (120, 3, 5), (160, 3, 3)],
    "c": [(0, 2, 2), (40, 3, 6), (80, 2, 3), (120, 3, 3), (160, 3, 6)],
}
ONCE = [(7, "b", 2), (8, "c", 3), (9, "a", 4), (10, "b", 0), (11, "c", 1)]


def _unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(kept.CHECKPOINTS / f"{name}.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    return folder / "ck"


def test_there_is_one_of_each_format_that_is_read(tmp_path: Path) -> None:
    released = {
        read_identity(LocalFiles(str(_unpacked(f"release-{one}", tmp_path / one)))).format for one in kept.RELEASES
    }
    assert {*range(OLDEST, FORMAT)} - {*kept.VERSIONS, *released} == set()


def test_there_is_one_of_this_release() -> None:
    assert __version__ in kept.RELEASES, "run python -m tools.kept_checkpoint, on the oldest Spark"


@pytest.mark.skipif(minor_release() == "4.0", reason="they were written with Spark 4.1")
@pytest.mark.seam("a checkpoint of an earlier release", first=1)
@pytest.mark.parametrize("version", kept.VERSIONS)
def test_a_kept_checkpoint_goes_on(version: int, spark: SparkSession, tmp_path: Path) -> None:
    plan = compiled(kept.TOPOLOGY)
    for name in ("run", "upgraded"):
        _unpacked(f"format-{version}", tmp_path / name)
    old, new = str(tmp_path / "run/ck"), str(tmp_path / "upgraded/new")
    assert read_identity(LocalFiles(old)).format == version
    totals = read_store(spark, old, "totals").select("currency", "n", "total").collect()
    assert sorted(map(tuple, totals)) == [("a", 1, 1), ("a", 2, 3), ("b", 2, 5), ("c", 2, 2)]
    (tmp_path / "new.vdsl").write_text(kept.TOPOLOGY)
    assert main(["diff", old, str(tmp_path / "new.vdsl")]) == 0

    kept.feed(tmp_path, range(kept.EPOCH + 1, kept.FILES))
    read = {"in": str(tmp_path / "in")}
    variables = {name: {**read, "out": str(tmp_path / name / "out")} for name in ("run", "upgraded")}
    run_once(plan, spark, Path(old), variables=variables["run"])
    assert read_identity(LocalFiles(old)).format == FORMAT
    logged = "".join(path.read_text() for path in (tmp_path / "run/ck/sources/0").iterdir() if path.name.isdigit())
    assert (logged.count("/vsc/control/0-start.txt"), logged.count(f"file://{old}/vsc/control/0-start.txt")) == (1, 1)
    job = Upgrade(plan, str(tmp_path / "upgraded/ck"), new, variables["upgraded"], partitions=3)
    assert upgrade(prepare(job), spark, lambda _: None) is not None
    run_once(plan, spark, Path(new), variables=variables["upgraded"])
    for how in ("run", "upgraded"):
        out = tmp_path / how / "out"
        priced = {(row["currency"], row["id"], row["rate"]) for row in parquet_rows(out / "priced")}
        assert priced == {(c, id, rate) for c, rows in PRICED.items() for id, rate in rows.items()}, how
        closed = sorted(
            (row["currency"], round(row["window_start"].timestamp() * 1000), row["n"], row["total"])
            for row in parquet_rows(out / "closed")
        )
        assert closed == [(c, *window) for c, windows in CLOSED.items() for window in windows], how
        once = sorted((row["id"], row["currency"], row["amount"]) for row in parquet_rows(out / "once"))
        assert once == ONCE, how


@pytest.mark.seam("a checkpoint of an earlier release")
@pytest.mark.parametrize("release", kept.RELEASES)
def test_a_released_checkpoint_goes_on(release: str, spark: SparkSession, tmp_path: Path) -> None:
    """What its half run had written, and what comes now, is what this vsc gives for the whole input."""
    for name in ("run", "upgraded"):
        _unpacked(f"release-{release}", tmp_path / name)
    text = (tmp_path / "run/topology.vdsl").read_text()
    plan = compiled(text)
    assert load((tmp_path / "run/ck/vsc/plan.json").read_text()).nodes
    assert main(["diff", str(tmp_path / "run/ck"), str(tmp_path / "run/topology.vdsl")]) == 0

    kept.feed(tmp_path, range(kept.EPOCH + 1, kept.FILES))
    rest = {name: {"in": str(tmp_path / "in"), "out": str(tmp_path / name / "rest")} for name in ("run", "upgraded")}
    run_once(plan, spark, tmp_path / "run/ck", variables=rest["run"])
    job = Upgrade(plan, str(tmp_path / "upgraded/ck"), str(tmp_path / "upgraded/new"), rest["upgraded"], partitions=3)
    assert upgrade(prepare(job), spark, lambda _: None) is not None
    run_once(plan, spark, tmp_path / "upgraded/new", variables=rest["upgraded"])

    kept.feed(tmp_path / "whole", range(kept.FILES))
    whole = {"in": str(tmp_path / "whole/in"), "out": str(tmp_path / "whole/out")}
    run_once(plan, spark, tmp_path / "whole/ck", variables=whole, partitions=2)
    sinks = sorted(path.name for path in (tmp_path / "whole/out").iterdir())
    assert len(sinks) >= 3
    for how in rest:
        for sink in sinks:
            given = [*_rows(tmp_path / how / "out" / sink), *_rows(tmp_path / how / "rest" / sink)]
            assert sorted(given) == sorted(_rows(tmp_path / "whole/out" / sink)), (how, sink)


def _rows(folder: Path) -> list[str]:
    return [repr(sorted(row.items())) for row in parquet_rows(folder)]
