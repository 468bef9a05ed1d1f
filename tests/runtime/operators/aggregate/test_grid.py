"""Where tumbling and hopping windows begin and end, beside what clocks show from minute to minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from vsc.plan import Window
from vsc.runtime.operators.aggregate.windows.grid import Grid, grid_of
from vsc.runtime.records import END_OF_TIME

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
ZONES = (
    "Europe/Berlin", "America/New_York", "America/St_Johns", "Pacific/Apia", "America/Havana", "Atlantic/Azores",
    "Australia/Lord_Howe", "Antarctica/Troll", "Antarctica/Casey", "Asia/Kathmandu", "Africa/Monrovia", "Asia/Gaza",
)  # fmt: skip
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def tumbling(size: int, offset: int = 0, zone: str | None = None, months: int = 0) -> Grid:
    return grid_of(Window("tumbling", size, size, 0, offset, zone, months))


def milliseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def bounds(grid: Grid, time: int | str) -> tuple[str, str]:
    """The window that holds this time."""
    at = time if isinstance(time, int) else milliseconds(datetime.fromisoformat(time))
    first, last = grid.reached(np.array([at]))
    assert first == last
    moments = np.concatenate([grid.starts(last), grid.ends(last)]).astype("datetime64[ms]").astype("datetime64[m]")
    begins, ends = moments.astype(str)
    return str(begins), str(ends)


def changes(zone: ZoneInfo) -> Iterator[datetime]:
    """The days near which the clocks of a zone were changed."""
    day, before = datetime(1970, 1, 3, tzinfo=UTC), None
    while day.year < 2027:
        offset = day.astimezone(zone).utcoffset()
        if before not in (None, offset):
            yield day
        day, before = day + timedelta(days=1), offset


@pytest.mark.quick(4)
@pytest.mark.parametrize("zone", ZONES)
def test_a_window_begins_when_clocks_first_show_its_time_or_a_later_one(zone: str) -> None:
    info, found = ZoneInfo(zone), list(changes(ZoneInfo(zone)))
    for day in (found[0], found[-1]):
        minutes = [day - timedelta(days=3) + timedelta(minutes=n) for n in range(4 * 24 * 60)]
        shown = np.array([milliseconds(minute.astimezone(info).replace(tzinfo=UTC)) for minute in minutes])
        times = np.array([milliseconds(minute) for minute in minutes])
        for size, offset in ((DAY, 0), (DAY, 90 * MINUTE), (2 * DAY, DAY)):
            grid = tumbling(size, offset, zone)
            number = grid.number(times)
            assert number.tolist() == np.maximum.accumulate((shown - offset) // size).tolist()
            starts, ends = grid.starts(number), grid.ends(number)
            assert ((starts <= times) & (times < ends)).all()
            begun = np.flatnonzero(np.diff(number)) + 1
            assert (times[begun] - starts[begun] < MINUTE).all()
            assert (grid.ended(times) == number - 1).all()


def test_days_are_as_long_as_the_clocks_make_them() -> None:
    berlin = tumbling(DAY, 0, "Europe/Berlin")
    assert bounds(berlin, "2026-03-29T12:00Z") == ("2026-03-28T23:00", "2026-03-29T22:00")
    assert bounds(berlin, "2026-10-25T12:00Z") == ("2026-10-24T22:00", "2026-10-25T23:00")
    samoa = tumbling(DAY, 0, "Pacific/Apia")  # 2011-12-30 was left out
    assert bounds(samoa, "2011-12-30T09:59Z") == ("2011-12-29T10:00", "2011-12-30T10:00")
    assert bounds(samoa, "2011-12-30T10:00Z") == ("2011-12-30T10:00", "2011-12-31T10:00")


def test_weeks_begin_on_mondays_and_months_on_their_first_day() -> None:
    monday = 4 * DAY
    assert bounds(tumbling(7 * DAY, monday), "2026-11-26T12:00Z") == ("2026-11-23T00:00", "2026-11-30T00:00")
    new_york = tumbling(31 * DAY, 0, "America/New_York", months=1)
    assert bounds(new_york, "2026-03-01T04:59Z") == ("2026-02-01T05:00", "2026-03-01T05:00")
    assert bounds(new_york, "2026-03-01T05:00Z") == ("2026-03-01T05:00", "2026-04-01T04:00")
    assert bounds(tumbling(93 * DAY, 14 * DAY, None, 3), "2024-02-29T00:00Z") == (
        "2024-01-15T00:00",
        "2024-04-15T00:00",
    )
    assert bounds(tumbling(372 * DAY, 0, None, 12), "2024-12-31T23:59Z") == ("2024-01-01T00:00", "2025-01-01T00:00")


@pytest.mark.parametrize("months", [0, 1])
def test_every_event_time_has_a_window_and_is_over_at_the_end_of_time(months: int) -> None:
    grid = tumbling(31 * DAY if months else DAY, 0, "America/New_York", months)
    times = np.array([0, 253_402_300_799_999, *range(253_300_000_000_000, 253_402_300_799_999, 9_999_999_999)])
    number = grid.number(times)
    assert ((grid.starts(number) <= times) & (times < grid.ends(number))).all()
    assert (grid.ended_up_to(np.array([END_OF_TIME])) > times).all()
    assert grid.ended_up_to(np.array([-1, 0])).tolist() == [-1, -1]


def test_the_window_that_holds_1970_begins_then_at_the_earliest() -> None:
    grid = tumbling(DAY, 6 * HOUR)
    assert bounds(grid, 0) == ("1970-01-01T00:00", "1970-01-01T06:00")
    assert bounds(grid, 6 * HOUR) == ("1970-01-01T06:00", "1970-01-02T06:00")
    assert grid.ends_of(np.array([0, 6 * HOUR])).tolist() == [6 * HOUR, 30 * HOUR]
    assert grid.ended_up_to(np.array([6 * HOUR - 1, 6 * HOUR])).tolist() == [-1, 0]
    hopping = grid_of(Window("hopping", 10, 4, 0, 3))
    first, last = hopping.reached(np.array([0, 2, 3, 8, 9]))
    assert (first.tolist(), last.tolist()) == ([-1, -1, -1, -1, 0], [-1, -1, 0, 1, 1])
    assert hopping.starts(np.array([-1, 0, 1])).tolist() == [0, 3, 7]
    assert hopping.ends(np.array([-1, 0, 1])).tolist() == [9, 13, 17]
