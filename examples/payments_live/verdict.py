"""What came out beside what has to come out: which results are right, wrong, missing, or there twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from examples.payments_live.expected import Lateness

__all__ = ["Verdict", "lines", "verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many results there are of each kind; one that nobody expects is wrong."""

    right: int
    wrong: int
    missing: int
    twice: int

    @property
    def good(self) -> bool:
        """Whether each result is there once, and right."""
        return not (self.wrong or self.missing or self.twice)

    def __str__(self) -> str:
        return f"{self.right:,} right, {self.wrong:,} wrong, {self.missing:,} missing, {self.twice:,} twice"


def verdict(expected: Mapping[Any, Any], found: Sequence[tuple[Any, Any]]) -> Verdict:
    """Compares, key by key. Of a key that is there twice, the first result counts as right or wrong."""
    times = Counter(key for key, _ in found)
    first = dict(reversed(found))
    right = sum(key in first and first[key] == value for key, value in expected.items())
    missing = sum(key not in first for key in expected)
    return Verdict(right, len(first) - right, missing, sum(times.values()) - len(times))


def lines(payments: int, changes: int, priced: Verdict, totals: Verdict, late: Lateness) -> list[str]:
    """The report."""
    return [
        f"{payments:,} payments, {changes:,} changes of rates; vsc was killed once",
        f"Kafka, payments with the rate of their own time: {priced}",
        f"PostgreSQL, totals by currency and window:       {totals}",
        f"late: {late.out_of_order:,} payments came after one that was made later; {late.before_their_rate:,} came "
        f"before the change of their rate, and waited for it (grace)",
        f"{late.too_late:,} payments were too late for their window: priced, but in no total",
        f"{late.other_newest:,} payments ({late.other_newest / max(payments, 1):.0%}) would have had another rate in a "
        "table without versions",
    ]
