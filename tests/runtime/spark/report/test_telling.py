"""What a real query tells: in its own events, in Spark's progress, and to Prometheus."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.request import urlopen

import pytest
from pyspark.sql.streaming.listener import StreamingQueryListener

from tests.runtime.spark.support import compiled, write_json
from vsc.runtime.spark.query.preflight import prepare
from vsc.runtime.spark.query.run import Run, run
from vsc.runtime.spark.report.displays import Both, JsonDisplay, LinesDisplay
from vsc.runtime.spark.report.exporter import PrometheusDisplay
from vsc.runtime.spark.report.observed import is_heard
from vsc.runtime.spark.report.progress import Display

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark

TOPOLOGY = """
table rates (currency string, rate bigint, at bigint) from files (path = '${in}/rates', format = 'json')
  key currency timestamp at materialize versioned (retention = 10 ms);
stream orders (id bigint, currency string, at bigint) from files (
  path = '${in}/orders', format = 'json', 'maxFilesPerTrigger' = '1') key id timestamp at;
stream priced = join orders with rates on currency grace 5 ms select rate;
table counts = aggregate orders group by currency window session (gap = 10 ms, grace = 0 ms) select count(*) as n;
sink priced to noop (); sink counts to noop ();
"""


class Listener(StreamingQueryListener):
    """Keeps what Spark's progress has of the tasks."""

    def __init__(self) -> None:
        self.observed: list[dict[str, Any]] = []
        self.ended = False

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.observed.append(json.loads(event.progress.json).get("observedMetrics", {}))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self.ended = True


class Screen(Display):
    """Keeps what Prometheus would read at the end."""

    def __init__(self) -> None:
        self.exporter = PrometheusDisplay("127.0.0.1", 0)
        self.scraped = ""

    def doing(self, activity: object) -> None:
        pass

    def batch(self, event: object) -> None:
        pass

    def finished(self, event: object) -> None:
        with urlopen(f"http://127.0.0.1:{self.exporter.port}/metrics", timeout=20) as answer:
            self.scraped = answer.read().decode()

    def close(self) -> None:
        self.exporter.close()


def test_a_run_tells_the_same_everywhere(spark: SparkSession, tmp_path: Path) -> None:
    write_json(tmp_path / "in/rates/0.json", [{"currency": "a", "rate": 1, "at": 0}], 0)
    orders: list[dict[str, Any]] = [
        {"id": 1, "currency": "a", "at": 3},
        {"id": None, "currency": "a", "at": 3},
        {"id": 2, "at": 4},
    ]
    write_json(tmp_path / "in/orders/0.json", orders, 1)
    write_json(
        tmp_path / "in/orders/1.json", [{"id": 3, "currency": "a", "at": 40}, {"id": 4, "currency": "a", "at": 5}], 2
    )
    events, lines, screen, listener = io.StringIO(), io.StringIO(), Screen(), Listener()
    show = Both(Both(JsonDisplay(events), screen.exporter), Both(LinesDisplay(lines), screen))
    job = Run(compiled(TOPOLOGY), str(tmp_path / "ck"), {"in": str(tmp_path / "in")}, partitions=2)
    spark.streams.addListener(listener)
    try:
        run(prepare(job), spark, show)
        while not listener.ended:  # Spark tells it on a thread of its own
            time.sleep(0.05)
    finally:
        spark.streams.removeListener(listener)
        screen.close()
    told = [json.loads(line) for line in events.getvalue().splitlines()]
    last = told[-1]
    dropped = {
        "counts": {"null_join_key": 1, "window_closed": 1},
        "orders": {"null_key": 1},
        "priced": {"null_join_key": 1},
    }
    assert last["metrics"]["dropped_records"] == dropped
    assert (last["dropped"], last["late"], last["missed"]) == (4, 1, 0)
    assert {name: source["rows"] for name, source in last["sources"].items()} == {"rates": 1, "orders": 5}
    assert last["stores"]["rates"] | {"bytes": 0} == {"rows": 1, "bytes": 0, "held": 0, "stream_time": 0, "behind": 0}
    assert (last["stores"]["priced#waiting"]["held"], last["stores"]["priced#waiting"]["stream_time"]) == (1, 40)
    lags = [[event["sources"][name]["lag"]["files"] for name in ("rates", "orders")] for event in (told[0], last)]
    assert lags == [[0, 1], [0, 0]]
    assert told[0]["sources"]["orders"]["lag"]["bytes"] == (tmp_path / "in/orders/1.json").stat().st_size
    assert last["held"] == told[-2]["held"] == 1
    assert last["metrics"]["longest_session"] == {"counts": 0}

    sums: dict[str, int] = {}
    for metrics in (found["vsc"] for found in listener.observed if found):
        for name, count in metrics["dropped_records"].items():
            sums[name] = sums.get(name, 0) + count
    assert sums == {f"{node}.{reason}": n for node, reasons in dropped.items() for reason, n in reasons.items()}

    scraped = dict(line.rsplit(" ", 1) for line in screen.scraped.splitlines() if not line.startswith("#"))
    assert float(scraped['vsc_dropped_records_total{node="orders",reason="null_key"}']) == 1
    assert float(scraped['vsc_input_rows_total{source="orders"}']) == 5
    assert float(scraped['vsc_held_records{store="priced#waiting"}']) == 1
    assert float(scraped['vsc_stream_time_ms{store="rates"}']) == 0
    assert float(scraped['vsc_peak{name="longest_session",node="counts"}']) == 0

    summary = lines.getvalue().splitlines()[-9:]
    assert summary[-1].startswith("finished: ")
    text = "\n".join(summary)
    for words in ("read      ", "orders 5", "dropped   ", "1 window_closed in 'counts'", "held      priced#waiting 1"):
        assert words in text


@pytest.mark.parametrize("settings", [{}, {"spark.eventLog.enabled": "true"}, {"spark.extraListeners": "a.Listener"}])
def test_what_listens_to_spark(spark: SparkSession, settings: dict[str, str]) -> None:
    with patch.object(spark.sparkContext, "getConf", lambda: settings):
        assert is_heard(spark) == bool(settings)


def test_nothing_is_observed_where_nothing_listens(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[StreamingQuery] = []

    class Queries(Display):
        def doing(self, activity: object) -> None:
            seen.extend(spark.streams.active)

    write_json(tmp_path / "in/rates/0.json", [{"currency": "a", "rate": 1, "at": 0}], 0)
    write_json(tmp_path / "in/orders/0.json", [{"id": 1, "currency": "a", "at": 3}], 1)
    job = Run(compiled(TOPOLOGY), str(tmp_path / "ck"), {"in": str(tmp_path / "in")}, partitions=2)
    run(prepare(job), spark, Queries())
    (progress,) = (json.loads(p.json) for p in seen[0].recentProgress if p.numInputRows)
    assert not progress.get("observedMetrics")
