"""What a text of data means: one by one, and over columns; in scenarios and the driver, in cells and folders."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from vsc.plan.types import DATE, STRING, TIMESTAMP, DecimalType, parse_type
from vsc.runtime.expressions.cast_kernels import cast_column
from vsc.runtime.expressions.casts import caster
from vsc.runtime.expressions.cells import read_cells
from vsc.runtime.text_columns import dates_of, decimals_of, timestamps_of
from vsc.runtime.texts import date_of, decimal_of, seconds_of, timestamp_of, zone_of
from vsc.runtime.values import from_python

BERLIN = zone_of("Europe/Berlin")
MONEY = DecimalType(10, 2)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

DATES = {
    "2026-01-05": date(2026, 1, 5), "0001-01-01": date(1, 1, 1), "9999-12-31": date(9999, 12, 31),
    " 2026-01-05\t": date(2026, 1, 5), "2026-01-05T00:00:00.000Z": date(2026, 1, 5),
    "2026-01-05 00:00:00": date(2026, 1, 5), "2024-02-29": date(2024, 2, 29),
}  # fmt: skip
NO_DATES = [
    "", "x", "12", "2026", "202601", "20260105", "45678", "2026-01", "2026-1-5", "2026-W01-1", "2026-005", "5.1.2026",
    "2026/01/05", "2026-02-30", "2026-13-01", "2026-00-10", "0000-01-01", "10000-01-01", "+2026-01-05", "-2026-01-05",
    "2026-01-05T08:15:00", "2026-01-05 x", "08:15:00", "T08:15", "２０２６-01-05", "2026-01-05\n2026-01-05",
]  # fmt: skip
AT = datetime(2026, 1, 5, 8, 15, tzinfo=UTC)
TIMES = {
    "2026-01-05T08:15:00": AT, "2026-01-05 08:15:00": AT, "2026-01-05T08:15": AT, " 2026-01-05T08:15:00Z ": AT,
    "2026-01-05T08:15Z": AT, "2026-01-05 08:15:00 UTC": AT, "2026-01-05T10:15:00+02:00": AT,
    "2026-01-05T10:15:00+0200": AT, "2026-01-05 10:15:00+02": AT, "2026-01-05T02:45:00.0-05:30": AT,
    "2026-01-05 09:15:00 Europe/Berlin": AT, "2026-01-05": datetime(2026, 1, 5, tzinfo=UTC),
    "2026-01-05T08:15:00.123456789Z": AT + timedelta(microseconds=123456),
    "2026-01-05T08:15:00.5": AT + timedelta(milliseconds=500), "0001-01-01T00:00:00": datetime(1, 1, 1, tzinfo=UTC),
    "9999-12-31T23:59:59.999999Z": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "1969-12-31T23:59:59.5Z": EPOCH - timedelta(milliseconds=500),
}  # fmt: skip
NO_TIMES = [
    *(text for text in NO_DATES if text != "2026-01-05T08:15:00"), "8:15", "08:15", "T08:15:00", "1767607200",
    "1767607200000", "2026-01-05T24:00:00", "2026-01-05T08:60", "2026-01-05T08:15:60", "2026-01-05T8:15:00",
    "2026-01-05T08:15:00.", "2026-01-05T08:15:00+19:00", "2026-01-05T08:15:00+02:99", "2026-01-05T08:15:00 Nowhere",
    "0001-01-01T00:00:00+02:00", "9999-12-31T23:59:59-01:00", "2026-01-05T08:15:00x", "20260105T081500",
]  # fmt: skip
NUMBERS = {
    "1.23": "1.23", "12.5": "12.50", "-7": "-7.00", "1.2300": "1.23", "1e2": "100.00", ".5": "0.50", "+1.": "1.00",
    " 5 ": "5.00", "12345678.90": "12345678.90", "-0": "0.00", "0E-9": "0.00",
}  # fmt: skip
NO_NUMBERS = [
    "", "x", "1.239", "12,5", "1.234,56", "1,234.56", "123456789", "1e8", "1e-3", "NaN", "Infinity", "0x1", "1_0",
    "1 2", "١", "1e99999", "--1",
]  # fmt: skip


@pytest.mark.parametrize("text", DATES)
def test_a_date_is_written_in_one_way(text: str) -> None:
    assert date_of(text) == (DATES[text] - date(1970, 1, 1)).days == from_python(text, DATE)
    assert dates_of(pa.array([text, None])).to_pylist() == [DATES[text], None]


@pytest.mark.parametrize("text", TIMES)
def test_a_timestamp_is_a_date_and_a_time(text: str) -> None:
    assert timestamp_of(text) == (TIMES[text] - EPOCH) // timedelta(microseconds=1) == from_python(text, TIMESTAMP)
    assert timestamps_of(pa.array([text, None])).to_pylist() == [TIMES[text], None]


@pytest.mark.parametrize("text", NUMBERS)
def test_a_decimal_has_all_digits_of_its_text(text: str) -> None:
    assert str(decimal_of(text, MONEY)) == str(from_python(text, MONEY)) == NUMBERS[text]
    assert list(map(str, decimals_of(pa.array([text, None]), MONEY).to_pylist())) == [NUMBERS[text], "None"]


def test_nothing_else_is_one() -> None:
    for texts, one, column, type in (
        (NO_DATES, date_of, dates_of, DATE),
        (NO_TIMES, timestamp_of, timestamps_of, TIMESTAMP),
        (NO_NUMBERS, lambda text: decimal_of(text, MONEY), lambda texts: decimals_of(texts, MONEY), MONEY),
    ):
        assert column(pa.array(texts)).null_count == len(texts)
        for text in texts:
            with pytest.raises(ValueError):
                one(text)
            with pytest.raises(ValueError, match="is not a value of type"):
                from_python(text, type)
            assert read_cells(pa.array([text]), type).to_pylist() == [None], text


def test_a_time_without_an_offset_is_one_of_the_zone() -> None:
    texts = ["2026-07-01T12:00:00", "2026-01-01 12:00", "2026-07-01T12:00:00Z", "2026-03-29 02:30:00",
             "2026-10-25 02:30:00", "2026-07-01"]  # fmt: skip
    wanted = ["2026-07-01T10:00", "2026-01-01T11:00", "2026-07-01T12:00", "2026-03-29T01:30", "2026-10-25T00:30",
              "2026-06-30T22:00"]  # fmt: skip
    times = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in wanted]
    assert timestamps_of(pa.array(texts), BERLIN).to_pylist() == times
    for text, time in zip(texts, times, strict=True):
        assert timestamps_of(pa.array([text]), BERLIN).to_pylist() == [time]


@pytest.mark.parametrize("zone", [UTC, BERLIN, zone_of("America/New_York")], ids=str)
def test_columns_are_read_as_single_texts_are(zone: tzinfo) -> None:
    rng = random.Random(7)
    known: list[str | None] = [*DATES, *NO_DATES, *TIMES, *NO_TIMES, *NUMBERS, *NO_NUMBERS, None]
    made = [f"{rng.randint(1, 9999):04d}-{rng.randint(1, 13):02d}-{rng.randint(1, 31):02d}"
            f"{rng.choice(' T')}{rng.randint(0, 24):02d}:{rng.randint(0, 59):02d}:00{rng.choice(['', '.25', 'Z'])}"
            for _ in range(300)]  # fmt: skip
    for _ in range(50):
        texts = rng.choices([*known, *made], k=rng.choice([1, 2, 5, 20]))
        texts += rng.choices(made, k=rng.choice([0, 3, 30]))
        column = pa.array(texts, pa.string())
        assert dates_of(column).view(pa.int32()).to_pylist() == [or_none(date_of, text) for text in texts]
        found = timestamps_of(column, zone).view(pa.int64()).to_pylist()
        assert found == [or_none(lambda text: timestamp_of(text, zone), text) for text in texts]
        assert decimals_of(column, MONEY).to_pylist() == [or_none(lambda t: decimal_of(t, MONEY), t) for t in texts]


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("350000000000000000000", "decimal(38,18)"), ("6863809985668326", "decimal(38,24)"), ("4", "decimal(38,38)"),
        ("-3.02512093704000900871202203003986999006", "decimal(38,38)"), ("9" * 38, "decimal(38,1)"),
    ],
)  # fmt: skip
def test_a_number_that_does_not_fit_becomes_no_other_one(text: str, type: str) -> None:
    wanted = parse_type(type)
    assert isinstance(wanted, DecimalType)
    with pytest.raises(ValueError):
        decimal_of(text, wanted)
    assert decimals_of(pa.array([text, "0"]), wanted).to_pylist() == [None, 0]
    assert cast_column(pa.array([text, "0"]), STRING, wanted, safe=True).to_pylist() == [None, 0]


def test_decimals_of_all_types_are_read_and_cast_as_single_texts_are() -> None:
    rng = random.Random(8)
    for _ in range(1500):
        precision = rng.choice((38, 38, 37, rng.randint(1, 38)))
        type = DecimalType(precision, rng.choice((0, precision, rng.randint(0, precision))))
        whole, behind = rng.choice((1, precision - type.scale, rng.randint(1, 40))), rng.choice((0, rng.randint(0, 40)))
        text = rng.choice(("", "-")) + (_digits(rng, whole) or "0") + ("." + _digits(rng, behind) if behind else "")
        column = pa.array([text])
        assert decimals_of(column, type).to_pylist() == [or_none(partial(decimal_of, type=type), text)], (text, type)
        cast = caster(STRING, type, safe=True)(text)
        assert cast_column(column, STRING, type, safe=True).to_pylist() == [cast], (text, type)


def _digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices("01234567890000", k=count))


def or_none(one: Any, text: str | None) -> Any:
    try:
        return None if text is None else one(text)
    except ValueError:
        return None


def test_numbers_of_seconds_stay_within_the_years() -> None:
    assert [seconds_of(0), seconds_of(253_402_300_799)] == [0, 253_402_300_799_000_000]
    for count in (253_402_300_800, -62_135_596_801, 1_767_607_200_000, 18_446_744_073_710):
        with pytest.raises(ValueError):
            seconds_of(count)


@pytest.mark.parametrize(
    ("type", "texts", "values"),
    [
        ("int", ["1", " 2", "3.0", "2147483648", "1_0", None], [1, 2, None, None, None, None]),
        ("tinyint", ["1", "300"], [1, None]),
        ("double", ["1.5", "1e400", "-1e400", "Infinity", "-inf", "x", "1,5"],
         [1.5, None, None, float("inf"), float("-inf"), None, None]),
        ("double", ["12d", "5F", "0x1p3", "1e5d", " -.5 ", "1.e-3", "x1", "inf"],
         [None, None, None, None, -0.5, 0.001, None, float("inf")]),
        ("float", ["1.5", "1e39", "1.5f"], [1.5, None, None]),
        ("boolean", ["true", "0", "maybe"], [True, False, None]),
        ("string", ["x", "", None], ["x", "", None]),
        ("decimal(38,0)", ["9" * 38, "9" * 39], [Decimal("9" * 38), None]),
    ],
)  # fmt: skip
def test_cells_of_other_types_are_cast_unless_they_are_too_large(
    type: str, texts: list[Any], values: list[Any]
) -> None:
    assert read_cells(pa.array(texts, pa.string()), parse_type(type)).to_pylist() == values
