"""Rows of sources that are dropped as bad: how many a run takes, and the first one that could not be read.

Guarantees: a batch with more bad rows than `--max-bad` allows is refused before anything of it shows in a sink; of each
source and run, the first unreadable row is reported; at the end of a run, a source without any usable row is an error.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from vsc.plan.words import counted
from vsc.runtime.errors import BadRowError, ConfigurationError, UnusableInputError
from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.spark.exchange.counters import EpochReport

__all__ = ["BadRows", "MaxBad", "check_usable"]

_BOUND = re.compile(r"(\d+(?:\.\d+)?)\s*%|(\d+)", re.ASCII)
_OF_THE_ROW = {"unreadable", "null_key", "null_timestamp", "negative_timestamp", "in_the_future"}
_NOT_OF_THE_ROW = {reason.value for reason in (Dropped.EXPIRED, Dropped.OUT_OF_ORDER, Dropped.REFUSED, Dropped.LOST)}
"""Why a table, or the system of a sink, refuses rows that are good in themselves, or nobody has read them; all other
reasons at a source are of the row alone."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MaxBad:
    """How many rows of a source may be bad in a batch: a number, or a share of those that were read."""

    text: str
    rows: int | None = None
    share: Fraction | None = None

    @classmethod
    def of(cls, text: str) -> MaxBad:
        """The bound in `text`. ConfigurationError if it is not a bound."""
        bound = _BOUND.fullmatch(text.strip())
        if bound is None or (bound.group(1) and Fraction(bound.group(1)) > 100):
            raise ConfigurationError(
                f"--max-bad {text} is neither a number of rows nor a percentage", "write 100, or 1%, for example"
            )
        if bound.group(2):
            return cls(text.strip(), int(bound.group(2)))
        return cls(text.strip(), None, Fraction(bound.group(1)) / 100)

    def allows(self, bad: int, read: int) -> bool:
        """Whether `bad` of the `read` rows may be bad."""
        return bad <= (self.rows if self.share is None else read * self.share)  # type: ignore[operator]


class BadRows:
    """The bad rows of one run, whose sources have these `places` in messages; an epoch may have `most` of them; None:
    any number."""

    def __init__(self, places: Mapping[str, str], most: str | None) -> None:
        self._places = places
        self._most = None if most is None else MaxBad.of(most)
        self._told: set[str] = set()

    def check(self, report: EpochReport) -> None:
        """Raises BadRowError for the first source that has too many of them in an epoch."""
        if self._most is None:
            return
        for name, place in self._places.items():
            reasons = {r: n for r, n in _dropped(report.metrics, name).items() if r in _OF_THE_ROW}
            bad, read = sum(reasons.values()), report.read.get(name, 0)
            if bad and not self._most.allows(bad, read):
                why = _why(reasons)
                first = min(row for (of, reason), row in report.metrics.examples().items() if of == name)
                what = f"{counted(bad, 'bad row')} among the {counted(read, 'row')} of epoch {report.epoch} ({why})"
                raise BadRowError(
                    f"{place}: {what}, more than --max-bad {self._most.text} allows: nothing of the epoch is written. "
                    f"The first: {first}",
                    "fix the rows, or raise --max-bad; the same command then continues with this epoch",
                )

    def tell(self, report: EpochReport) -> None:
        """Warns of the first row of each source that could not be read."""
        for (name, reason), row in sorted(report.metrics.examples().items()):
            if reason == Dropped.UNREADABLE and name in self._places and name not in self._told:
                self._told.add(name)
                _log.warning(f"{self._places[name]}: {row}. Such rows are dropped, and counted as unreadable")


def check_usable(places: Mapping[str, str], read: Mapping[str, int], metrics: Metrics) -> None:
    """Raises UnusableInputError for the first source of which rows were read, and all of them dropped."""
    for name, place in places.items():
        reasons = {r: n for r, n in _dropped(metrics, name).items() if r not in _NOT_OF_THE_ROW}
        rows = read.get(name, 0)
        if rows and sum(reasons.values()) >= rows:
            all_of = "the only row" if rows == 1 else f"all {counted(rows, 'row')}"
            raise UnusableInputError(
                f"{place}: {all_of} that this run read from it had to be dropped ({_why(reasons)})",
                "compare its columns, key, timestamp, format and options with its files; then run with a new "
                "checkpoint, as this one has read them. --on-bad-row fail names the first bad row",
            )


def _dropped(metrics: Metrics, node: str) -> dict[str, int]:
    """How many records the node has dropped, by reason."""
    found = metrics.as_dict()[Group.DROPPED_RECORDS.value].get(node)
    return found if isinstance(found, dict) else {}


def _why(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {reason}" for reason, n in sorted(reasons.items(), key=lambda of: -of[1]))
