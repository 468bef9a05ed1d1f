"""What the small examples give, row by row, worked out by hand from their data: key, value, event time."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

Row = dict[str, object]


def at(clock: str) -> datetime:
    """That time on the examples' day."""
    return datetime.fromisoformat(f"2026-03-02T{clock}:00").replace(tzinfo=UTC)


def _priced(currency: str, name: str, account: str | None, amount: str, usd: float | None) -> Row:
    return {"currency": currency, "id": name, "account": account, "amount": Decimal(amount), "usd": usd}


PRICED = [
    _priced("EUR", "p1", "anna", "100.00", 110.0),
    _priced("GBP", "p2", "ben", "9000.00", 11700.0),
    _priced("EUR", "p3", "anna", "20.00", 25.0),
    _priced("EUR", "p4", "carl", "50.00", 60.0),
    _priced("GBP", "p5", "ben", "70.00", None),
    _priced("EUR", "p6", None, "40000.00", 44000.0),
]

LARGE = [PRICED[1]]


def _corrected(sensor: str, clock: str, raw: float, corrected: float, since: str) -> Row:
    return {"sensor": sensor, "at": at(clock), "raw": raw, "corrected": corrected, "since": at(since)}


CORRECTED = [
    _corrected("s1", "09:55", 10.0, 10.5, "09:00"),
    _corrected("s1", "10:05", 10.0, 15.0, "10:00"),
    _corrected("s2", "10:04", 21.0, 42.0, "09:00"),
    _corrected("s2", "10:07", 20.0, 40.0, "09:00"),
    _corrected("s2", "10:09", 20.0, 41.0, "10:08"),
]

HELD = _corrected("s1", "10:20", 12.0, 18.0, "10:00")
