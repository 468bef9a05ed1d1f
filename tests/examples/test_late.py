"""The flights and the payments with tables whose rows come late: what a run says of it, and the same run corrected.

What a run says is what the examples' pages show; what has to come out is computed by pandas.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

from examples.flights.demo import FLIGHT
from vsc.runtime.metrics import Metrics
from vsc.runtime.spark.report.progress_text import notes
from vsc.testing import TopologyTestDriver

DAYS = 3
ZONE = ZoneInfo("America/Los_Angeles")
LATEST = 6 * 60
"""In minutes."""
Arrivals = list[tuple[str, dict[str, Any]]]


def told(root: Path, example: str, driver: TopologyTestDriver) -> str:
    """What a run says of late versions, which has to stand on the example's page."""
    found: Mapping[str, Any] = driver.metrics()
    (said,) = (note for note in notes(Metrics.from_dict(found)) if "right side came after" in note)
    page = " ".join((root / f"examples/{example}/README.md").read_text().split())
    assert said in page
    return said


@pytest.fixture(scope="module")
def flights(root: Path) -> pd.DataFrame:
    """Those of the first days, as they landed."""
    read = pd.read_parquet(root / "examples/flights/data/flights.parquet")
    found: pd.DataFrame = read[read["departed_at"] < read["departed_at"].min() + pd.Timedelta(days=DAYS)]
    return found


@pytest.fixture(scope="module")
def weather(root: Path) -> pd.DataFrame:
    """The observations of these days."""
    read = pd.read_csv(root / "examples/flights/data/weather.csv", parse_dates=["observed_at"])
    found: pd.DataFrame = read[read["observed_at"] < read["observed_at"].min() + pd.Timedelta(days=DAYS)]
    return found


@pytest.fixture(scope="module")
def arrivals(flights: pd.DataFrame, weather: pd.DataFrame) -> Arrivals:
    """All rows in the order in which they come, a third of the observations late."""
    rng = random.Random(5)
    found: list[tuple[pd.Timestamp, int, str, dict[str, Any]]] = []
    for row in weather[["origin", "observed_at", "temp", "wind_speed", "visib"]].to_dict("records"):
        late = pd.Timedelta(minutes=rng.choice((0, 0, rng.randrange(LATEST))))
        found.append((row["observed_at"] + late, len(found), "weather", _plain(row)))
    columns = ["carrier", "flight", "tailnum", "origin", "dest", "departed_at", "landed_at", "dep_delay_min"]
    for row in flights[columns].to_dict("records"):
        found.append((row["landed_at"], len(found), "flights", _plain(row)))
    return [(source, row) for _, _, source, row in sorted(found, key=lambda one: one[:2])]


def _plain(row: dict[Any, Any]) -> dict[str, Any]:
    return {
        name: value.to_pydatetime() if isinstance(value, pd.Timestamp) else None if pd.isna(value) else value
        for name, value in row.items()
    }


def played(root: Path, topology: str, arrivals: Arrivals) -> TopologyTestDriver:
    """The topology with all rows, some at a time."""
    driver = TopologyTestDriver(root / f"examples/{topology}", variables={"data": "-", "out": "-"})
    for at in range(0, len(arrivals), 50):
        with driver.batch():
            for source, row in arrivals[at : at + 50]:
                driver.pipe(source, row)
    return driver


def expected(flights: pd.DataFrame, weather: pd.DataFrame) -> dict[Any, Any]:
    """By flight the time and the temperature of the observation that was valid at departure."""
    left = flights.astype({"departed_at": "datetime64[us, UTC]"}).sort_values("departed_at", kind="stable")
    right = weather.astype({"observed_at": "datetime64[us, UTC]"}).sort_values("observed_at")
    found = pd.merge_asof(left, right, left_on="departed_at", right_on="observed_at", by="origin")
    return {
        tuple(_plain(row[FLIGHT].to_dict()).values()): tuple(_plain(row[["observed_at", "temp"]].to_dict()).values())
        for _, row in found.iterrows()
    }


@pytest.mark.slow
def test_flights_keep_the_weather_that_was_known_and_the_run_says_how_many_observations_came_late(
    root: Path, arrivals: Arrivals, flights: pd.DataFrame, weather: pd.DataFrame
) -> None:
    right = expected(flights, weather)
    with played(root, "flights/topology.vdsl", arrivals) as driver:
        told(root, "flights", driver)
        rows = [{**record.key, **(record.value or {})} for record in driver.read("departures")]
    found = {tuple(row[name] for name in FLIGHT): (row["observed_at"], row["temp"]) for row in rows}
    assert found.keys() == right.keys()
    assert sum(found[flight] != right[flight] for flight in right) > 50


@pytest.mark.slow
def test_the_same_flights_end_with_the_right_weather_if_it_corrects_them(
    root: Path, arrivals: Arrivals, flights: pd.DataFrame, weather: pd.DataFrame
) -> None:
    right = expected(flights, weather)
    with played(root, "flights/corrected.vdsl", arrivals) as driver:
        driver.drain()
        assert not driver.metrics()["late_versions"]
        rows = driver.read("departures")
        days = driver.read("days")
    found = {tuple(r.key.values()): (r.value["observed_at"], r.value["temp"]) for r in rows if r.value is not None}
    assert found == right
    assert len(rows) > len(right) + 50
    day = flights["departed_at"].dt.tz_convert(str(ZONE)).dt.date
    sent = {(r.key["origin"], r.key["window_start"].astimezone(ZONE).date()): (r.value or {})["flights"] for r in days}
    assert sent == flights.groupby(["origin", day]).size().to_dict()


RATES = [("EUR", 1.10, "2026-03-02T00:00:00Z"), ("EUR", 1.20, "2026-03-02T10:00:00Z")]
PAYMENTS = [("p1", 100, "2026-03-02T09:30:00Z"), ("p4", 50, "2026-03-02T10:15:00Z")]


@pytest.mark.parametrize(("topology", "usd"), [("topology.vdsl", 55.0), ("corrected.vdsl", 60.0)])
def test_a_payment_keeps_its_rate_and_the_run_says_so_or_a_late_rate_corrects_it(
    root: Path, topology: str, usd: float
) -> None:
    first, late = ({"currency": c, "rate": rate, "valid_at": at} for c, rate, at in RATES)
    paid = [{"id": id, "account": "carl", "currency": "EUR", "amount": n, "paid_at": at} for id, n, at in PAYMENTS]
    rows: Arrivals = [("rates", first), *(("payments", one) for one in paid), ("rates", late)]
    with played(root, f"payments/{topology}", rows[:3]) as driver:
        driver.pipe(*rows[3])
        newest = {(r.key | (r.value or {}))["id"]: (r.value or {})["usd"] for r in driver.read("priced")}
        assert newest == {"p1": 110.0, "p4": usd}
        if topology == "topology.vdsl":
            assert "`grace 15 minutes 1 second`" in told(root, "payments", driver)
        else:
            assert not driver.metrics()["late_versions"]
