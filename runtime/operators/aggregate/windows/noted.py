"""Windows of a batch, in lists: those of one group that it reaches, and those that have come to something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vsc.runtime.operators.aggregate.groups.state import Windows

__all__ = ["KeyWindows", "Noted"]


@dataclass(slots=True)
class KeyWindows:
    """The windows of one group that the batch can reach, by start; `before`: time and state of those in the store.

    What they hold are states, see `groups.derived`.
    """

    kb: bytes
    starts: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)
    before: dict[int, tuple[int, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class Noted:
    """Windows of many groups: place in time, start, group; time and value; whether the store has them."""

    place: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    kb: list[bytes] = field(default_factory=list)
    time: list[int] = field(default_factory=list)
    value: list[Any] = field(default_factory=list)
    stored: list[bool] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.place)

    def of_group(self, key: KeyWindows, places: Sequence[int], own: slice) -> None:
        """Adds windows of a group, whose windows are at `places`."""
        self.place += places[own]
        starts = key.starts[own]
        self.start += starts
        self.kb += [key.kb] * len(starts)
        self.time += key.times[own]
        self.value += key.states[own]
        self.stored += [start in key.before for start in starts] if key.before else [False] * len(starts)

    def of_store(self, windows: Windows, held: tuple[Sequence[int], Sequence[Any]] | None = None) -> None:
        """Adds windows of the store; `held`: their times and values, if those are needed."""
        times, values = held or ([-1] * len(windows),) * 2
        self.place += windows.place.tolist()
        self.start += windows.start.tolist()
        self.kb += windows.kb
        self.time += times
        self.value += values
        self.stored += [True] * len(windows)

    def extend(self, others: Noted) -> None:
        """Adds other windows."""
        for mine, theirs in zip(self._lists(), others._lists(), strict=True):
            mine += theirs

    def take(self, rows: Sequence[int]) -> Noted:
        """The windows at `rows`."""
        return Noted(*([one[row] for row in rows] for one in self._lists()))

    def _lists(self) -> tuple[list[Any], ...]:
        return self.place, self.start, self.kb, self.time, self.value, self.stored

    def windows(self) -> Windows:
        """What they are, as columns."""
        return Windows(np.array(self.place, dtype=np.int64), np.array(self.start, dtype=np.int64), self.kb)
