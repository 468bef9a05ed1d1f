"""Where sliding windows and sessions lie, given the times of all rows of a group: no row before it decides."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from vsc.plan.nodes import Window

__all__ = ["Bounds", "Layout", "layout_of"]

Bounds = tuple[int, int]
"""The start and the end of a window, both inclusive: of a session the times of its first and its last row."""


class Layout:
    """The windows of one kind. `times` are always ascending; `units` are what is removed as a whole when time has
    passed it, and always follow from the times: sessions, or the rows of one moment. `size` is the difference or the
    gap."""

    def __init__(self, size: int) -> None:
        self.size = size

    def units(self, times: Sequence[int]) -> list[Bounds]:
        """All of them."""
        raise NotImplementedError

    def found(self, times: Sequence[int], units: Sequence[Bounds], time: int) -> list[Bounds]:
        """The windows that a row at `time`, whether it is among the rows or not, is part of or divides."""
        raise NotImplementedError

    def added(self, units: list[Bounds], time: int) -> None:
        """Changes the units by a row that has come."""
        raise NotImplementedError

    def removed(self, units: list[Bounds], times: Sequence[int], time: int) -> None:
        """Changes the units by a row that has gone."""
        raise NotImplementedError

    def every(self, times: Sequence[int]) -> list[Bounds]:
        """All windows."""
        units = self.units(times)
        return sorted({window for at in times for window in self.found(times, units, at)})

    def closed(self, window: Bounds, closed: int) -> bool:
        """Whether a window is closed, if they are up to this place in time."""
        raise NotImplementedError

    def goes_on(self, time: int, last: int, at: int) -> bool:
        """Whether a row at `at`, the next one beside a row at `last`, may have to do with one at `time`."""
        raise NotImplementedError

    def over(self, time: int, closed: int) -> bool:
        """Whether all windows of a row at `time` are closed, wherever the other rows are."""
        raise NotImplementedError

    def partly(self, time: int, closed: int) -> bool:
        """Whether a window of a row at `time` is closed, wherever the other rows are."""
        raise NotImplementedError

    def late(self, windows: Sequence[Bounds], time: int, closed: int) -> bool:
        """Whether a row at `time` comes too late for the `windows` that there are with it."""
        raise NotImplementedError

    def fixed(self, window: Bounds, closed: int) -> bool:
        """Whether a window that lies where it does, whatever the rows, is closed."""
        raise NotImplementedError

    def gone(self, closed: int) -> int:
        """The time before which units end that are in no open window."""
        raise NotImplementedError


class _Sessions(Layout):
    def units(self, times: Sequence[int]) -> list[Bounds]:
        sessions: list[Bounds] = []
        for at in times:
            if sessions and at - sessions[-1][1] <= self.size:
                sessions[-1] = sessions[-1][0], at
            else:
                sessions.append((at, at))
        return sessions

    def found(self, times: Sequence[int], units: Sequence[Bounds], time: int) -> list[Bounds]:
        return list(units[self._near(units, time)])

    def added(self, units: list[Bounds], time: int) -> None:
        near = self._near(units, time)
        joined = [*units[near], (time, time)]
        units[near] = [(min(start for start, _ in joined), max(end for _, end in joined))]

    def removed(self, units: list[Bounds], times: Sequence[int], time: int) -> None:
        near = self._near(units, time)
        ((start, end),) = units[near]
        place = bisect_left(times, time)
        before = [(start, times[place - 1])] if place and times[place - 1] >= start else []
        behind = [(times[place], end)] if place < len(times) and times[place] <= end else []
        together = before and behind and behind[0][0] - before[0][1] <= self.size
        units[near] = [(start, end)] if together else [*before, *behind]

    def _near(self, units: Sequence[Bounds], time: int) -> slice:
        first = bisect_left(units, time - self.size, key=lambda unit: unit[1])
        return slice(first, bisect_right(units, time + self.size, lo=first, key=lambda unit: unit[0]))

    def closed(self, window: Bounds, closed: int) -> bool:
        return window[1] <= closed

    def goes_on(self, time: int, last: int, at: int) -> bool:
        return abs(at - last) <= self.size

    def over(self, time: int, closed: int) -> bool:
        return False

    def partly(self, time: int, closed: int) -> bool:
        return False

    def late(self, windows: Sequence[Bounds], time: int, closed: int) -> bool:
        return any(start <= time <= end <= closed for start, end in windows)

    def fixed(self, window: Bounds, closed: int) -> bool:
        return False

    def gone(self, closed: int) -> int:
        return closed + 1


class _Sliding(Layout):
    def units(self, times: Sequence[int]) -> list[Bounds]:
        return [(at, at) for at in dict.fromkeys(times)]

    def found(self, times: Sequence[int], units: Sequence[Bounds], time: int) -> list[Bounds]:
        """Windows that end at a row (the earliest is that of all rows until then), and that begin right after one."""
        size = self.size
        near = times[bisect_left(times, time - size - 1) : bisect_right(times, time + size + 1)]
        starts = {max(at - size, 0) for at in near if at >= time or at < size}
        for at in dict.fromkeys(near):
            after = bisect_right(times, at)
            if at <= time and after < len(times) and times[after] <= at + 1 + size:
                starts.add(at + 1)
        lowest = max(time - size, 0)
        return [(start, start + size) for start in sorted(starts) if lowest <= start <= time + 1]

    def added(self, units: list[Bounds], time: int) -> None:
        place = bisect_left(units, (time, time))
        if units[place : place + 1] != [(time, time)]:
            units.insert(place, (time, time))

    def removed(self, units: list[Bounds], times: Sequence[int], time: int) -> None:
        place = bisect_left(times, time)
        if times[place : place + 1] != [time]:
            del units[bisect_left(units, (time, time))]

    def closed(self, window: Bounds, closed: int) -> bool:
        return window[0] <= closed

    def goes_on(self, time: int, last: int, at: int) -> bool:
        return abs(at - time) <= self.size + 1

    def over(self, time: int, closed: int) -> bool:
        return time <= closed

    def partly(self, time: int, closed: int) -> bool:
        return max(time - self.size, 0) <= closed

    def late(self, windows: Sequence[Bounds], time: int, closed: int) -> bool:
        return False

    def fixed(self, window: Bounds, closed: int) -> bool:
        return window[0] <= closed

    def gone(self, closed: int) -> int:
        return closed


_KINDS: dict[str, Callable[[int], Layout]] = {"session": _Sessions, "sliding": _Sliding}


def layout_of(window: Window) -> Layout:
    """The layout of windows like `window`, sliding ones or sessions."""
    return _KINDS[window.kind](window.size)
