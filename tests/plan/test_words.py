"""Amounts and durations as messages have them."""

from __future__ import annotations

import pytest

from vsc.plan.words import bytes_text, duration, rounded_duration


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
