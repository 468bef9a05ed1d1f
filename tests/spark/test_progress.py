"""What progress says, without Spark."""

from __future__ import annotations

import io
import json

import pytest

from vsc.runtime.errors import BadRowError, SourceError
from vsc.runtime.metrics import RETENTION_NEEDED, Dropped, Group, Metrics, Missed
from vsc.runtime.spark.counters import EpochReport, StateSize, TaskCounters
from vsc.runtime.spark.failures import translated
from vsc.runtime.spark.progress import Display, Tracker, display, duration_text


def report(epoch: int) -> EpochReport:
    source = TaskCounters(0, 0)
    source.read("orders", 10)
    metrics = Metrics()
    metrics.count("orders", Group.DROPPED_RECORDS, Dropped.NULL_KEY, 2)
    source.merge(metrics)
    stage = TaskCounters(1, 1)
    stage.written("sink-0", 8)
    metrics = Metrics()
    metrics.count("priced", Group.MISSED_LOOKUPS, Missed.OLDER_THAN_RETENTION, 3)
    metrics.peak("priced", RETENTION_NEEDED, 5_400_001)
    stage.merge(metrics)
    stage.state(StateSize(rows=5 + epoch, bytes=2048, held=1, blobs=1, waiting=1000 * (2 - epoch)))
    return EpochReport.gather(epoch, [source.row().payload, stage.row().payload])


def shown(style: str) -> list[str]:
    stream = io.StringIO()
    show: Display = display(style, stream)  # type: ignore[arg-type]
    tracker = Tracker.after([EpochReport(0, state={"1-0": StateSize(rows=100, bytes=1024, held=4, waiting=7)})])
    for epoch in (1, 2):
        show.batch(tracker.batch(report(epoch), 500))
    show.finished(tracker.finished())
    show.close()
    return stream.getvalue().splitlines()


def test_json_events() -> None:
    first, second, last = map(json.loads, shown("json"))
    assert {k: v for k, v in first.items() if k != "metrics"} == {
        "event": "batch", "batch": 1, "input_rows": 10, "output_rows": 8, "duration_ms": 500, "state_rows": 106,
        "state_bytes": 3072, "waiting": 1007, "dropped": 2,
    }  # fmt: skip
    assert second["state_rows"] == 107
    assert (last["event"], last["batches"], last["input_rows"], last["held"], last["waiting"], last["dropped"]) == (
        "finished", 2, 20, 5, 7, 4,
    )  # fmt: skip
    assert last["metrics"]["missed_lookups"] == {"priced": {"older_than_retention": 6}}


def test_lines_say_what_was_missed_and_what_would_have_served() -> None:
    first, _, last = shown("lines")
    assert first.startswith(
        "batch 1: 10 rows in, 8 out, 500 ms (20 rows/s), state 106 rows 3.0 KiB, 1,007 records wait for "
        "other sources; dropped 2 null_key"
    )
    assert last.startswith("finished: 2 batches, 20 rows in, 16 out")
    assert (
        "5 records wait for stream time to go on (--drain lets them out); 7 records wait for sources that have" in last
    )
    assert "in 'priced' 6 look-ups were older than the table's history retention" in last
    assert last.endswith("a retention of 1 hour 31 minutes would have served them")
    assert "look-ups were older" in " ".join(shown("bar"))
    assert shown("none") == []


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 ms"), (999, "999 ms"), (1000, "1 second"), (1001, "1 second 1 ms"), (3_600_000, "1 hour"),
     (90_000_000, "1 day 1 hour"), (86_400_001, "1 day 1 hour"), (172_799_999, "2 days")],
)  # fmt: skip
def test_durations_are_rounded_up(ms: int, text: str) -> None:
    assert duration_text(ms) == text


def test_failures_in_the_users_words() -> None:
    quoted = (
        "Job aborted ... PythonException: Traceback (most recent call last):\n  File x\n"
        "vsc.runtime.errors.BadRowError: [VSC901] source 's': row 3 of a.json cannot be read\n  help: mend the row\n"
        "\n\tat org.apache.spark..."
    )
    found = translated(RuntimeError(quoted))
    assert isinstance(found, BadRowError)
    assert (found.message, found.help) == ("source 's': row 3 of a.json cannot be read", "mend the row")
    own = SourceError("nothing there")
    try:
        raise RuntimeError("outer") from own
    except RuntimeError as error:
        assert translated(error) is own
    assert translated(RuntimeError("something else")) is None
