"""Where sliding windows and sessions lie, given the times of all rows of a group: no row before it decides."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from vsc.plan.nodes import Window

__all__ = ["Bounds", "Layout", "layout_of"]

Bounds = tuple[int, int]
"""The start and the end of a window, both inclusive: of a session the times of its first and its last row."""


class Layout:
    """The windows of one kind. `times` are always ascending; `size` is the difference or the gap."""

    def __init__(self, size: int) -> None:
        self.size = size

    def reach(self, times: Sequence[int], time: int) -> tuple[int, int]:
        """From where to where (before it) rows have to do with the windows that a row at `time` is part of, or
        divides."""
        raise NotImplementedError

    def found(self, times: Sequence[int], time: int) -> list[Bounds]:
        """The windows that a row at `time`, whether it is among the rows or not, is part of or divides."""
        raise NotImplementedError

    def goes_on(self, time: int, last: int, at: int) -> bool:
        """Whether a row at `at`, the next one beside a row at `last`, may have to do with one at `time`."""
        raise NotImplementedError

    def every(self, times: Sequence[int]) -> list[Bounds]:
        """All windows."""
        return sorted({window for at in times for window in self.found(times, at)})

    def closed(self, window: Bounds, closed: int) -> bool:
        """Whether a window is closed, if they are up to this place in time."""
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

    def units(self, times: Sequence[int]) -> list[Bounds]:
        """What is removed as a whole: sessions, or the rows of one moment."""
        raise NotImplementedError

    def gone(self, closed: int) -> int:
        """The time before which units end that are in no open window."""
        raise NotImplementedError

    def passed(self, times: Sequence[int], closed: int) -> int:
        """How many of the first rows are in no window that is open, if they are closed up to this place in time."""
        raise NotImplementedError


class _Sessions(Layout):
    def closed(self, window: Bounds, closed: int) -> bool:
        return window[1] <= closed

    def goes_on(self, time: int, last: int, at: int) -> bool:
        return abs(at - last) <= self.size

    def reach(self, times: Sequence[int], time: int) -> tuple[int, int]:
        low, high, last = bisect_left(times, time), bisect_right(times, time), time
        while high < len(times) and times[high] - last <= self.size:
            last, high = times[high], high + 1
        first = time
        while low and first - times[low - 1] <= self.size:
            first, low = times[low - 1], low - 1
        return low, high

    def found(self, times: Sequence[int], time: int) -> list[Bounds]:
        low, high = self.reach(times, time)
        return self.units(times[low:high])

    def over(self, time: int, closed: int) -> bool:
        return False

    def partly(self, time: int, closed: int) -> bool:
        return False

    def late(self, windows: Sequence[Bounds], time: int, closed: int) -> bool:
        return any(start <= time <= end <= closed for start, end in windows)

    def fixed(self, window: Bounds, closed: int) -> bool:
        return False

    def units(self, times: Sequence[int]) -> list[Bounds]:
        sessions: list[Bounds] = []
        for at in times:
            if sessions and at - sessions[-1][1] <= self.size:
                sessions[-1] = sessions[-1][0], at
            else:
                sessions.append((at, at))
        return sessions

    def gone(self, closed: int) -> int:
        return closed + 1

    def passed(self, times: Sequence[int], closed: int) -> int:
        count = bisect_right(times, closed)
        while count and count < len(times) and times[count] - times[count - 1] <= self.size:
            count -= 1
        return count


class _Sliding(Layout):
    def closed(self, window: Bounds, closed: int) -> bool:
        return window[0] <= closed

    def goes_on(self, time: int, last: int, at: int) -> bool:
        return abs(at - time) <= self.size + 1

    def reach(self, times: Sequence[int], time: int) -> tuple[int, int]:
        return bisect_left(times, time - self.size - 1), bisect_right(times, time + self.size + 1)

    def found(self, times: Sequence[int], time: int) -> list[Bounds]:
        """Windows that end at a row (the earliest is that of all rows until then), and that begin right after one."""
        size, (low, high) = self.size, self.reach(times, time)
        starts = {max(at - size, 0) for at in times[low:high] if at >= time}
        starts.update(0 for at in times[low:high] if at < time and at < size)
        for at in times[low:high]:
            after = bisect_right(times, at)
            if at <= time and after < len(times) and times[after] <= at + 1 + size:
                starts.add(at + 1)
        lowest = max(time - size, 0)
        return [(start, start + size) for start in sorted(starts) if lowest <= start <= time + 1]

    def over(self, time: int, closed: int) -> bool:
        return time <= closed

    def partly(self, time: int, closed: int) -> bool:
        return max(time - self.size, 0) <= closed

    def late(self, windows: Sequence[Bounds], time: int, closed: int) -> bool:
        return False

    def fixed(self, window: Bounds, closed: int) -> bool:
        return window[0] <= closed

    def units(self, times: Sequence[int]) -> list[Bounds]:
        return [(at, at) for at in dict.fromkeys(times)]

    def gone(self, closed: int) -> int:
        return closed

    def passed(self, times: Sequence[int], closed: int) -> int:
        return bisect_left(times, closed)


_KINDS: dict[str, Callable[[int], Layout]] = {"session": _Sessions, "sliding": _Sliding}


def layout_of(window: Window) -> Layout:
    """The layout of windows like `window`, sliding ones or sessions."""
    return _KINDS[window.kind](window.size)
