"""Amounts and durations as messages have them."""

from __future__ import annotations

import pytest

from vsc.compiler import compile_topology
from vsc.plan.nodes import Aggregate
from vsc.plan.words import bytes_text, cut, duration, rounded_duration, window


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 ms"), (999, "999 ms"), (1000, "1 second"), (1001, "1 second 1 ms"), (3_600_000, "1 hour"),
     (90_000_000, "1 day 1 hour"), (86_400_001, "1 day 1 hour"), (172_799_999, "2 days")],
)  # fmt: skip
def test_durations_are_rounded_up(ms: int, text: str) -> None:
    assert rounded_duration(ms) == text


def test_a_duration_is_exact() -> None:
    assert duration(90_061_001) == "1 day 1 hour 1 minute 1 second 1 ms"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (64 << 20, "64 MiB"), (1 << 30, "1 GiB"),
     (5 << 40, "5120 GiB")],
)  # fmt: skip
def test_bytes_have_one_decimal_where_it_says_something(size: int, text: str) -> None:
    assert bytes_text(size) == text


@pytest.mark.parametrize(
    "written",
    ["tumbling (size = 1 hour, grace = 5 minutes)", "tumbling (size = 1 week)", "tumbling (size = 7 days)",
     "tumbling (size = 2 weeks, zone = 'Europe/Berlin')", "tumbling (size = 7 days, offset = 1 day, zone = 'UTC')",
     "tumbling (size = 1 month, offset = 14 days, zone = 'Asia/Tokyo', grace = 1 hour)", "tumbling (size = 3 months)",
     "hopping (size = 1 day, advance = 12 hours, offset = 6 hours)", "session (gap = 7 days)"],
)  # fmt: skip
def test_a_window_is_written_as_the_language_has_it(written: str) -> None:
    text = "stream s (k string) from memory () key k; table w = aggregate s group by k window {} select count(*) as n;"
    operation = compile_topology(text.format(written)).node("w").operation
    assert isinstance(operation, Aggregate) and operation.window is not None
    assert window(operation.window) == written


def test_long_names_and_values_are_cut_in_a_message() -> None:
    assert cut(f"'{'9' * 5000}' is not an int, `{'x' * 300}`, ({'a/' * 200})") == (
        f"'{'9' * 79}...' is not an int, `{'x' * 79}...`, ({'a/' * 39}a...)"
    )
    assert cut(f"{'x' * 199} {'y ' * 300}") == f"{'x' * 199} {'y ' * 300}"
