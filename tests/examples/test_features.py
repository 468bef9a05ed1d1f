"""The example of features for a model gives what DuckDB gives over the same files: window frames and `asof` joins."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any

import duckdb

from tests.examples.test_data import run

WINDOWS = {"day": "1 day", "week": "7 days", "month": "30 days"}
FRAME = (
    "(partition by account order by paid_at range between interval '{}' preceding "
    "and interval '1 millisecond' preceding)"
)
CALLS = ", ".join(
    f"count(*) over {FRAME.format(length)} as {name}_count, sum(amount) over {FRAME.format(length)} as {name}_sum, "
    f"max(amount) over {FRAME.format(length)} as {name}_max"
    for name, length in WINDOWS.items()
)
QUERY = f"""
with counted as (select *, {CALLS} from payments),
placed as (
  select counted.*, segment, address
  from counted asof left join customers
    on counted.customer = customers.customer and counted.paid_at >= customers.changed_at
)
select customer, payment_id, account, amount, paid_at, day_count, day_sum, day_max, week_count, week_sum, week_max,
  month_count, month_sum, month_max, segment, city
from (
  select placed.*, city
  from placed asof left join addresses
    on placed.address = addresses.address and placed.paid_at >= addresses.changed_at
)
order by payment_id
"""


def wanted(folder: Path) -> list[dict[str, Any]]:
    """What DuckDB gives over the files of the example, by payment."""
    with duckdb.connect(config={"threads": 1}) as db:
        for name in ("payments", "customers", "addresses"):
            times = "paid_at" if name == "payments" else "changed_at"
            types = (
                f"{{'{times}': 'timestamp', 'amount': 'decimal(12, 2)'}}"
                if name == "payments"
                else f"{{'{times}': 'timestamp'}}"
            )
            db.execute(f"create view {name} as select * from read_csv('{folder}/data/{name}.csv', types = {types})")
        result = db.execute(QUERY)
        names = [column[0] for column in result.description or ()]
        rows = [dict(zip(names, values, strict=True)) for values in result.fetchall()]
    for row in rows:
        row["paid_at"] = row["paid_at"].replace(tzinfo=UTC)
    assert len(rows) > 50
    return rows


def test_the_features_are_those_of_duckdb(root: Path) -> None:
    folder = root / "examples/features"
    rows: list[dict[str, Any]] = [record.key | record.value for record in run(folder, "features")]
    assert sorted(rows, key=lambda row: str(row["payment_id"])) == wanted(folder)
