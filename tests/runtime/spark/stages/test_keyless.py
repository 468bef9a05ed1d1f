"""Records without a key (D26) on Spark: through shuffles, waiting in state, a restart, and into files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TOPOLOGY = """
stream orders (id bigint, sku string, at bigint)
from files (path = '${in}/orders', format = 'json', 'maxFilesPerTrigger' = '1') key id timestamp at;
table products (sku string, maker string, at bigint)
from files (path = '${in}/products', format = 'json', 'maxFilesPerTrigger' = '1')
key sku timestamp at materialize versioned (retention = 1 hour);
table makers (maker string, size int, country string, at bigint)
from files (path = '${in}/makers', format = 'json', 'maxFilesPerTrigger' = '1') key maker, size timestamp at;
stream named = left join orders with products on sku grace 5 ms select id, maker;
stream located = left join named with makers on maker, length(maker) as size select id, sku, country;
table counts = aggregate located group by maker, size select count(*) as n;
sink located to files (path = '${out}/located', format = 'parquet', with_timestamp = true);
sink counts to files (path = '${out}/counts', format = 'parquet');
"""


@pytest.mark.seam("records without key")
def test_they_go_all_the_way_and_are_counted_where_a_key_is_needed(spark: SparkSession, tmp_path: Path) -> None:
    plan, variables = compiled(TOPOLOGY), {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    # the first orders are read long before the rows of the tables at their times: they wait in state
    skus = [None if i % 3 == 0 else f"s{i % 3}" if i % 5 else "unknown" for i in range(40)]
    dropped = 0
    for half in range(2):
        rows: list[dict[str, Any]] = [
            {"id": i, "sku": skus[i], "at": 1000 + i} for i in range(20 * half, 20 * half + 20)
        ]
        rows += [{"id": 99, "sku": key, "at": 9000} for key in ("s1", "s2", "unknown")] * half  # the others go on
        write_json(tmp_path / f"in/orders/{half}.json", rows, half)
        for number in range(3):
            at = 400 * number + 1000 * half
            makers = [{"maker": "m1", "size": 2, "country": "IT", "at": at}]
            write_json(tmp_path / f"in/products/{half}{number}.json", [{"sku": "s1", "maker": "m1", "at": at}], number)
            write_json(tmp_path / f"in/makers/{half}{number}.json", makers, number)
        reports = run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=3)
        for report in reports:
            lost: Any = report.metrics.as_dict()["dropped_records"]
            assert lost.keys() <= {"counts"}
            dropped += lost.get("counts", {}).get("null_join_key", 0)
    found = {row["id"]: row for row in parquet_rows(tmp_path / "out/located")}
    assert len(parquet_rows(tmp_path / "out/located")) == len(found) == 40
    for i, sku in enumerate(skus):
        known = sku == "s1"
        assert found[i] == {
            "maker": "m1" if known else None, "size": 2 if known else None, "id": i, "sku": sku,
            "country": "IT" if known else None, "_timestamp": 1000 + i,
        }  # fmt: skip
    assert dropped == sum(sku != "s1" for sku in skus)
    assert max(row["n"] for row in parquet_rows(tmp_path / "out/counts")) == 40 - dropped
