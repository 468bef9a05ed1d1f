"""Upgrades of real queries: half of the input with the old topology, the rest with the new one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.errors import CheckpointError, UpgradeError
from vsc.runtime.spark import read_store
from vsc.runtime.spark.base.checksummed import with_checksum
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import resolve_plan
from vsc.runtime.spark.checkpoint.ancestry import SUCCESSOR
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.claim import claim
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.upgrade import Upgrade, prepare, upgrade

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OLD = """
stream orders (id bigint, currency string, amount bigint, at bigint)
from files (path = '${in}/orders', format = 'json', 'maxFilesPerTrigger' = '1') key id timestamp at;
table rates (currency string, rate bigint, at bigint)
from files (path = '${in}/rates', format = 'json', 'maxFilesPerTrigger' = '1')
key currency timestamp at materialize versioned (retention = 1 hour);
stream priced = left join orders with rates on currency grace 15 ms select id, currency, amount, rate;
stream once = distinct orders by currency, amount within 1 hour;
table totals = aggregate orders group by currency window tumbling (size = 40 ms, grace = 20 ms)
select count(*) as n, sum(amount) as total;
table closed = suppress totals until window closes;
table old_only = aggregate orders group by id select count(*) as n;
sink priced to files (path = '${out}/priced', format = 'parquet');
sink closed to files (path = '${out}/closed', format = 'parquet');
sink once to files (path = '${out}/once', format = 'parquet');
sink old_only to noop ();
"""
NEW = """
-- Other names, another order, a new sink, a new store; one store is gone.
table prices (currency string, rate bigint, at bigint)
from files (path = '${in}/rates', format = 'json', 'maxFilesPerTrigger' = '1')
key currency timestamp at materialize versioned (retention = 1 hour);
stream orders (id bigint, currency string, amount bigint, at bigint)
from files (path = '${in}/orders', format = 'json', 'maxFilesPerTrigger' = '1') key id timestamp at;
stream once = distinct orders by currency, amount within 1 hour;
table sums = aggregate orders group by currency window tumbling (size = 40 ms, grace = 20 ms)
select count(*) as n, sum(amount) as total;
table closed = suppress sums until window closes;
stream priced = left join orders with prices on currency grace 15 ms select id, currency, amount, rate;
table newest = aggregate orders group by id select max(amount) as most;
table by_rate = aggregate prices group by rate select count(*) as n, max(currency) as last;
sink once to files (path = '${out}/once', format = 'parquet');
sink closed to files (path = '${out}/closed', format = 'parquet');
sink priced to files (path = '${out}/priced', format = 'parquet');
sink prices to files (path = '${out}/prices', format = 'parquet');
sink newest to noop ();
sink by_rate to noop ();
"""
FILES = 4
BOTH = ("priced", "closed", "once")


def feed(folder: Path) -> None:
    """Orders are read ahead of the rates, which overlap in time: rows wait, and some are late."""
    for i in range(FILES):
        orders = [
            {"id": 100 * i + n, "currency": "abc"[n % 3], "amount": n % 5, "at": 60 * i + 7 * n} for n in range(12)
        ]
        write_json(folder / f"in/orders/{i}.json", orders, i)
        rates = [{"currency": c, "rate": 10 * i + k, "at": 40 * i + 9 * k} for k, c in enumerate("abc")]
        write_json(folder / f"in/rates/{i}.json", rates, i)


def rows(folder: Path, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in parquet_rows(folder / name))


def fingerprint(checkpoint: Path) -> dict[str, tuple[bytes, int]]:
    files = (p for p in checkpoint.rglob("*") if p.is_file())
    return {str(p.relative_to(checkpoint)): (p.read_bytes(), p.stat().st_mtime_ns) for p in files}


def half_run(spark: SparkSession, folder: Path, variables: dict[str, str]) -> None:
    """The old query as it was after its second epoch: records wait for the other source."""
    old = compiled(OLD)
    reports = run_once(old, spark, folder / "old", variables=variables, partitions=2)
    assert sum(size.waiting for size in reports[1].state.values()) > 0
    opened = Checkpoint.open(spark, str(folder / "old"), old, None)
    ends = Ends(resolve_plan(old, variables))
    ends.begin(spark, opened.id)
    opened.go_back(ends.writers, 1)


def test_what_is_kept_goes_on_whatever_it_is_called(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = compiled(NEW)
    feed(tmp_path)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    half_run(spark, tmp_path, variables)
    before = fingerprint(tmp_path / "old")
    said: list[str] = []
    job = Upgrade(new, str(tmp_path / "old"), str(tmp_path / "new"), variables)

    assert upgrade(prepare(replace(job, dry_run=True)), spark, said.append) is None
    assert not (tmp_path / "new").exists()
    assert "source prices (was rates): goes on at entry 1 of its log" in said
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "create", killed)
        with pytest.raises(RuntimeError, match="killed"):
            upgrade(prepare(job), spark, said.append)
    with pytest.raises(CheckpointError, match="was not finished"):
        run_once(new, spark, tmp_path / "new", variables=variables)
    moved = upgrade(prepare(job), spark, said.append)
    assert moved is not None
    assert moved.rows > 20
    assert fingerprint(tmp_path / "old") == before
    with pytest.raises(CheckpointError, match="is a checkpoint already"):
        prepare(job)

    reports = run_once(new, spark, tmp_path / "new", variables=variables)
    assert sum(report.read["orders"] for report in reports) == 12 * (FILES - 2)
    run_once(new, spark, tmp_path / "one", variables={**variables, "out": str(tmp_path / "whole")}, partitions=2)
    for name in BOTH:
        assert rows(tmp_path / "out", name) == rows(tmp_path / "whole", name), name
    assert sum(rows(tmp_path / "out", "prices").values()) >= 3 * (FILES - 2)
    filled, counted = (newest(spark, tmp_path / name, "by_rate") for name in ("new", "one"))
    assert filled == counted
    assert len(counted) == 3  # one for each currency: the rates of the first half have been taken back
    assert not list((tmp_path / "new/vsc/control").glob("seed*")) or len(reports) == 1
    assert (tmp_path / "old" / SUCCESSOR).exists()
    # Once more: what an upgraded query knows of its sources and sinks goes on as well.
    assert upgrade(prepare(replace(job, old=job.new, new=str(tmp_path / "third"))), spark, said.append) is not None
    [report] = run_once(new, spark, tmp_path / "third", variables=variables)
    assert report.read == {}
    assert rows(tmp_path / "out", "once") == rows(tmp_path / "whole", "once")
    with pytest.raises(CheckpointError, match=r"was upgraded to .*/new, and that has written"):
        run_once(compiled(OLD), spark, tmp_path / "old", variables=variables)


@pytest.mark.seam("an upgrade while records wait")
def test_records_wait_for_a_grace_that_is_gone_while_the_old_query_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """They are joined, each once: an upgraded query is refused once the old one has written what it would write."""
    text = """
stream orders (id bigint, currency string, amount bigint, at bigint)
from files (path = '${in}/orders', format = 'json') key id timestamp at;
table rates (currency string, rate bigint, at bigint)
from files (path = '${in}/rates', format = 'json') key currency timestamp at
materialize versioned (retention = 1 hour);
stream priced = left join orders with rates on currency %s select id, currency, amount, rate;
stream once = distinct orders by currency, amount within 1 hour;
sink priced to files (path = '${out}/priced', format = 'parquet');
sink once to files (path = '${out}/once', format = 'parquet');
"""
    old, new = compiled(text % "grace 50 minutes"), compiled(text % "")
    feed(tmp_path)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    run_once(old, spark, tmp_path / "old", variables=variables, partitions=2)
    assert rows(tmp_path / "out", "priced") == Counter()
    job = Upgrade(new, str(tmp_path / "old"), str(tmp_path / "new"), variables)
    said: list[str] = []
    assert upgrade(prepare(job), spark, said.append) is not None

    late = [{"id": 900, "currency": "a", "amount": 9, "at": 300}]
    write_json(tmp_path / "in/orders/9.json", late, 9)
    run_once(old, spark, tmp_path / "old", variables=variables)  # `once` gets a row
    with pytest.raises(
        CheckpointError, match=r"/old has gone on to epoch \d+, which may have written to its sinks"
    ) as no:
        run_once(new, spark, tmp_path / "new", variables=variables)
    assert no.value.help is not None and "and a new folder" in no.value.help
    assert upgrade(prepare(replace(job, new=str(tmp_path / "again"))), spark, said.append) is not None
    run_once(new, spark, tmp_path / "again", variables=variables)  # there is nothing new to read

    run_once(new, spark, tmp_path / "one", variables={**variables, "out": str(tmp_path / "whole")}, partitions=2)
    for name in ("priced", "once"):
        assert rows(tmp_path / "out", name) == rows(tmp_path / "whole", name), name
    assert sum(rows(tmp_path / "out", "priced").values()) == 12 * FILES + 1


@pytest.mark.seam("another number of partitions")
def test_another_number_of_partitions_a_store_reset_and_one_accepted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = compiled(NEW.replace("sums", "totals").replace("sum(amount)", "sum(amount + 0)"))
    feed(tmp_path)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    half_run(spark, tmp_path, variables)
    said: list[str] = []
    job = Upgrade(new, str(tmp_path / "old"), str(tmp_path / "new"), variables, partitions=3)
    with pytest.raises(UpgradeError, match=r"of these stores:\n  totals: .*\n  totals#windows: .*\n  clos"):
        prepare(job)
    prepared = prepare(replace(job, accept=frozenset({"totals"}), reset=frozenset({"closed#suppressed"})))
    running = claim(spark, Files(spark, str(tmp_path / "old")))
    before = fingerprint(tmp_path / "old")
    with monkeypatch.context() as patch, pytest.raises(CheckpointError, match=r"/old is in use by .*: process \d+ on "):
        patch.setattr("vsc.runtime.spark.checkpoint.claim.STOPPING_SECONDS", 0.0)
        upgrade(prepared, spark, said.append)
    running.release()
    (tmp_path / "old" / SUCCESSOR).write_text(with_checksum({"path": "/faster", "id": "1"}))
    with pytest.raises(CheckpointError, match="/old was upgraded to /faster, and that has written to its sinks"):
        upgrade(prepared, spark, said.append)
    (tmp_path / "old" / SUCCESSOR).unlink()
    with monkeypatch.context() as patch:
        patch.setattr("vsc.runtime.spark.base.disks.shutil.disk_usage", lambda path: SimpleNamespace(free=100))
        with pytest.raises(UpgradeError, match=r"the state has [\d.]+ KiB, 100 B are free on the disk of .*/new"):
            upgrade(prepared, spark, said.append)
    assert not (tmp_path / "new").exists()
    assert before.keys() == fingerprint(tmp_path / "old").keys()
    assert upgrade(prepared, spark, said.append) is not None
    run_once(new, spark, tmp_path / "new", variables=variables)
    run_once(new, spark, tmp_path / "one", variables={**variables, "out": str(tmp_path / "whole")}, partitions=3)
    for name in ("priced", "once"):
        assert rows(tmp_path / "out", name) == rows(tmp_path / "whole", name), name
    last = {name: newest(spark, tmp_path / name) for name in ("new", "one")}
    assert last["new"] == last["one"]


def newest(spark: SparkSession, checkpoint: Path, store: str = "totals") -> Counter[tuple[Any, ...]]:
    """What a store holds at the end."""
    return Counter(map(tuple, read_store(spark, str(checkpoint), store).collect()))


def killed(*of: object) -> None:
    raise RuntimeError("killed")
