"""Which column is the event time, the clause that converts it, and how late rows are: both against plain Python."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vsc.inspect import Wanted, statement, survey
from vsc.inspect.disorder import Disorder, Lateness
from vsc.testing import TopologyTestDriver

NOW = int(datetime(2026, 11, 22, tzinfo=UTC).timestamp() * 1000)
MILLIS = [1_700_000_000_123 + 86_400_007 * i for i in range(40)]
"""Event times of rows, to the millisecond."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def look(path: str, **wanted: Any) -> Any:
    return survey(path, Wanted(now=NOW, **wanted))


def clause_of(name: str, values: pa.Array) -> tuple[str, str | None, list[int]]:
    """The clause for a column, its unit, and the event times that the operators of a run compute by it."""
    pq.write_table(pa.table({"id": pa.array([f"r{i}" for i in range(len(values))]), name: values}), "x.parquet")
    seen = look("x.parquet")
    text = statement(seen, Wanted()).text.replace("'x.parquet', format = 'parquet'", "'x', format = 'json'")
    with TopologyTestDriver(text + "sink x to noop ();") as driver:
        for i, value in enumerate(values.to_pylist()):
            driver.pipe("x", {"id": f"r{i}", name: value})
        times = [record.timestamp for record in driver.read("x")]
    return seen.clocks[0].clause, seen.clocks[0].unit, times


@pytest.mark.parametrize(
    ("type", "scale", "clause", "unit"),
    [
        (pa.int64(), Decimal("0.001"), "at * 1000", "seconds"),
        (pa.int32(), Decimal("0.001"), "cast(at as bigint) * 1000", "seconds"),
        (pa.int64(), Decimal(1), "at", "milliseconds"),
        (pa.int64(), Decimal(1000), "cast(at / 1000.0 as bigint)", "microseconds"),
        (pa.int64(), Decimal(1000000), "cast(at / 1000000.0 as bigint)", "nanoseconds"),
        (pa.float64(), Decimal("0.001"), "try_cast(round(at * 1000) as bigint)", "seconds"),
        (pa.float64(), Decimal(1), "try_cast(at as bigint)", "milliseconds"),
        (pa.float64(), Decimal(1000), "try_cast(at / 1000 as bigint)", "microseconds"),
        (pa.decimal128(13, 3), Decimal("0.001"), "cast(at * 1000 as bigint)", "seconds"),
        (pa.decimal128(20, 0), Decimal(1), "cast(at as bigint)", "milliseconds"),
    ],
)
def test_numbers_are_converted_exactly(type: pa.DataType, scale: Decimal, clause: str, unit: str) -> None:
    whole = pa.types.is_integer(type)
    scaled = [int(m * scale) if whole else m * scale for m in MILLIS]
    values = pa.array([float(v) for v in scaled] if pa.types.is_floating(type) else scaled, type)
    wanted = [int(Decimal(int(m * scale)) / scale) if whole else m for m in MILLIS]
    assert clause_of("at", values) == (clause, unit, wanted)


def test_nanoseconds_of_parquet_are_declared_as_the_times_that_they_are() -> None:
    pq.write_table(pa.table({"at": pa.array([m * 1_000_000 for m in MILLIS], pa.timestamp("ns", "UTC"))}), "x.parquet")
    text = statement(look("x.parquet"), Wanted()).text
    assert "  at timestamp\n" in text
    assert text.endswith("timestamp at;\n")


def rows(*records: dict[str, Any]) -> Any:
    Path("x.json").write_text("".join(json.dumps(record) + "\n" for record in records))
    return look("x.json")


@pytest.mark.parametrize(
    ("record", "chosen"),
    [
        ({"updated_at": "2026-01-01T00:00:00Z", "created_at": "2026-01-01T00:00:00Z"}, "created_at"),
        ({"day": "2026-01-01", "seen_at": "2026-01-01T00:00:00Z"}, "seen_at"),
        ({"valid_to": "2026-01-01T00:00:00Z", "valid_from": "2026-01-01T00:00:00Z"}, "valid_from"),
        ({"recorded_at": "2026-01-02T00:00:00Z", "valid_from": "2026-01-01T00:00:00Z"}, "valid_from"),
        ({"recorded_at": "2026-01-02T00:00:00Z", "effective_date": "2026-01-01"}, "recorded_at"),
        ({"ts": 1_700_000_000, "recorded_at": "2026-01-02T00:00:00Z"}, "recorded_at"),
        ({"birthday": "1991-01-01", "ts": 1_700_000_000}, "ts"),
        ({"customer_id": 1_700_000_000, "amount": 1_650_000_000}, "amount"),
        ({"customer_id": 1_700_000_000}, None),
        ({"count": 7}, None),
        ({"when": "31.12.2025 23:59:58"}, "when"),
    ],
)
def test_the_likeliest_column(record: dict[str, Any], chosen: str | None) -> None:
    clocks = rows(record).clocks
    assert (clocks[0].column.name if clocks else None) == chosen


def test_texts_in_other_forms_are_timestamps_with_their_format() -> None:
    seen = rows({"at": "04.05.2026 12:30"}, {"at": "31.05.2026 00:01"})
    assert (seen.clocks[0].clause, seen.profile.times.failed, seen.profile.times.nulls) == ("at", None, 0)
    assert seen.profile.times.first == int(datetime(2026, 5, 4, 12, 30, tzinfo=UTC).timestamp() * 1000)
    text = statement(seen, Wanted()).text
    assert "  at timestamp\n" in text and "format = 'json', 'timestampFormat' = 'dd.MM.yyyy HH:mm')\n" in text
    assert "--   Its texts have no offset and are read as UTC (`time_zone = 'Europe/Berlin'`" in text


def test_dates_in_other_forms_are_dates_with_their_format() -> None:
    both = statement(rows({"at": "04/05/2026"}), Wanted()).text
    assert "--   They could also be dd/MM/yyyy.\n" in both
    assert "  at date  -- could also be dd/MM/yyyy\n" in both and "'dateFormat' = 'MM/dd/yyyy')" in both
    seen = rows({"at": "13/04/2026", "end": "12/11/2026"}, {"at": "04/05/2026", "end": "01/12/2026"})
    text = statement(seen, Wanted()).text
    assert "'dateFormat' = 'dd/MM/yyyy')" in text and text.endswith("timestamp cast(at as timestamp);\n")
    assert seen.profile.times.last == int(datetime(2026, 5, 4, tzinfo=UTC).timestamp() * 1000)


def test_one_source_has_one_format() -> None:
    iso = {"made": "2026-05-04T12:30:00Z", "local": "04.05.2026 12:30"}
    text = statement(rows(iso), Wanted()).text
    assert "timestampFormat" not in text and "  local string  -- times written as dd.MM.yyyy HH:mm\n" in text
    Path("x.json").write_text(json.dumps(iso) + "\n")
    text = statement(look("x.json", timestamp="local"), Wanted()).text
    assert text.endswith("timestamp to_timestamp(local, 'dd.MM.yyyy HH:mm');\n")
    assert "Its texts have no offset and are read as UTC, with `time_zone` too: other times are in ISO form." in text
    nested = statement(rows({"one": {"at": "2026-05-04T12:30:00Z"}, "local": "04.05.2026 12:30"}), Wanted()).text
    assert "timestampFormat" not in nested
    two = {"a": "04.05.2026 12:30", "b": "04.05.2026 12:30:01", "c": "04.05.2026 12:31"}
    text = statement(rows(two), Wanted()).text
    assert "'timestampFormat' = 'dd.MM.yyyy HH:mm')" in text
    declared = [line.split() for line in text.splitlines() if line.startswith("  ")]
    assert [line[:2] for line in declared] == [["a", "timestamp,"], ["b", "string,"], ["c", "timestamp"]]
    assert " ".join(declared[1][2:]) == "-- times written as dd.MM.yyyy HH:mm:ss"


def test_a_day_that_does_not_exist_is_no_date() -> None:
    text = statement(rows({"at": "30.02.2026 12:30"}, {"at": "28.02.2026 12:30"}), Wanted()).text
    assert "  at string\n" in text and "timestampFormat" not in text


def test_a_marker_for_a_missing_time_is_null() -> None:
    Path("x.csv").write_text("id,at\n1,04.05.2026 12:30\n2,NA\n")
    seen = look("x.csv")
    assert (seen.profile.times.nulls, seen.clocks[0].clause) == (1, "at")
    assert "'timestampFormat' = 'dd.MM.yyyy HH:mm'" in statement(seen, Wanted()).text
    assert "'nullValue' = 'NA'" in statement(seen, Wanted()).text


def test_texts_without_an_offset_are_told() -> None:
    text = statement(rows({"at": "2026-03-02T10:00:00Z"}, {"at": "2026-03-02 10:00"}), Wanted()).text
    assert "--   Its texts have no offset and are read as UTC (`time_zone = 'Europe/Berlin'`" in text
    assert "offset" not in statement(rows({"at": "2026-03-02T10:00:00+01:00"}), Wanted()).text


def test_times_that_are_hardly_meant_do_not_hide_the_others() -> None:
    good = [{"at": f"2026-03-{day:02}T00:00:00Z"} for day in range(1, 21)]
    odd: list[dict[str, Any]] = [
        {"at": "9999-12-31T00:00:00Z"},
        {"at": "1970-01-01T00:00:00Z"},
        {"at": "1899-12-31T00:00:00Z"},
        {"at": None},
    ]
    seen = rows(*good[:10], *odd, *good[10:])
    times = seen.profile.times
    assert (times.nulls, times.before_1970, times.before_1990, times.future) == (1, 1, 2, 1)
    assert (times.first, times.last) == (1_772_323_200_000, 1_773_964_800_000)
    assert times.farthest == 253_402_214_400_000
    assert seen.profile.lateness.late == 0


def test_history_from_before_1990_is_no_exception() -> None:
    seen = rows(*({"at": f"1987-03-{day:02}T00:00:00Z"} for day in (1, 3, 2)))
    assert (seen.profile.times.before_1990, seen.profile.times.first) == (3, 541_555_200_000)
    assert (seen.profile.lateness.late, seen.profile.lateness.longest) == (1, 86_400_000)


def test_numbers_that_are_no_times_have_no_event_time() -> None:
    seen = rows({"at": 1_700_000_000.5}, {"at": float("nan")}, {"at": 1_700_000_001.25})
    assert seen.clocks[0].clause == "try_cast(round(at * 1000) as bigint)"
    assert (seen.profile.times.nulls, seen.profile.times.last) == (1, 1_700_000_001_250)


# ------------------------------------------------------------------------------------------------------- disorder


def expected(files: list[list[int]]) -> Lateness:
    """How late rows are, one by one."""
    newest, late, inside = None, [], 0
    for file in files:
        head = None
        for time in file:
            if newest is not None and time < newest:
                late.append(newest - time)
            inside += head is not None and time < head
            newest, head = max(time, newest or time), max(time, head or time)
    total, late = sum(map(len, files)), sorted(late)
    of_all = sorted([0] * (total - len(late)) + late)

    def least(values: list[int], share: float) -> int:
        return next((v for i, v in enumerate(values, 1) if i >= share * len(values)), 0)

    longest = max(late, default=0)
    return Lateness(total, len(late), inside, least(late, 0.5), least(late, 0.99), longest, least(of_all, 0.99))


@pytest.mark.parametrize("seed", range(20))
def test_lateness_is_that_of_row_by_row(seed: int) -> None:
    chance = random.Random(seed)
    files = [[chance.randint(0, 300) for _ in range(chance.randint(0, 200))] for _ in range(chance.randint(1, 5))]
    disorder = Disorder()
    for number, file in enumerate(files):
        cut = chance.randint(0, len(file))
        for part in (file[:cut], file[cut:]):
            disorder.see(str(number), np.array(part, np.int64))
    assert disorder.found() == expected(files)


def test_lateness_in_numbers() -> None:
    disorder = Disorder()
    disorder.see("a", np.array([100, 90, 110, 50], np.int64))
    disorder.see("b", np.array([60, 120], np.int64))
    assert disorder.found() == Lateness(6, 3, 2, median=50, most=60, longest=60, covers_most=60)


def test_what_is_kept_of_many_different_latenesses_is_bounded_and_never_too_short() -> None:
    disorder = Disorder()
    late = np.arange(1, 3_000_000, 7, dtype=np.int64)
    disorder.see("a", np.array([10_000_000], np.int64))
    disorder.see("a", 10_000_000 - late)
    found = disorder.found()
    assert len(disorder.values) <= 3_001
    assert found.longest == int(late[-1]) == 2_999_998
    assert 0 <= found.median - float(np.median(late)) <= 1_007
    assert 0 <= found.most - float(np.quantile(late, 0.99)) <= 1_007
