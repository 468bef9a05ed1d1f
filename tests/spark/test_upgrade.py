"""Upgrades of real queries: half of the input with the old topology, the rest with the new one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.lineage import SUCCESSOR
from vsc.runtime.spark.upgrade import Upgrade, upgrade
from vsc.runtime.spark.upgrade import job as upgrade_job

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
sink once to files (path = '${out}/once', format = 'parquet');
sink closed to files (path = '${out}/closed', format = 'parquet');
sink priced to files (path = '${out}/priced', format = 'parquet');
sink prices to files (path = '${out}/prices', format = 'parquet');
sink newest to noop ();
"""
FILES = 4
BOTH = ("priced", "closed", "once")


def feed(folder: Path, numbers: range) -> None:
    """Files of orders and rates, which overlap in time: some rows wait, some are late. The second half is later than
    all of the first, so that it does not matter where the input is cut; what waits for grace or a window still does."""
    for i in numbers:
        begin = 40 * i + (200 if i >= FILES // 2 else 0)
        orders = [
            {"id": 100 * i + n, "currency": "abc"[n % 3], "amount": n % 5, "at": begin + 7 * n} for n in range(12)
        ]
        write_json(folder / f"in/orders/{i}.json", orders, i)
        rates = [{"currency": c, "rate": 10 * i + k, "at": begin + 9 * k} for k, c in enumerate("abc")]
        write_json(folder / f"in/rates/{i}.json", rates, i)


def rows(folder: Path, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in parquet_rows(folder / name))


def fingerprint(checkpoint: Path) -> dict[str, tuple[bytes, int]]:
    files = (p for p in checkpoint.rglob("*") if p.is_file())
    return {str(p.relative_to(checkpoint)): (p.read_bytes(), p.stat().st_mtime_ns) for p in files}


def test_what_is_kept_goes_on_whatever_it_is_called(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = compiled(OLD), compiled(NEW)
    feed(tmp_path, range(FILES // 2))
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    run_once(old, spark, tmp_path / "old", variables=variables, partitions=2)
    before = fingerprint(tmp_path / "old")
    said: list[str] = []
    job = Upgrade(new, str(tmp_path / "old"), str(tmp_path / "new"), variables)

    with monkeypatch.context() as patch:
        patch.setattr(upgrade_job.Checkpoint, "create", killed)
        with pytest.raises(RuntimeError, match="killed"):
            upgrade(job, spark, said.append)
    with pytest.raises(CheckpointError, match="was not finished"):
        run_once(new, spark, tmp_path / "new", variables=variables)
    moved = upgrade(job, spark, said.append)
    assert moved is not None
    assert moved.rows > 20
    assert fingerprint(tmp_path / "old") == before

    feed(tmp_path, range(FILES // 2, FILES))
    run_once(new, spark, tmp_path / "new", variables=variables)
    whole = {**variables, "out": str(tmp_path / "whole")}
    run_once(new, spark, tmp_path / "one", variables=whole, partitions=2)
    for name in BOTH:
        assert rows(tmp_path / "out", name) == rows(tmp_path / "whole", name), name
    assert sum(rows(tmp_path / "out", "prices").values()) == 3 * FILES // 2
    assert (tmp_path / "old" / SUCCESSOR).exists()
    with pytest.raises(CheckpointError, match=r"was upgraded to .*/new, and that has written"):
        run_once(old, spark, tmp_path / "old", variables=variables)


def killed(*of: object) -> None:
    raise RuntimeError("killed")
