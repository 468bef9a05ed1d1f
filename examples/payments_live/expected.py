"""What has to come out of a story, in plain Python: nothing of vsc is used here."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from examples.payments_live.story import Change, Payment, Story

__all__ = ["Lateness", "Priced", "Total", "lateness", "priced", "totals"]

_WINDOW = 30_000
_TOO_LATE = 90_000
"""The window, its grace, and the time for which its join has held back what came in time. (No delay is near it.)"""


@dataclass(frozen=True, slots=True)
class Priced:
    """A payment's currency, rate and amount in dollars; None: there was no rate."""

    currency: str
    rate: Decimal | None
    usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Total:
    """How many payments a window of a currency has, and what those with a rate come to."""

    payments: int
    usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Lateness:
    """How many payments came after one that was made later, before their rate, too late for their window.

    `other_newest`: for how many, when they came, the newest rate was not the one of their time.
    """

    out_of_order: int
    before_their_rate: int
    too_late: int
    other_newest: int


def priced(story: Story) -> dict[str, Priced]:
    """Each payment by its id, with the rate of its own time."""
    histories = _histories(story.changes)
    return {one.id: _priced(one, histories[one.currency]) for one in story.payments}


def totals(story: Story) -> dict[tuple[str, int], Total]:
    """By currency and beginning of the window; without the payments that are too late for it."""
    results = priced(story)
    found: dict[tuple[str, int], list[Decimal | None]] = defaultdict(list)
    for one in story.payments:
        if one.published - one.paid_at <= _TOO_LATE:
            found[one.currency, one.paid_at // _WINDOW * _WINDOW].append(results[one.id].usd)
    return {place: _total(amounts) for place, amounts in found.items()}


def lateness(story: Story) -> Lateness:
    """What is out of order in the input."""
    histories = _histories(story.changes)
    ordered = sorted(story.payments, key=lambda one: one.published)
    newest = out_of_order = before = other = 0
    for one in ordered:
        out_of_order += one.paid_at < newest
        newest = max(newest, one.paid_at)
        right = _as_of(histories[one.currency], one.paid_at)
        known = [change for change in histories[one.currency] if change.published <= one.published]
        before += right is not None and right.published > one.published
        other += bool(known) and known[-1] != right
    late = sum(one.published - one.paid_at > _TOO_LATE for one in ordered)
    return Lateness(out_of_order, before, late, other)


def _histories(changes: Sequence[Change]) -> Mapping[str, list[Change]]:
    found: dict[str, list[Change]] = defaultdict(list)
    for change in sorted(changes, key=lambda change: change.committed):
        found[change.currency].append(change)
    return found


def _as_of(history: Sequence[Change], at: int) -> Change | None:
    place = bisect_right(history, at, key=lambda change: change.committed)
    return history[place - 1] if place else None


def _priced(one: Payment, history: Sequence[Change]) -> Priced:
    change = _as_of(history, one.paid_at)
    rate = None if change is None else change.after
    usd = None if rate is None else (one.amount * rate).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return Priced(one.currency, rate, usd)


def _total(amounts: Sequence[Decimal | None]) -> Total:
    known = [amount for amount in amounts if amount is not None]
    return Total(len(amounts), sum(known, Decimal(0)) if known else None)
