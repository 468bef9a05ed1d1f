"""Writes the data of the example: ``python -m examples.shop.make_data``. The same at each run.

Six weeks around the night in which the clocks of Berlin go forward. Orders arrive up to two hours late, some prices an
hour.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

DATA = Path(__file__).parent / "data"
BEGIN, DAYS, ORDERS = datetime(2026, 3, 9, tzinfo=UTC), 42, 1500
BERLIN = ZoneInfo("Europe/Berlin")
CURRENCIES = {"EUR": Decimal(1), "USD": Decimal("0.92"), "SEK": Decimal("0.088")}
COUNTRIES = ("DE", "AT", "SE", "US")
SKUS = [f"{kind}-{size}" for kind in ("lamp", "chair", "desk", "shelf") for size in ("s", "m", "l")]
CUSTOMERS = 40

Row = dict[str, Any]


def main() -> None:
    """Writes all files."""
    rng = random.Random(2026)
    (DATA / "rates.csv").write_text("".join(f"{line}\n" for line in rates(rng)))
    write("prices.json", prices(rng))
    write("customers/changes.json", customers(rng))
    found = sorted(orders(rng), key=lambda order: order[0])  # as they arrive
    for number in range(3):
        part = found[number * ORDERS // 3 : (number + 1) * ORDERS // 3]
        write(f"orders/{number + 1}.json", (row for _, row in part))


def rates(rng: random.Random) -> Iterator[str]:
    """What a currency is worth in euros, each afternoon at four."""
    yield "currency;rate;valid_from"
    for day in range(-2, DAYS):
        local = (BEGIN + timedelta(days=day)).astimezone(BERLIN).replace(hour=16, minute=0)
        for currency, worth in CURRENCIES.items():
            moved = worth if currency == "EUR" else worth * Decimal(rng.randint(9500, 10500)) / 10000
            yield f"{currency};{moved:.4f};{local:%d.%m.%Y %H:%M}".replace(".", ",", 1)


def prices(rng: random.Random) -> Iterator[Row]:
    """A first price for each article; then some changes a day, a quarter of which are known an hour late."""
    changes = [(BEGIN - timedelta(days=1), BEGIN - timedelta(days=1), sku) for sku in SKUS]
    for _ in range(4 * DAYS):
        since = BEGIN + timedelta(seconds=rng.randrange(DAYS * 86400))
        changes.append((since + timedelta(hours=rng.choice((0, 0, 0, 1))), since, rng.choice(SKUS)))
    for _, since, sku in sorted(changes, key=lambda change: change[0]):
        currency = rng.choice(list(CURRENCIES))
        price = Decimal(rng.randint(900, 30000)) / 100 / CURRENCIES[currency]
        yield {"sku": sku, "price": f"{price:.2f}", "currency": currency, "valid_from": text(since)}


def customers(rng: random.Random) -> Iterator[Row]:
    """Debezium's events: a snapshot, then removals to other countries, new customers, and some who leave."""
    there: dict[int, Row] = {}
    for number in range(1, CUSTOMERS + 1):
        there[number] = {"id": number, "country": rng.choice(COUNTRIES)}
        yield event("r", None, there[number], BEGIN - timedelta(hours=1))
    for moment in sorted(rng.uniform(0, DAYS * 86400) for _ in range(60)):
        at, number = BEGIN + timedelta(seconds=int(moment)), rng.randint(1, CUSTOMERS + 10)
        before = there.pop(number, None)
        if before is not None and rng.random() < 0.2:
            yield event("d", before, None, at)
            continue
        there[number] = {"id": number, "country": rng.choice(COUNTRIES)}
        yield event("c" if before is None else "u", before, there[number], at)


def event(operation: str, before: Row | None, after: Row | None, at: datetime) -> Row:
    """A change event, without its schema."""
    time = int(at.timestamp() * 1000)
    return {"op": operation, "before": before, "after": after, "source": {"ts_ms": time}, "ts_ms": time + 400}


def orders(rng: random.Random) -> Iterator[tuple[datetime, Row]]:
    """Each order with its arrival."""
    for number in range(ORDERS):
        at = BEGIN + timedelta(milliseconds=rng.randrange(DAYS * 86_400_000))
        late = rng.choice((0, 0, 0, rng.uniform(0, 60), rng.uniform(0, 7000)))
        lines = [{"sku": rng.choice(SKUS), "pieces": rng.randint(1, 4)} for _ in range(rng.randint(1, 3))]
        order = {"order_id": f"o{number:04}", "customer": rng.randint(1, CUSTOMERS + 10), "ordered_at": text(at)}
        yield at + timedelta(seconds=late), order | {"lines": lines}


def text(at: datetime) -> str:
    """A time in UTC, to the millisecond."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write(name: str, rows: Iterator[Row]) -> None:
    """Writes rows as JSON, one a line."""
    path = DATA / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


if __name__ == "__main__":
    main()
