"""Backfill that equals the stream: a run over the history, then live data from Kafka at the matching offsets, gives
what one live run over everything gives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servers.kafka import Broker, Record
from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.errors import PositionError
from vsc.runtime.spark.upgrade import Upgrade, prepare, upgrade

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TEXT = """
stream orders (k string, amount bigint, at bigint) from ORDERS key k timestamp at;
table rates (k string, rate bigint, at bigint) from RATES
key k timestamp at materialize versioned (retention = 1 hour);
stream priced = left join orders with rates on k grace 30 ms select k, amount, rate;
table sums = aggregate orders group by k window tumbling (size = 40 ms, grace = 30 ms)
select count(*) as n, sum(amount) as total;
table closed = suppress sums until window closes;
sink priced to files (path = '${out}/priced', format = 'parquet', with_timestamp = true);
sink closed to files (path = '${out}/closed', format = 'parquet');
"""
BOUND = "format = 'json', 'maxFilesPerTrigger' = '1'"
FROM_FILES = TEXT.replace("ORDERS", f"files (path = '${{in}}/orders', {BOUND})").replace(
    "RATES", f"files (path = '${{in}}/rates', {BOUND})"
)


def from_kafka(of: str) -> str:
    """The topology on the topics whose names are in the variables orders`of` and rates`of`, in bounded epochs."""
    text = TEXT
    for name in ("orders", "rates"):
        kafka = f"kafka (bootstrap_servers = '${{brokers}}', topic = '${{{name}{of}}}', format = 'json'"
        text = text.replace(name.upper(), f"{kafka}, starting_offsets = 'earliest', 'maxOffsetsPerTrigger' = '15')")
    return text


LIVE = from_kafka("")
ARCHIVE = from_kafka("_archive")
TURNS, LAST = 30, 1000
HISTORY = {"orders": 39, "rates": 28}
"""How many rows of each are in the history. Behind them come rates that orders of the history have to wait for."""
LATE = {"k": "a", "amount": 1000, "at": 1}


def orders() -> list[dict[str, Any]]:
    """Two a turn; every third turn is 12 ms back, and one order is much too late for its window. The last ones, one a
    key, release what is held."""
    rows = [
        {"k": "abcd"[(2 * turn + n) % 4], "amount": turn % 7 + n, "at": 10 * turn + 20 - (12 if turn % 3 == 2 else 0)}
        for turn in range(TURNS)
        for n in range(2)
    ]
    return [*rows[:40], LATE, *rows[40:], *({"k": k, "amount": 0, "at": LAST} for k in "abcd")]


def rates() -> list[dict[str, Any]]:
    """Each key has another rate every third turn; some come after newer ones."""
    return [
        {"k": k, "rate": 10 * turn + i, "at": 10 * turn + 3 * i - (11 if turn % 2 else 0)}
        for turn in range(0, TURNS, 3)
        for i, k in enumerate("abcd")
    ]


def expected_priced() -> Counter[tuple[Any, ...]]:
    """What the join promises: the rate of each order's own time."""
    found: Counter[tuple[Any, ...]] = Counter()
    for order in orders()[:-4]:
        valid = [(r["at"], r["rate"]) for r in rates() if r["k"] == order["k"] and r["at"] <= order["at"]]
        found[order["k"], order["amount"], max(valid)[1] if valid else None, order["at"]] += 1
    return found


def expected_sums() -> dict[tuple[str, int], tuple[int, int]]:
    """What the windows hold when they close, without the order that is too late."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for order in orders()[:-4]:
        place = order["k"], order["at"] // 40 * 40
        n, total = found.get(place, (0, 0))
        if order is not LATE:
            found[place] = n + 1, total + order["amount"]
    return {place: of for place, of in found.items() if of[0]}


def parted(rows: list[dict[str, Any]]) -> list[Record]:
    return [
        Record(r["k"].encode(), json.dumps(r).encode(), r["at"] + 1_000_000, partition="abcd".index(r["k"]) % 2)
        for r in rows
    ]


def priced(folder: Path) -> Counter[tuple[Any, ...]]:
    return Counter((r["k"], r["amount"], r["rate"], r["_timestamp"]) for r in parquet_rows(folder / "priced"))


def sums(folder: Path) -> list[tuple[tuple[str, int], tuple[int, int]]]:
    return sorted(
        ((row["k"], round(row["window_start"].timestamp() * 1000)), (row["n"], row["total"]))
        for row in parquet_rows(folder / "closed")
    )


def test_history_then_live_data_is_one_live_run(
    spark: Any, tmp_path: Path, broker: Broker, topic: Callable[..., str]
) -> None:
    variables = {"brokers": broker.address, "in": str(tmp_path / "the past")}
    ends = {}
    for name, rows in (("orders", orders()), ("rates", rates())):
        history = rows[: HISTORY[name]]
        variables[name], variables[f"{name}_archive"] = topic(2), topic(2)
        broker.write(variables[name], parted(rows))
        broker.write(variables[f"{name}_archive"], parted(history))
        third = len(history) // 3
        for number, part in enumerate((history[:third], history[third : 2 * third], history[2 * third :])):
            write_json(tmp_path / f"the past/{name}/{number} of 3.json", part, number)
        parts = [r.partition for r in parted(history)]
        ends[name] = json.dumps({variables[name]: {"0": parts.count(0), "1": parts.count(1)}})

    run_once(compiled(LIVE), spark, tmp_path / "one", variables={**variables, "out": str(tmp_path / "whole")})
    assert priced(tmp_path / "whole") == expected_priced()
    assert sums(tmp_path / "whole") == sorted(expected_sums().items())
    assert (len(orders()), sum(n for n, _ in expected_sums().values())) == (65, 60)
    assert [expected_sums()[place] for place in (("a", 0), ("c", 200), ("b", 280))] == [(2, 2), (3, 7), (1, 1)]
    waited, late, usual = ("a", 4, 210, 200), ("a", 1000, 0, 1), ("c", 2, 92, 110)
    assert [expected_priced()[row] for row in (waited, late, usual)] == [1, 1, 1]

    for name, old in (("files", FROM_FILES), ("archive", ARCHIVE)):
        here = {**variables, "out": str(tmp_path / f"{name}-out")}
        reports = run_once(compiled(old), spark, tmp_path / f"{name}-old", variables=here)
        assert len(reports) >= 3
        assert sum(report.read["orders"] for report in reports) == HISTORY["orders"]
        said: list[str] = []
        job = Upgrade(compiled(LIVE), str(tmp_path / f"{name}-old"), str(tmp_path / name), here, positions=ends)
        beyond = {**ends, "orders": json.dumps({variables["orders"]: {"0": 1, "1": 999}})}
        with pytest.raises(PositionError, match=r"has the offsets 0 to 32, 999 is outside"):
            prepare(replace(job, positions=beyond))
        assert upgrade(prepare(replace(job, dry_run=True)), spark, said.append) is None
        assert not (tmp_path / name).exists()
        assert any(line.startswith(f"source orders: begins at {variables['orders']} 0: ") for line in said)
        upgrade(prepare(job), spark, said.append)
        reports = run_once(compiled(LIVE), spark, tmp_path / name, variables=here)
        assert sum(report.read["orders"] for report in reports) == len(orders()) - HISTORY["orders"]
        assert priced(tmp_path / f"{name}-out") == expected_priced()
        assert sums(tmp_path / f"{name}-out") == sorted(expected_sums().items())

    # And back to files: what lies there counts as read.
    here = {**variables, "out": str(tmp_path / "files-out")}
    now = {"orders": "now", "rates": "beginning"}
    job = Upgrade(compiled(FROM_FILES), str(tmp_path / "files"), str(tmp_path / "back"), here, positions=now)
    upgrade(prepare(job), spark, print)
    write_json(tmp_path / "the past/orders/new.json", [{"k": "a", "amount": 5, "at": LAST + 10}], 9)
    reports = run_once(compiled(FROM_FILES), spark, tmp_path / "back", variables=here)
    assert sum(report.read["orders"] for report in reports) == 1
    assert sum(report.read["rates"] for report in reports) == HISTORY["rates"]
