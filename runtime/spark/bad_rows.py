"""Rows of sources that are dropped as bad: how many a run takes, and the first one that could not be read.

Guarantees: a batch with more bad rows than `--max-bad` allows is refused before anything of it shows in a sink; of each
source and run, the first unreadable row is told.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from fractions import Fraction

from vsc.plan.nodes import Plan, Source
from vsc.runtime.errors import BadRowError, ConfigurationError
from vsc.runtime.metrics import Dropped, Group
from vsc.runtime.spark.counters import EpochReport
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.progress_text import counted

__all__ = ["BadRows", "MaxBad"]

_BOUND = re.compile(r"(\d+(?:\.\d+)?)\s*%|(\d+)", re.ASCII)
_OF_THE_ROW = {"unreadable", "null_key", "null_timestamp", "negative_timestamp", "in_the_future"}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MaxBad:
    """How many rows of a source may be bad in a batch: a number, or a share of those that were read."""

    text: str
    rows: int | None = None
    share: Fraction | None = None

    @classmethod
    def of(cls, text: str) -> MaxBad:
        """The bound that `text` is. ConfigurationError for what is none."""
        found = _BOUND.fullmatch(text.strip())
        if found is None or (found.group(1) and Fraction(found.group(1)) > 100):
            raise ConfigurationError(
                f"--max-bad {text} is neither a number of rows nor a percentage", "write 100, or 1%, for example"
            )
        if found.group(2):
            return cls(text.strip(), int(found.group(2)))
        return cls(text.strip(), None, Fraction(found.group(1)) / 100)

    def allows(self, bad: int, read: int) -> bool:
        """Whether `bad` of the `read` rows may be bad."""
        return bad <= (self.rows if self.share is None else read * self.share)  # type: ignore[operator]


class BadRows:
    """Those of one run of `plan`, of which a batch may have `most`; None: any number."""

    def __init__(self, plan: Plan, most: str | None) -> None:
        sources = [node for node in plan.nodes if isinstance(node.operation, Source)]
        self._places = {node.name: Options.of_source(node).place for node in sources}
        self._most = None if most is None else MaxBad.of(most)
        self._told: set[str] = set()

    def check(self, report: EpochReport) -> None:
        """BadRowError for the first source that has too many of them in an epoch."""
        if self._most is None:
            return
        dropped = report.metrics.as_dict()[Group.DROPPED_RECORDS.value]
        for name, place in self._places.items():
            found = dropped.get(name)
            reasons = {r: n for r, n in found.items() if r in _OF_THE_ROW} if isinstance(found, dict) else {}
            bad, read = sum(reasons.values()), report.read.get(name, 0)
            if bad and not self._most.allows(bad, read):
                why = ", ".join(f"{n:,} {reason}" for reason, n in sorted(reasons.items(), key=lambda of: -of[1]))
                first = min(row for (of, reason), row in report.metrics.examples().items() if of == name)
                what = f"{counted(bad, 'bad row')} among the {counted(read, 'row')} of batch {report.epoch} ({why})"
                raise BadRowError(
                    f"{place}: {what}, more than --max-bad {self._most.text} allows: nothing of the batch is written. "
                    f"The first: {first}",
                    "fix the rows, or raise --max-bad; the same command then goes on with this batch",
                )

    def tell(self, report: EpochReport) -> None:
        """Warns of the first row of each source that could not be read."""
        for (name, reason), row in sorted(report.metrics.examples().items()):
            if reason == Dropped.UNREADABLE and name in self._places and name not in self._told:
                self._told.add(name)
                _log.warning(f"{self._places[name]}: {row}. Such rows are dropped, and counted as unreadable")
