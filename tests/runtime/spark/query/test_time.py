"""Time on Spark: zones of text, rows too far in the future, units; whatever the session says, all is UTC."""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.runtime.spark.support import compiled, parquet_rows, run_epochs, run_once, write_json
from vsc.runtime.errors import BadRowError, ConfigurationError, SinkError, SourceError, VscRuntimeError
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.formats.zones import OPTION
from vsc.runtime.spark.query.failures import translated

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"
TEXTS = """
stream rows ({columns}) from files (path = '${{in}}', format = '{form}'{more}) timestamp at;
sink rows to files (path = '${{out}}', format = 'parquet', with_timestamp = true);
"""
HOUR = 3_600_000


@pytest.fixture(params=["UTC", "Europe/Berlin"])
def session(request: Any, spark: Any) -> Iterator[Any]:
    """The session in one zone or another: it must not show."""
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, request.param)
    yield spark
    spark.conf.set(ZONE, before)


def ms(text: str) -> int:
    return round(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp() * 1000)


SUMMER, WINTER = "2026-07-01T12:00:00", "2026-01-01 12:00:00.5"
WRITTEN = [SUMMER, WINTER, "2026-07-01T12:00:00Z", "2026-07-01T12:00:00+05:30", "2026-07-01"]
IN_UTC = [ms(SUMMER), ms(WINTER), ms(SUMMER), ms("2026-07-01T06:30"), ms("2026-07-01")]
IN_BERLIN = [
    ms(SUMMER) - 2 * HOUR, ms(WINTER) - HOUR, ms(SUMMER), ms("2026-07-01T06:30"), ms("2026-07-01") - 2 * HOUR,
]  # fmt: skip
EDGES = ["2026-03-29 02:30:00", "2026-10-25 02:30:00"]
"""A time that the clocks in Berlin leave out, and one that they show twice."""
EDGES_IN_BERLIN = [ms("2026-03-29T01:30"), ms("2026-10-25T00:30")]


def run_texts(spark: Any, folder: Path, form: str, written: list[str], more: str = "", **options: Any) -> list[int]:
    columns = "id int, at timestamp, day date"
    (folder / "in").mkdir()
    if form == "json":
        rows = [{"id": i, "at": at, "day": "2026-07-01"} for i, at in enumerate(written)]
        write_json(folder / "in" / "a.json", rows, 1)
    else:
        lines = "".join(f"{i},{at},2026-07-01\n" for i, at in enumerate(written))
        (folder / "in" / "a.csv").write_text("id,at,day\n" + lines)
    plan = compiled(TEXTS.format(columns=columns, form=form, more=more))
    variables = {"in": str(folder / "in"), "out": str(folder / "out")}
    run_once(plan, spark, folder / "ck", variables=variables, now=ms("2026-12-31"), **options)
    found = sorted(parquet_rows(folder / "out"), key=lambda row: row["id"])
    assert all(row["day"] == dt.date(2026, 7, 1) for row in found)
    assert [row["_timestamp"] for row in found] == [round(row["at"].timestamp() * 1000) for row in found]
    return [row["_timestamp"] for row in found]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_text_without_an_offset_is_utc_whatever_the_session_says(session: Any, tmp_path: Path, form: str) -> None:
    assert run_texts(session, tmp_path, form, WRITTEN) == IN_UTC


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_source_may_name_the_zone_of_its_text(session: Any, tmp_path: Path, form: str) -> None:
    more = ", time_zone = 'Europe/Berlin'"
    assert run_texts(session, tmp_path, form, WRITTEN + EDGES, more) == IN_BERLIN + EDGES_IN_BERLIN


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize(("zone", "hours"), [("", 0), (", time_zone = 'Europe/Berlin'", 2)])
def test_a_zone_goes_with_a_format_of_its_own(session: Any, tmp_path: Path, form: str, zone: str, hours: int) -> None:
    more = f"{zone}, 'timestampFormat' = 'dd.MM.yyyy HH:mm'"
    assert run_texts(session, tmp_path, form, ["01.07.2026 12:00"], more) == [ms(SUMMER) - hours * HOUR]


def test_a_cell_that_is_no_time_is_unreadable_in_every_zone(spark: Any, tmp_path: Path) -> None:
    texts = ["2026-07-01T12:00:00", "soon", '"a ""b"" \\n"', "2026-13-01"]
    assert run_texts(spark, tmp_path, "csv", texts, ", time_zone = 'Europe/Berlin'") == [ms(SUMMER) - 2 * HOUR]


def test_casts_and_what_sinks_write_are_utc(session: Any, tmp_path: Path) -> None:
    text = """
stream rows (id int, at string) from files (path = '${in}', format = 'json') timestamp cast(at as timestamp);
stream made = map rows select id, cast(at as timestamp) as a, to_timestamp(at) as b, cast(cast(at as timestamp) as
  string) as c, cast(at as date) as d, hour(cast(at as timestamp)) as h, event_time() as e;
sink made to files (path = '${out}/json', format = 'json');
sink made to files (path = '${out}/csv', format = 'csv');
"""
    write_json(tmp_path / "in" / "a.json", [{"id": 1, "at": "2026-07-01 00:30:00"}], 1)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    run_once(compiled(text), session, tmp_path / "ck", variables=variables, now=ms("2026-12-31"))
    (written,) = (tmp_path / "out/json").glob("part-*")
    at = '"2026-07-01T00:30:00.000Z"'
    assert written.read_text() == (
        f'{{"id":1,"a":{at},"b":{at},"c":"2026-07-01 00:30:00","d":"2026-07-01","h":0,"e":{at}}}\n'
    )
    (written,) = (tmp_path / "out/csv").glob("part-*")
    at = at.strip('"')
    assert written.read_text() == f"id,a,b,c,d,h,e\n1,{at},{at},2026-07-01 00:30:00,2026-07-01,0,{at}\n"


def test_a_zone_that_comes_from_a_variable_is_checked_when_it_is_run(spark: Any, tmp_path: Path) -> None:
    def run(more: str, **variables: str) -> None:
        plan = compiled(TEXTS.format(columns="id int, at timestamp", form="${form}", more=more))
        given = {"in": str(tmp_path), "out": str(tmp_path / "out"), "form": "json", **variables}
        run_once(plan, spark, tmp_path / "ck", variables=given)

    with pytest.raises(SourceError, match=r"source 'rows' \(line 2\): there is no time zone 'Europe/Bärlin'"):
        run(", time_zone = '${zone}'", zone="Europe/Bärlin")
    with pytest.raises(SourceError, match=r"time_zone is for times in text .* not for parquet"):
        run(", time_zone = '${zone}'", zone="UTC", form="parquet")
    with pytest.raises(SourceError, match=f"the option {OPTION!r} is not passed on to Spark") as caught:
        run(", 'timezone' = 'UTC'")
    assert caught.value.help == "write time_zone = '...'"


@pytest.mark.parametrize(
    ("text", "kind", "place"),
    [
        ("stream s (at timestamp) from files (path = '${x}', format = 'orc') timestamp at; sink s to noop ();",
         SourceError, "source 's' (line 1)"),
        ("stream s (value bigint, at timestamp) from rate (rows_per_second = 1) timestamp at;\n"
         "sink s to files (path = '${x}', format = 'orc');", SinkError, "the sink of 's' (line 2)"),
    ],
)  # fmt: skip
def test_times_in_orc_need_a_java_in_utc(
    spark: Any, tmp_path: Path, text: str, kind: type[VscRuntimeError], place: str
) -> None:
    zones = java_class(spark, "java.util.TimeZone")
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone("Europe/Berlin"))
    try:
        with pytest.raises(kind) as caught:
            run_once(compiled(text), spark, tmp_path / "ck", variables={"x": str(tmp_path)})
    finally:
        zones.setDefault(before)
    assert caught.value.message == (
        f"{place}: Spark's Java runs in the time zone Europe/Berlin and reads times in ORC as local times"
    )
    assert not (tmp_path / "ck").exists()


# ---------------------------------------------------------------------------------------------------- the far future

AHEAD = """
stream events (id int, at bigint)
from files (path = '${in}/events', format = 'json', 'maxFilesPerTrigger' = '1'MORE) timestamp at;
table rates (k int, rate int, at bigint) from files (path = '${in}/rates', format = 'json') key k timestamp at
materialize versioned (retention = 1 day);
stream joined = left join events with rates on id % 2 select id, rate;
sink joined to files (path = '${out}', format = 'parquet', with_timestamp = true);
"""
NOW = ms("2026-05-04T10:00")
DAY = 24 * HOUR


class Far:
    """Events of which one is of the year 9999; rates of their time."""

    def __init__(self, spark: Any, folder: Path, more: str = "") -> None:
        self.spark, self.folder = spark, folder
        self.plan = compiled(AHEAD.replace("MORE", more))
        self.variables = {"in": str(folder / "in"), "out": str(folder / "out")}
        write_json(folder / "in/rates/a.json", [{"k": k, "rate": 7 + k, "at": NOW - HOUR} for k in (0, 1)], 1)

    def events(self, name: str, rows: dict[int, int]) -> None:
        order = len(list((self.folder / "in/events").glob("*.json"))) + 1
        write_json(self.folder / f"in/events/{name}.json", [{"id": i, "at": at} for i, at in rows.items()], order)

    def run(self, **arguments: Any) -> dict[str, Any]:
        reports = run_once(self.plan, self.spark, self.folder / "ck", variables=self.variables, **arguments)
        metrics = reports[0].metrics
        for report in reports[1:]:
            metrics.merge(report.metrics)
        return metrics.as_dict()

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in parquet_rows(self.folder / "out"))


YEAR_9999 = ms("9999-12-31")


def test_a_row_of_the_year_9999_stays_out_and_is_named(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    far = Far(spark, tmp_path)
    far.events("a", {1: NOW - 2, 2: YEAR_9999, 3: NOW + DAY + 1})
    far.events("b", {4: NOW + DAY, 5: NOW + DAY + 2})
    with caplog.at_level(logging.WARNING, "vsc"):
        metrics = far.run(now=NOW)
    assert far.ids() == [1, 4]
    assert metrics["dropped_records"] == {"events": {"in_the_future": 3}}
    assert [record.getMessage() for record in caplog.records if "VSC909" in record.getMessage()] == [
        f"[VSC909] source 'events': row 2 of file:{tmp_path}/in/events/a.json has the event time "
        "9999-12-31 00:00:00.000, later than 2026-05-05 10:00:00.000, 1 day ahead of the run's clock. Such rows are "
        "dropped, and counted as in_the_future\n"
        "  help: correct the row; if such times are right, give the source a longer `max_ahead`, or `none`"
    ]


def test_without_a_bound_every_row_is_taken(spark: Any, tmp_path: Path) -> None:
    far = Far(spark, tmp_path, ", max_ahead = none")
    far.events("a", {1: NOW - 2, 2: YEAR_9999})
    assert far.run(now=dt.datetime.fromtimestamp(NOW / 1000, dt.UTC))["dropped_records"] == {}
    assert far.ids() == [1, 2]


def test_the_bound_is_a_setting_of_the_source_and_may_change(spark: Any, tmp_path: Path) -> None:
    far = Far(spark, tmp_path, ", max_ahead = 2 hours")
    far.events("a", {1: NOW + 2 * HOUR, 2: NOW + 2 * HOUR + 1})
    assert far.run(now=NOW)["dropped_records"] == {"events": {"in_the_future": 1}}
    far.plan = compiled(AHEAD.replace("MORE", ", max_ahead = 3 hours"))
    far.events("b", {3: NOW + 3 * HOUR, 4: NOW + 3 * HOUR + 1})
    assert far.run(now=NOW)["dropped_records"] == {"events": {"in_the_future": 1}}
    assert far.ids() == [1, 3]


def test_a_row_too_far_in_the_future_stops_the_run_if_asked_to(spark: Any, tmp_path: Path) -> None:
    far = Far(spark, tmp_path)
    far.events("a", {1: NOW, 2: YEAR_9999})
    with pytest.raises(StreamingQueryException) as raised:
        far.run(now=NOW, on_bad_row="fail")
    error = translated(raised.value)
    assert isinstance(error, BadRowError)
    assert "row 2 of file:" in error.message
    assert error.message.endswith(
        "has the event time 9999-12-31 00:00:00.000, later than 2026-05-05 10:00:00.000 (in_the_future)"
    )


def test_the_clock_of_a_run_is_its_start_and_an_epoch_that_is_repeated_has_its_own(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run, a day later, takes the epoch that the first did not end with the clock of the first."""
    far = Far(spark, tmp_path)
    far.events("a", {1: NOW + DAY + 5})
    keep = Checkpoint.keep

    def failing_keep(checkpoint: Checkpoint, report: Any) -> None:
        raise OSError("a crash behind all sinks")

    monkeypatch.setattr(Checkpoint, "keep", failing_keep)
    with pytest.raises(StreamingQueryException, match="a crash behind all sinks"):
        far.run(now=NOW)
    monkeypatch.setattr(Checkpoint, "keep", keep)
    far.events("b", {2: NOW + DAY + 5})
    assert far.run(now=NOW + DAY)["dropped_records"] == {"events": {"in_the_future": 1}}
    assert far.ids() == [2]


def test_with_the_machine_s_clock_a_backlog_has_one_time_and_an_endless_run_that_of_each_epoch(
    spark: Any, tmp_path: Path
) -> None:
    far = Far(spark, tmp_path)
    far.events("a", {1: NOW})
    far.events("b", {2: NOW})
    before = time.time_ns() // 1_000_000
    reports = run_once(far.plan, spark, tmp_path / "ck", variables=far.variables)
    after = time.time_ns() // 1_000_000
    (now,) = {report.now for report in reports}
    assert len(reports) == 2 and now is not None and before <= now <= after
    assert {name for report in reports for name in report.latest} == {"events", "rates"}
    epochs = [lambda: far.events("c", {3: NOW}), lambda: far.events("d", {4: NOW})]
    endless = run_epochs(far.plan, spark, tmp_path / "ck", epochs, variables=far.variables)
    assert len({report.now for report in endless}) == 2
    assert all(report.now is not None and report.now >= after for report in endless)


def test_a_plan_without_state_has_the_bound_too(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plan = compiled(TEXTS.format(columns="id int, at bigint", form="json", more=""))
    write_json(tmp_path / "in" / "a.json", [{"id": 1, "at": NOW}, {"id": 2, "at": YEAR_9999}], 1)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    with caplog.at_level(logging.WARNING, "vsc"):
        (report,) = run_once(plan, spark, tmp_path / "ck", variables=variables, now=NOW)
    assert report.metrics.as_dict()["dropped_records"] == {"rows": {"in_the_future": 1}}
    assert [row["id"] for row in parquet_rows(tmp_path / "out")] == [1]
    assert "row 2 of file:" in caplog.text


# ------------------------------------------------------------------------------------------------------------- units


@pytest.mark.parametrize(
    ("times", "by", "unit", "clause", "shown"),
    [
        ([NOW // 1000, NOW // 1000 - 60], 1, "seconds", "timestamp at * 1000",
         "all 2 rows have event times from 1970-01-21 13:51:28.740 to 1970-01-21 13:51:28.800"),
        ([NOW * 1000], 1, "microseconds", "timestamp cast(at / 1000.0 as bigint)",
         f"the only row has the event time {NOW * 1000} ms"),
    ],
)  # fmt: skip
def test_times_in_another_unit_are_told_with_what_to_write(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, times: list[int], by: int, unit: str, clause: str,
    shown: str,
) -> None:  # fmt: skip
    far = Far(spark, tmp_path)
    far.events("a", dict(enumerate(times)))
    far.events("b", dict(enumerate(times, start=10)))
    with caplog.at_level(logging.WARNING, "vsc"):
        far.run(now=NOW)
    assert [record.getMessage() for record in caplog.records if "VSC909" in record.getMessage()] == [
        f"[VSC909] source 'events': {shown}: `at` is likely in {unit}\n  help: write `{clause}`"
    ]
    caplog.clear()
    right = Far(spark, tmp_path / "right")
    right.plan = compiled(AHEAD.replace("MORE", "").replace("timestamp at;", clause + ";"))
    right.events("a", dict(enumerate(times)))
    with caplog.at_level(logging.WARNING, "vsc"):
        assert right.run(now=NOW)["dropped_records"] == {}
    assert "VSC909" not in caplog.text
    assert right.ids() == list(range(len(times)))


def test_small_made_up_times_are_not_remarked_on(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    far = Far(spark, tmp_path)
    far.events("a", {1: 0, 2: 1000, 3: 5})
    with caplog.at_level(logging.WARNING, "vsc"):
        far.run()
    assert "VSC909" not in caplog.text


def test_a_clock_is_a_time(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="`now` is a time, not 'today'"):
        Far(spark, tmp_path).run(now="today")
