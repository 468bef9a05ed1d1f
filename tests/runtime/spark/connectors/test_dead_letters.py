"""Sinks of lost records on Spark: what could not be read comes with its text, and all stages give rows to one sink."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, run_once

pytestmark = pytest.mark.spark

TOPOLOGY = """
stream orders (id string, currency string, n int, at bigint)
from files (path = '${in}/orders', format = 'json') key id timestamp at;
stream others (id string, currency string, n int, at bigint)
from files (path = '${in}/others', format = 'csv') key id timestamp at;
table rates (currency string, rate int, at bigint) from files (path = '${in}/rates', format = 'json')
key currency timestamp at materialize versioned (retention = 1 second, grace = 10 ms);
stream all_orders = merge orders, others;
stream priced = join all_orders with rates on currency select id, 10 / n * rates.rate as usd;
table counts = aggregate priced group by currency window tumbling (size = 10 ms) select count(*) as n;
sink counts to files (path = '${out}/counts', format = 'json');
sink dropped to files (path = '${out}/dropped', format = 'json');
sink dropped of others to files (path = '${out}/others', format = 'parquet');
sink missed to files (path = '${out}/missed', format = 'json', with_timestamp = true);
"""
FILES = {
    "orders": '{"id": "a", "currency": "EUR", "n": 1, "at": 20}\n{"id": "b", "n": "x"}\n{"id": "c", \n'
    '{"id": "d", "currency": "EUR", "n": 0, "at": 30}\n{"id": "e", "currency": "CHF", "n": 1, "at": 40}\n'
    '{"id": "f", "currency": "EUR", "n": 1, "at": 60}\n{"id": "g", "currency": "EUR", "n": 1, "at": 30}\n',
    "others": 'id,currency,n,at\nh,EUR,two,1\ni,EUR\n"j,EUR,1,10\n',
    "rates": '{"currency": "EUR", "rate": 2, "at": 15}\n{"currency": "EUR", "rate": 3, "at": 1}\n',
}


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob("*.json")) for line in path.read_text().splitlines()]


@pytest.mark.seam("dropped records")
def test_rows_of_all_stages(spark: Any, tmp_path: Path) -> None:
    for name, text in FILES.items():
        folder = tmp_path / "in" / name
        folder.mkdir(parents=True)
        (folder / ("x.csv" if name == "others" else "x.json")).write_text(text)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    reports = run_once(compiled(TOPOLOGY), spark, tmp_path / "ck", variables=variables, on_error="drop")
    dropped, missed = rows(tmp_path / "out/dropped"), rows(tmp_path / "out/missed")
    counted = {(node, reason): n for report in reports
               for node, reasons in report.metrics.as_dict()["dropped_records"].items()
               for reason, n in reasons.items()}  # type: ignore[union-attr]  # fmt: skip
    assert Counter((row["node"], row["reason"]) for row in dropped) == counted == {
        ("orders", "unreadable"): 2, ("others", "unreadable"): 3, ("rates", "expired"): 1,
        ("priced", "expression_failed"): 1, ("counts", "window_closed"): 1,
    }  # fmt: skip
    texts = {row["raw"]: row["message"] for row in dropped if row["reason"] == "unreadable"}
    assert texts == {
        '{"id": "b", "n": "x"}': "cannot be read: column 'n' (int) cannot hold 'x'",
        '{"id": "c", ': 'cannot be read: \'{"id": "c", \' is not JSON',
        "h,EUR,two,1": "cannot be read: column 'n' (int) cannot hold 'two'",
        "i,EUR": "cannot be read: it has 2 cells, not 4",
        '"j,EUR,1,10': "cannot be read: a quote is not closed",
    }
    places = {(row["node"], row["reason"]): json.loads(row["position"]) for row in dropped}
    orders = f"file:{tmp_path}/in/orders/x.json"
    assert places["priced", "expression_failed"] == {"file": orders, "row": 4}
    assert places["counts", "window_closed"] == {"file": orders, "row": 7}
    assert [(row["node"], row["reason"], json.loads(row["value"]), row["_timestamp"]) for row in missed] == [
        ("priced", "no_record", {"id": "e", "n": 1, "at": 40}, 40)
    ]
    assert len(spark.read.parquet(str(tmp_path / "out/others")).collect()) == 3
