"""The live example: its story on the test driver, beside its own plain Python; and all of it, with real servers."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from examples.payments_live import expected
from examples.payments_live.expected import Lateness, Priced, Total
from examples.payments_live.screen import Screen, State
from examples.payments_live.story import PAYMENTS, Change, Payment, Sent, Story, story
from examples.payments_live.verdict import Verdict, verdict
from tests.runtime.operators.driving import dropped, rows
from vsc.testing import TopologyTestDriver

START = 1_772_442_000_000
LIVE = [sys.executable, "-m", "examples.payments_live.live"]


def _payment(number: int, amount: str, paid_at: int, published: int) -> Payment:
    return Payment(f"p{number}", "a", "EUR", Decimal(amount), START + paid_at, START + published)


def _change(before: str | None, after: str | None, committed: int, published: int) -> Change:
    old, new = (None if rate is None else Decimal(rate) for rate in (before, after))
    return Change("EUR", old, new, START + committed, START + published)


SMALL = Story(
    (
        _payment(1, "10.00", 1_000, 1_000),
        _payment(2, "10.00", 6_000, 6_500),
        _payment(3, "10.05", 4_000, 8_000),
        _payment(4, "10.00", 21_000, 21_000),
        _payment(5, "10.00", 2_000, 150_000),
    ),
    (_change(None, "1.1", 0, 0), _change("1.1", "1.3", 5_000, 7_000), _change("1.3", None, 20_000, 20_500)),
)


def test_what_is_expected() -> None:
    assert expected.priced(SMALL) == {
        "p1": Priced("EUR", Decimal("1.1"), Decimal("11.00")),
        "p2": Priced("EUR", Decimal("1.3"), Decimal("13.00")),
        "p3": Priced("EUR", Decimal("1.1"), Decimal("11.06")),
        "p4": Priced("EUR", None, None),
        "p5": Priced("EUR", Decimal("1.1"), Decimal("11.00")),
    }
    assert expected.totals(SMALL) == {("EUR", START): Total(4, Decimal("35.06"))}
    assert expected.lateness(SMALL) == Lateness(out_of_order=2, before_their_rate=1, too_late=1, other_newest=3)


def test_what_is_published() -> None:
    sent = SMALL.records()
    assert [one.published - START for one in sent] == [0, 1_000, 6_500, 7_000, 8_000, 20_500, 20_500, 21_000, 150_000]
    assert [json.loads(one.value or "{}").get("op") for one in sent if one.topic != PAYMENTS] == ["c", "u", "d", None]
    assert json.loads(sent[1].value or "") == {
        "account": "a", "currency": "EUR", "amount": 10.0, "paid_at": "2026-03-02T09:00:01+00:00"
    }  # fmt: skip


def test_a_story_is_the_same_again() -> None:
    told = story(7, START, START + 60_000, 20)
    assert story(7, START, START + 60_000, 20) == told
    assert len(told.payments) > 1000


@pytest.mark.slow
def test_the_story_on_the_driver(root: Path) -> None:
    told = story(3, START, START + 240_000, 3)
    with TopologyTestDriver(
        root / "examples/payments_live/topology.vdsl",
        variables=dict.fromkeys(("brokers", "database", "pg_user", "pg_password"), "-"),
        partitions=2,
    ) as driver:
        for one in told.records():
            _pipe(driver, one)
        driver.drain()
        priced = [
            (value["id"], Priced(key["currency"], value["rate"], value["usd"]))
            for key, value, _ in rows(driver, "priced")
        ]
        totals = {
            (key["currency"], _milliseconds(key["window_start"])): Total(value["payments"], value["usd"])
            for key, value, _ in rows(driver, "totals")
        }
        lost = dropped(driver)["totals"]["window_closed"]
    late = expected.lateness(told)
    assert dict(priced) == expected.priced(told)
    assert len(priced) == len(told.payments) > 600
    assert totals == expected.totals(told)
    assert late.too_late == lost > 0
    assert min(late.before_their_rate, late.other_newest) > 100
    assert {result.rate is None for _, result in priced} == {True, False}


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def _pipe(driver: TopologyTestDriver, one: Sent) -> None:
    value: dict[str, Any] | None = None if one.value is None else json.loads(one.value, parse_float=Decimal)
    if one.topic == PAYMENTS:
        assert value is not None
        driver.pipe("payments", {"id": one.key, **value})
        return
    key = json.loads(one.key)
    if value is None:
        return  # a tombstone, which a source of change events leaves out
    at = value["source"]["ts_ms"]
    if value["after"] is None:
        driver.delete("rates", key, timestamp=at)
    else:
        driver.pipe("rates", {**key, "rate": Decimal(value["after"]["rate"])}, timestamp=at)


def test_a_verdict() -> None:
    found = [("a", 1), ("b", 1), ("b", 2), ("x", 1)]
    assert verdict({"a": 1, "b": 1, "c": 1}, found) == Verdict(right=2, wrong=1, missing=1, twice=1)
    assert verdict({"a": 1}, [("a", 2)]) == Verdict(right=0, wrong=1, missing=0, twice=0)
    assert not verdict({}, found[:1]).good
    assert verdict({"a": 1}, found[:1]).good


@pytest.mark.parametrize("terminal", [True, False])
def test_the_screen(terminal: bool) -> None:
    shown = io.StringIO()
    screen = Screen(Console(file=shown, force_terminal=terminal, width=120, color_system=None))
    screen.show(State(1000, 3, 5, 1, [("EUR", 5, Decimal("1234.5")), ("JPY", 1, None)]))
    screen.tell("killed")
    screen.close()
    lines = [line.rstrip() for line in shown.getvalue().splitlines()]
    counts = "0:00  1,000 payments and 3 changes of rates published · 5 priced · 1 epochs"
    if terminal:
        assert any(line.endswith(counts) for line in lines)
        assert "│ EUR      │        5 │ 1,234.50 │" in lines
        assert any(line.endswith("0:00  killed") for line in lines)
    else:
        assert lines == [f"{counts} · EUR 1,234.50 · JPY -", "0:00  killed"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif("VSC_KILLS" not in os.environ, reason="a minute and two servers: make thorough-long")
@pytest.mark.timeout(600)
def test_live(root: Path) -> None:
    """What ``make live`` does, for a shorter time."""
    done = subprocess.run([*LIVE, "--seconds", "12"], cwd=root, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kill -9 in the middle of an epoch" in done.stdout
    [right] = re.findall(r"Kafka, .*: ([0-9,]+) right, 0 wrong, 0 missing, 0 twice", done.stdout)
    assert re.search(rf"^{right} payments, [0-9,]+ changes of rates", done.stdout, re.MULTILINE)
    assert re.search(r"PostgreSQL, .*: +[0-9,]+ right, 0 wrong, 0 missing, 0 twice", done.stdout)


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_stops_what_was_started(root: Path) -> None:
    with subprocess.Popen(LIVE, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as live:
        assert live.stdout is not None
        ports = []
        for line in live.stdout:
            ports += re.findall(r"127\.0\.0\.1:(\d+)", line)
            if "vsc run has been started" in line:
                break
        started = psutil.Process(live.pid).children(recursive=True)
        assert len(started) >= 2
        assert [_answers(int(port)) for port in ports] == [True, True]
        live.send_signal(signal.SIGINT)
        _, error = live.communicate(timeout=120)
    assert (live.returncode, error) == (130, "stopped\n")
    assert psutil.wait_procs(started, 60)[1] == []
    assert [_answers(int(port)) for port in ports] == [False, False]


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
