"""What happens in the live example: payments and changes of rates, and when each of them reaches Kafka.

The same arguments give the same story. Times are ms of event time. A payment comes up to 3 s after it was made, one in
ten up to 25 s (a slow network), one in fifty up to 45 s, and one in two hundred two minutes or more: too late for its
window. No delay is near a limit of the topology, so that what comes out does not depend on how fast the machine is.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

__all__ = ["PAYMENTS", "RATES", "Change", "Payment", "Sent", "Story", "story"]

PAYMENTS, RATES = "payments", "bank.public.rates"
"""The topics."""
_DELAYS = ((0.5, 120_000, 180_000), (2.5, 35_000, 45_000), (12.5, 3_000, 25_000), (100, 0, 3_000))
"""Of payments: up to which percentile, the shortest and the longest delay."""
_CAPTURE = (500, 10_000)
"""The shortest and the longest time from a transaction in the bank's database to Kafka."""
_BETWEEN_CHANGES = 12_000
_SUSPENDED = "JPY"
"""The currency whose rate is deleted for a while."""


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment, the time at which it was made, and the time at which it is in Kafka."""

    id: str
    account: str
    currency: str
    amount: Decimal
    paid_at: int
    published: int


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a row of the bank's table: the old and the new rate, None where there is none."""

    currency: str
    before: Decimal | None
    after: Decimal | None
    committed: int
    published: int
    snapshot: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """A record for Kafka, at the time at which it is published."""

    published: int
    topic: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Story:
    """All payments and changes."""

    payments: tuple[Payment, ...]
    changes: tuple[Change, ...]

    def records(self) -> list[Sent]:
        """What is published, in that order."""
        sent = [*map(_payment, self.payments), *(one for change in self.changes for one in _envelopes(change))]
        return sorted(sent, key=lambda one: one.published)


def story(seed: int, start: int, end: int, payments_per_second: float) -> Story:
    """What is published from `start` to `end`; the first rates are from a snapshot, a minute before."""
    chance = random.Random(seed)
    rates = {c: Decimal(r) for c, r in json.loads((Path(__file__).parent / "data/rates.json").read_text()).items()}
    changes = [change for currency, rate in rates.items() for change in _changes(chance, currency, rate, start, end)]
    payments = tuple(p for p in _payments(chance, list(rates), start, end, payments_per_second) if p.published < end)
    return Story(payments, tuple(sorted(changes, key=lambda change: change.published)))


def _changes(chance: random.Random, currency: str, rate: Decimal, start: int, end: int) -> Iterator[Change]:
    yield Change(currency, None, rate, start - 60_000, start, snapshot=True)
    at, published = start, start
    gone = (start + (end - start) // 3, start + (end - start) // 2) if currency == _SUSPENDED else (end, end)
    old: Decimal | None = rate
    while True:
        at += 1 + int(chance.expovariate(1 / _BETWEEN_CHANGES))
        published = max(published + 1, at + chance.randint(*_CAPTURE))  # in the order of the transactions
        if published >= end:
            return
        new = None if gone[0] <= at < gone[1] else (rate * Decimal(chance.gauss(1, 0.01))).quantize(Decimal("0.000001"))
        if new is None and old is None:
            continue
        yield Change(currency, old, new, at, published)
        rate, old = new or rate, new


def _payments(chance: random.Random, currencies: list[str], start: int, end: int, rate: float) -> Iterator[Payment]:
    weights = [1 / (place + 1) for place in range(len(currencies))]
    at, number = float(start), 0
    while at < end:
        percentile = chance.uniform(0, 100)
        least, most = next((least, most) for up_to, least, most in _DELAYS if percentile <= up_to)
        [currency] = chance.choices(currencies, weights)
        amount = Decimal(chance.randint(100, 500_000)) / 100
        account = f"a{chance.randint(1, 500):03}"
        yield Payment(f"p{number:06}", account, currency, amount, int(at), int(at) + chance.randint(least, most))
        at += chance.expovariate(rate / 1000)
        number += 1


def _payment(one: Payment) -> Sent:
    paid_at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=one.paid_at)
    value = f'"account": "{one.account}", "currency": "{one.currency}", "amount": {one.amount}'
    return Sent(one.published, PAYMENTS, one.id, f'{{{value}, "paid_at": "{paid_at.isoformat()}"}}')


def _envelopes(change: Change) -> Iterator[Sent]:
    """As Debezium writes them with JSON without schemas, decimals as strings; a deletion is followed by a tombstone."""
    key = json.dumps({"currency": change.currency})
    source: Mapping[str, Any] = {
        "connector": "postgresql", "name": "bank", "db": "bank", "schema": "public", "table": "rates",
        "ts_ms": change.committed, "snapshot": "true" if change.snapshot else "false",
    }  # fmt: skip
    operation = "r" if change.snapshot else "d" if change.after is None else "u" if change.before is not None else "c"
    envelope = {
        "before": _row(change.currency, change.before), "after": _row(change.currency, change.after),
        "source": source, "op": operation, "ts_ms": change.published,
    }  # fmt: skip
    yield Sent(change.published, RATES, key, json.dumps(envelope))
    if change.after is None:
        yield Sent(change.published, RATES, key, None)


def _row(currency: str, rate: Decimal | None) -> Mapping[str, str] | None:
    return None if rate is None else {"currency": currency, "rate": str(rate)}
