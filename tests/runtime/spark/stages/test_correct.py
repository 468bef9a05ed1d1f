"""`correct by` on Spark: a version of the table that comes in a later run corrects what was joined without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json

pytestmark = pytest.mark.spark

TOPOLOGY = """
table rates (currency string, rate int, at bigint) from files (path = '${in}/rates', format = 'json')
key currency timestamp at materialize versioned (retention = 1 hour);
stream payments (id string, currency string, amount int, at bigint)
from files (path = '${in}/payments', format = 'json') key id timestamp at;
table priced = left join payments with rates on currency
correct by id within 20 ms select amount * rates.rate as usd, revision() as revision;
sink priced to files (path = '${out}', format = 'parquet');
"""


@pytest.mark.seam("a corrected join")
def test_a_late_version_corrects_the_result_of_a_former_run(spark: Any, tmp_path: Path) -> None:
    plan, variables = compiled(TOPOLOGY), {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    payments = [{"id": id, "currency": "EUR", "amount": 10, "at": at} for id, at in (("p1", 15), ("p2", 25))]
    write_json(tmp_path / "in/payments/0.json", payments, 0)
    for number, (rate, at) in enumerate(((2, 10), (3, 20))):
        write_json(tmp_path / f"in/rates/{number}.json", [{"currency": "EUR", "rate": rate, "at": at}], number)
        run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=2)
    found = sorted(
        (row["id"], row["revision"], row["usd"], row["_timestamp"]) for row in parquet_rows(tmp_path / "out")
    )
    assert found == [("p1", 0, 20, 15), ("p2", 0, 20, 25), ("p2", 1, 30, 25)]
