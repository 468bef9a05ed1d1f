"""What progress says, without Spark."""

from __future__ import annotations

import io
import json
from collections import Counter
from datetime import datetime
from urllib.request import urlopen

import pytest
from rich.console import Console

from tests.runtime.spark.support import compiled
from vsc.plan.words import counted
from vsc.runtime.errors import BadRowError, ConfigurationError, SourceError, UnusableInputError
from vsc.runtime.metrics import GRACE_NEEDED, HELD_RECORDS, RETENTION_NEEDED, Dropped, Group, Metrics, Missed
from vsc.runtime.spark.exchange.counters import EpochReport, StateSize, StoreState, TaskCounters
from vsc.runtime.spark.query.failures import translated
from vsc.runtime.spark.report import progress_bar
from vsc.runtime.spark.report.bad_rows import check_usable
from vsc.runtime.spark.report.displays import JsonDisplay, display
from vsc.runtime.spark.report.exporter import PrometheusDisplay, address
from vsc.runtime.spark.report.progress import Activity, Display, Lags, Phase, Tracker, sink_names, spent
from vsc.runtime.spark.report.progress_bar import BarDisplay
from vsc.runtime.spark.report.progress_text import notes, stopping_text

PLAN = compiled("stream priced (k string) from memory () key k; sink priced to noop ();")


def report(epoch: int, outstanding: Lags | None = None) -> EpochReport:
    source = TaskCounters(0, 0)
    source.read["orders"] += 10
    metrics = Metrics()
    metrics.count("orders", Group.DROPPED_RECORDS, Dropped.NULL_KEY, 2)
    source.metrics.merge(metrics)
    stage = TaskCounters(1, 1)
    stage.written["sink-0"] += 8
    metrics = Metrics()
    metrics.count("priced", Group.MISSED_LOOKUPS, Missed.OLDER_THAN_RETENTION, 3)
    metrics.peak("priced", RETENTION_NEEDED, 5_400_001)
    metrics.peak("priced", HELD_RECORDS, 1_003)
    metrics.late("paid", 1)
    metrics.peak("paid", GRACE_NEEDED, 6)
    stage.metrics.merge(metrics)
    store = StoreState(rows=5 + epoch, bytes=99, held=1, stream_time=epoch)
    stores = {"rates": store}
    stage.state = StateSize(rows=5 + epoch, bytes=2048, held=1, blobs=1, waiting=1000 * (2 - epoch), stores=stores)
    stage.restored = int(epoch == 1)
    found = EpochReport.gather(epoch, [source.row().payload, stage.row().payload])
    found.outstanding = {name: dict(units) for name, units in (outstanding or {}).items()}
    return found


def shown(style: str) -> list[str]:
    stream = io.StringIO()
    show: Display = display(style, stream)  # type: ignore[arg-type]
    old = {"rates": StoreState(rows=100, bytes=100, held=4, stream_time=70)}
    tracker = Tracker.after(
        PLAN, [EpochReport(0, state={"1-0": StateSize(rows=100, bytes=1024, held=4, waiting=7, stores=old)})], 0.0
    )
    for epoch in (1, 2):
        show.batch(tracker.batch(report(epoch, {"orders": {"offsets": 4.0}}), 500))
    show.finished(tracker.finished())
    show.close()
    return stream.getvalue().splitlines()


def test_json_events() -> None:
    first, second, last = map(json.loads, shown("json"))
    assert {k: v for k, v in first.items() if k != "metrics"} == {
        "event": "batch", "batch": 1, "input_rows": 10, "output_rows": 8, "duration_ms": 500, "state_rows": 106,
        "state_bytes": 3072, "waiting": 1007, "dropped": 2, "late": 0, "missed": 3, "held": 5,
        "partitions": 1, "restored": 1, "sinks": {"priced": {"rows": 8}},
        "sources": {"orders": {"rows": 10, "lag": {"offsets": 4.0}, "clock": None},
                    "priced": {"rows": 0, "lag": {}, "clock": None}},
        "stores": {"rates": {"rows": 106, "bytes": 199, "held": 5, "stream_time": 1, "behind": None}},
    }  # fmt: skip
    assert second["state_rows"] == 107
    assert (last["event"], last["batches"], last["input_rows"], last["held"], last["waiting"], last["dropped"]) == (
        "finished", 2, 20, 5, 7, 4,
    )  # fmt: skip
    assert last["metrics"]["missed_lookups"] == {"priced": {"older_than_retention": 6}}


def test_lines_say_what_was_missed_and_what_would_have_served() -> None:
    first, _, *summary, last = shown("lines")
    assert first.startswith(
        "epoch 1: 10 rows in, 8 out, 500 ms (20 rows/s), state 106 entries 3 KiB, 1 of 1 partition restored, 5 held, "
        "behind: orders 4 offsets, 1,007 records wait for other sources; dropped 2 null_key"
    )
    assert summary == [
        "  read      orders 20",
        "  written   priced 16",
        "  lag       orders 4 offsets",
        "  dropped   4 null_key in 'orders'",
        "  not found 6 older_than_retention in 'priced'",
        "  late      2 versions in 'paid'",
        "  held      rates 5",
        "  at most   1,003 held in a partition of 'priced'",
        "  state     rates 107 entries 199 B up to 1970-01-01 00:00:00.002",
        "  restored  1 of 2 partitions",
    ]
    assert last.startswith("finished: 2 epochs, 20 rows in, 16 out")
    assert (
        "5 records are held until stream time advances (--drain emits them); 7 records wait for sources that have"
        in last
    )
    assert "in 'priced' 6 look-ups were older than the table's history retention" in last
    assert "a retention of 1 hour 31 minutes would have been enough for them" in last
    assert "with `grace 6 ms` the join would have waited for them; in a join with a table, `correct" in last
    assert "null_key" not in last and "older_than_retention" not in last  # the summary has them
    bar = " ".join(shown("bar"))
    assert "look-ups were older" in bar and bar.count("null_key") == 1
    assert shown("none") == []


def test_the_summary_says_what_took_the_time() -> None:
    stream = io.StringIO()
    show, tracker = display("lines", stream), Tracker()
    seconds = {"stage 0 process": 0.1, "stage 1 open": 0.05, "stage 1 process": 0.2, "stage 1 commit": 0.05}
    for epoch, more in enumerate(({"stage 2 process": 0.1, "stage 2 commit": 0.1}, {})):
        one = EpochReport(epoch)
        one.seconds.update(seconds | more)
        show.batch(tracker.batch(one, 1000, 700))
    show.finished(tracker.finished())
    wanted = "  took      stages 30 %, planning and logs 30 %, sinks and shuffle 20 %, reading 10 %, state 10 %\n"
    assert wanted in stream.getvalue()
    # Tasks that ran at the same time as others may add up to more than the job took.
    assert spent({"stage 0 process": 0.8, "stage 1 commit": 0.1}, 1000, 700) == {
        "reading": 800.0, "stages": 0.0, "state": 100.0, "sinks and shuffle": 0.0, "planning and logs": 100.0,
    }  # fmt: skip


def test_versions_that_a_join_may_have_missed_are_told_with_what_to_do() -> None:
    one = EpochReport(1)
    one.metrics.late("priced", 1)
    one.metrics.peak("priced", GRACE_NEEDED, 6)
    one.metrics.late("sold", 1_200)
    one.metrics.peak("sold", GRACE_NEEDED, 5_400_001)
    came = "of the right side came after records of their time had been joined, which may be wrong now: with"
    corrected = "in a join with a table, `correct ... within {}` would have corrected the results"
    sold = "`grace 1 hour 31 minutes` the join would have waited for them; " + corrected.format("1 hour 31 minutes")
    assert notes(one.metrics) == [
        "late versions 1 in 'priced', 1,200 in 'sold'",
        f"in 'priced' 1 row {came} `grace 6 ms` the join would have waited for it; {corrected.format('6 ms')}",
        f"in 'sold' 1,200 rows {came} {sold}",
    ]
    stream = io.StringIO()
    show, tracker = display("lines", stream), Tracker()
    show.batch(tracker.batch(one, 1000))
    show.finished(tracker.finished())
    lines = stream.getvalue().splitlines()
    assert "  late      1 version in 'priced', 1,200 versions in 'sold'" in lines
    assert lines[-1].endswith(sold)


def test_records_that_come_too_late_for_a_distinct_are_told_with_the_grace_that_they_need() -> None:
    metrics = Metrics()
    metrics.count("once", Group.DROPPED_RECORDS, Dropped.EXPIRED, 1)
    metrics.peak("once", GRACE_NEEDED, 5_400_001)
    metrics.count("twice", Group.DROPPED_RECORDS, Dropped.EXPIRED, 3)
    metrics.peak("twice", GRACE_NEEDED, 7)
    text = "that came too late to be compared, whether they repeat one or not: a grace of"
    assert notes(metrics) == [
        "dropped 1 expired in 'once', 3 expired in 'twice'",
        f"'once' dropped 1 record {text} 1 hour 31 minutes would have been enough",
        f"'twice' dropped 3 records {text} 7 ms would have been enough",
    ]


def test_one_is_singular() -> None:
    one = EpochReport(0, read=Counter(orders=1), written=Counter({"sink-0": 1}))
    one.metrics.count("priced", Group.MISSED_LOOKUPS, Missed.OLDER_THAN_RETENTION, 1)
    one.metrics.peak("priced", RETENTION_NEEDED, 1000)
    one.state["1-0"] = StateSize(1, 10, 1, 1, 1, {"rates": StoreState(1, 10, 1)})
    stream = io.StringIO()
    show, tracker = display("lines", stream), Tracker()
    one.outstanding = {"orders": {"files": 1.0, "bytes": 2048.0}}
    show.batch(tracker.batch(one, 500))
    show.finished(tracker.finished())
    first, *_, last = stream.getvalue().splitlines()
    assert first.startswith(
        "epoch 0: 1 row in, 1 out, 500 ms (2 rows/s), state 1 entry 10 B, 1 held, behind: orders 1 file 2 KiB, "
        "1 record waits for other sources"
    )
    assert "  lag       orders 1 file 2 KiB\n" in stream.getvalue()
    assert "  state     rates 1 entry 10 B\n" in stream.getvalue()
    assert last.startswith("finished: 1 epoch, 1 row in, 1 out, ")
    assert last.endswith(
        "1 record is held until stream time advances (--drain emits it); "
        "1 record waits for sources that have not been read to their end; "
        "in 'priced' 1 look-up was older than the table's history retention: the table is read ahead of the stream, "
        "and a retention of 1 second would have been enough for it"
    )
    assert [counted(n, noun) for n, noun in ((0, "batch"), (1, "batch"), (2, "batch"))] == [
        "0 batches", "1 batch", "2 batches",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("style", "told"),
    [
        ("lines", "finishing epoch 12, again to stop now\n"),
        ("json", '{"event": "stopping", "batch": 12}\n'),
        ("none", ""),
    ],
)
def test_a_run_says_once_that_it_stops(style: str, told: str) -> None:
    stream = io.StringIO()
    show: Display = display(style, stream)  # type: ignore[arg-type]
    for phase in (Phase.WORKING, Phase.STOPPING, Phase.STOPPING):
        show.doing(Activity(phase, 12))
    assert stream.getvalue() == told
    assert stopping_text(Activity(Phase.STOPPING)) == "stopping"


def test_a_run_takes_from_its_very_beginning_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    tracker = Tracker.after(PLAN, [], clock.now - 25)
    assert tracker.finished().duration_ms == 25_000


class Clock:
    """The time in the live lines."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("vsc.runtime.spark.report.progress_bar.time.monotonic", lambda: self.now)


def frame(show: BarDisplay, width: int) -> list[str]:
    """What the live lines are on a terminal of that width."""
    options = Console(width=width, file=io.StringIO()).options
    return [line.plain for line in show.__rich_console__(Console(file=io.StringIO()), options)]


def test_live_lines_show_what_matters_however_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, show = Clock(monkeypatch), BarDisplay(io.StringIO())
    clock.now += 4
    assert frame(show, 80) == ["⠋ starting Spark, 4 seconds"]
    tracker = Tracker()
    lags = {"orders": {"files": 3.0, "bytes": 2048.0}, "rates": {"files": 1.0, "bytes": 1.0}}
    for epoch in (1, 2):
        show.batch(tracker.batch(report(epoch, lags), 500))
    show.doing(Activity(Phase.WORKING, 3))
    clock.now += 61.1
    assert frame(show, 80) == [
        "⠙ epoch 3, 1 minute 1 second · 20 rows in 1 minute 5 seconds",
        "  20 rows/s · lag 4 files · dropped 4 · missed 6 · held 1 · state 7 entries",
    ]
    assert frame(show, 60) == [
        "⠙ epoch 3, 1 minute 1 second · 20 rows in 1 minute 5 seconds",
        "  20 rows/s · lag 4 files · dropped 4 · missed 6 · held 1",
        "  state 7 entries",
    ]
    assert all(len(line) <= 20 for line in frame(show, 20))
    show.doing(Activity(Phase.STOPPING, 3))
    assert frame(show, 80)[0] == "⠙ finishing epoch 3, again to stop now"


def test_work_moves_and_idleness_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, show = Clock(monkeypatch), BarDisplay(io.StringIO())

    def marks() -> set[str]:
        found = set()
        for _ in range(5):
            clock.now += 0.101
            found.add(frame(show, 80)[0][0])
        return found

    for activity in (Activity(Phase.STARTING), Activity(Phase.PREPARING), Activity(Phase.WORKING, 3)):
        show.doing(activity)
        assert len(marks()) == 5
    show.doing(Activity(Phase.IDLE))
    assert len(marks()) == 5  # between two batches
    clock.now += 1
    assert marks() == {"-"}
    clock.now += 10
    assert frame(show, 80) == ["- idle for 12 seconds, waiting for new data"]


def test_big_numbers_are_short() -> None:
    assert [progress_bar._short(n) for n in (0, 9999, 10_000, 999_940, 999_950, 4_512_345, 7.8e9, 2e13)] == [
        "0", "9,999", "10.0k", "999.9k", "1.0M", "4.5M", "7.8G", "20,000.0G",
    ]  # fmt: skip


def test_rows_that_could_all_not_be_used_are_an_error() -> None:
    places = {"priced": "source 'priced' (line 1)"}
    metrics = Metrics()
    metrics.count("priced", Group.DROPPED_RECORDS, Dropped.UNREADABLE, 3)
    metrics.count("priced", Group.DROPPED_RECORDS, Dropped.NULL_KEY, 7)
    check_usable(places, {"priced": 11}, metrics)
    check_usable(places, {}, Metrics())
    with pytest.raises(UnusableInputError, match=r"source 'priced' \(line 1\): all 10 rows .* \(7 null_key, 3 unread"):
        check_usable(places, {"priced": 10}, metrics)
    late = Metrics()  # good rows, which came late
    late.count("priced", Group.DROPPED_RECORDS, Dropped.EXPIRED, 1)
    check_usable(places, {"priced": 1}, late)


def test_reports_come_back_from_their_json_with_the_stores() -> None:
    one = report(3)
    assert EpochReport.from_dict(json.loads(json.dumps(one.as_dict()))) == one
    old = {"rows": 1, "bytes": 2, "held": 3, "blobs": 4}
    assert StateSize.load(old) == StateSize(1, 2, 3, 4, 0)


def test_a_sink_is_called_as_its_node_as_far_as_that_tells_it_from_others() -> None:
    sinks = [("a", "noop"), ("b", "console"), ("a", "console"), ("b", "console")]
    text = "stream a (k string) from memory () key k; stream b = filter a where true;\n"
    plan = compiled(text + "".join(f"sink {node} to {kind} ();\n" for node, kind in sinks))
    assert list(sink_names(plan).values()) == ["a to noop", "b to console", "a to console", "b to console 2"]


def test_what_is_still_to_be_read_is_told_by_source() -> None:
    one = report(1)
    one.outstanding = {"orders": {"files": 3, "bytes": 99}}
    assert EpochReport.from_dict(json.loads(json.dumps(one.as_dict()))) == one
    event = Tracker.after(PLAN, [], 0.0).batch(one, 500)
    assert event.lags == {"orders": {"files": 3, "bytes": 99}, "priced": {}}


def test_logged_events_have_a_time_and_a_level() -> None:
    stream = io.StringIO()
    JsonDisplay(stream, logged=True).batch(Tracker().batch(report(1), 500))
    line = json.loads(stream.getvalue())
    assert (line["level"], line["event"]) == ("info", "batch")
    assert datetime.fromisoformat(line["time"]).tzinfo is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prometheus:9400", ("127.0.0.1", 9400)),
        ("prometheus:0.0.0.0:1", ("0.0.0.0", 1)),
        ("prometheus:[::1]:2", ("::1", 2)),
    ],
)
def test_metrics_are_served_on_an_address(text: str, expected: tuple[str, int]) -> None:
    assert address(text) == expected


@pytest.mark.parametrize("text", ["9400", "prometheus:", "prometheus:x", "prometheus:70000", "statsd:1"])
def test_a_wrong_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--metrics takes prometheus:PORT"):
        address(text)


def test_prometheus_reads_the_newest_epoch_and_counts_from_the_start() -> None:
    show = PrometheusDisplay("127.0.0.1", 0)
    tracker = Tracker.after(PLAN, [EpochReport(0, state={"1-0": StateSize(waiting=7)})], 0.0)
    try:
        for epoch in (1, 2):
            show.batch(tracker.batch(report(epoch, {"orders": {"offsets": 4.0}}), 500))
        with urlopen(f"http://127.0.0.1:{show.port}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        with pytest.raises(ConfigurationError, match=f"metrics cannot be served on 127.0.0.1:{show.port}"):
            PrometheusDisplay("127.0.0.1", show.port)
    finally:
        show.close()
    assert {
        "vsc_batches_total 2.0", "vsc_partitions_total 2.0", "vsc_restored_partitions_total 1.0",
        "vsc_epoch 2.0", "vsc_waiting_records 7.0", "vsc_batch_duration_seconds 0.5",
        'vsc_input_rows_total{source="orders"} 20.0', 'vsc_output_rows_total{sink="priced"} 16.0',
        'vsc_dropped_records_total{node="orders",reason="null_key"} 4.0',
        'vsc_missed_lookups_total{node="priced",reason="older_than_retention"} 6.0',
        'vsc_state_rows{store="rates"} 7.0', 'vsc_held_records{store="rates"} 1.0',
        'vsc_stream_time_ms{store="rates"} 2.0', 'vsc_source_lag{source="orders",unit="offsets"} 4.0',
        'vsc_late_versions_total{node="paid"} 2.0', 'vsc_peak{name="grace_needed",node="paid"} 6.0',
        'vsc_peak{name="retention_needed",node="priced"} 5.400001e+06',
    } <= set(lines)  # fmt: skip


def test_failures_in_the_users_words() -> None:
    quoted = (
        "Job aborted ... PythonException: Traceback (most recent call last):\n  File x\n"
        "vsc.runtime.errors.BadRowError: [VSC901] source 's': row 3 of a.json cannot be read\n  help: fix the row\n"
        "\n\tat org.apache.spark..."
    )
    found = translated(RuntimeError(quoted))
    assert isinstance(found, BadRowError)
    assert (found.message, found.help) == ("source 's': row 3 of a.json cannot be read", "fix the row")
    own = SourceError("nothing there")
    try:
        raise RuntimeError("outer") from own
    except RuntimeError as error:
        assert translated(error) is own
    assert translated(RuntimeError("something else")) is None
