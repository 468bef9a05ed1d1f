"""The recipes that are ports of published jobs give what those give.

Rows and results are those of the source that a page names, where it has some; otherwise rows of its kind, and results
that follow from what it says.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from vsc.compiler import check_topology
from vsc.testing import Record, TopologyTestDriver

RECIPES = Path(__file__).parents[2] / "docs/recipes"
PORTS = sorted(
    page.stem for page in RECIPES.glob("*.md") if re.search(r"A\sport\sof\s", page.read_text(encoding="utf-8"))
)


def topology(name: str) -> str:
    """The topology of a recipe, which is its only block."""
    text = (RECIPES / f"{name}.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```vdsl\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return str(block)


def driver_of(name: str) -> TopologyTestDriver:
    return TopologyTestDriver(topology(name), variables={"brokers": "-", "database": "-", "out": "-"})


def pipe(driver: TopologyTestDriver, source: str, *rows: tuple[Any, ...]) -> None:
    """Feeds rows with the values of the source's columns, in order."""
    columns = [column.name for column in driver.plan.node(source).operation.columns]  # type: ignore[union-attr]
    for row in rows:
        driver.pipe(source, dict(zip(columns, row, strict=True)))


def row(record: Record) -> tuple[Any, ...]:
    """The key and the value of a record that has a value, without the bounds of windows."""
    assert record.value is not None
    key = [value for name, value in record.key.items() if not name.startswith("window_")]
    return (*key, *record.value.values())


def start(record: Record) -> str:
    """The time at which a record's window starts, in UTC."""
    return str(record.key["window_start"].strftime("%H:%M:%S"))


def test_there_are_ten_ports_and_the_overview_lists_them() -> None:
    overview = (RECIPES / "index.md").read_text(encoding="utf-8")
    assert len(PORTS) == 10
    assert [name for name in PORTS if f"({name}.md)" not in overview] == []


@pytest.mark.parametrize("name", PORTS)
def test_a_port_compiles_without_findings(name: str) -> None:
    assert check_topology(topology(name), path=f"{name}.vdsl") == ()


def test_top_n_changes_with_the_counts() -> None:
    with driver_of("top-n") as driver:
        cast = ["Lumos", "Accio", "Accio", "Nox", "Nox", "Nox", "Accio", "Accio"]
        pipe(driver, "spells_cast", *((wizard, spell, 0) for spell in cast for wizard in ("Luna", "Ron")))
        records = driver.read("top_two")
        last = {tuple(record.key.values()): tuple(record.value.values()) for record in records if record.value}
        places = {0: ("Accio", 4), 1: ("Nox", 3)}
        assert last == {(wizard, place): spell for wizard in ("Luna", "Ron") for place, spell in places.items()}


def test_a_count_of_the_last_hour_is_that_of_the_tutorial() -> None:
    """All rows of `populate-movie-starts.sql`, in its order, and the counts of `FlinkSqlOverAggregationTest`."""
    views = """
        123 Action 23 19:04 1, 456 Action 23 22:01 1, 789 Sci-Fi 23 20:24 3, 147 Drama 23 22:56 1, 258 Crime 23 19:13 1,
        369 Romance 23 20:26 2, 321 Drama 23 20:20 1, 654 Drama 23 21:54 1, 987 Drama 23 23:24 2, 135 Crime 23 22:09 1,
        246 Crime 23 19:28 2, 357 Crime 23 23:11 1, 842 Animation 23 23:12 3, 931 Animation 23 22:17 1,
        624 Animation 23 22:28 2, 512 Sci-Fi 23 20:42 3, 678 Sci-Fi 23 19:25 1, 753 Sci-Fi 23 20:14 2,
        834 Romance 23 20:25 1, 675 Romance 23 23:37 1, 333 History 24 03:37 1
    """
    parts = [view.split() for view in views.split(",")]
    with driver_of("count-of-the-last-hour") as driver:
        for number, genre, day, time, _ in parts:
            pipe(driver, "movie_views", (int(number), "", genre, f"2024-04-{day}T{time}:00Z"))
        driver.drain()
        found = {record.value["id"]: record.value["genre_count"] for record in driver.read("counted") if record.value}
        assert found == {int(number): int(count) for number, *_, count in parts}
        assert driver.metrics().get("dropped_records", {}) == {}


def test_a_late_click_makes_one_session_of_two() -> None:
    """The three clicks of the tutorial are three sessions, until one comes late that lies between two of them."""
    with driver_of("late-sessions") as driver:
        ip = "182.12.112.1"
        pipe(driver, "clicks", (ip, "", 1757966638000), (ip, "", 1757967148000), (ip, "", 1757967648000))
        assert [(start(each), row(each)) for each in driver.read("sessions")] == [
            ("20:03:58", (ip, 1)),
            ("20:12:28", (ip, 1)),
            ("20:20:48", (ip, 1)),
        ]
        pipe(driver, "clicks", (ip, "", 1757967978000), (ip, "", 1757967948000), (ip, "", 1757967000000))
        merged = driver.read("sessions")
        assert [(start(each), each.value is None) for each in merged] == [
            ("20:26:18", False),
            ("20:20:48", True),
            ("20:26:18", True),
            ("20:20:48", False),
        ]
        assert row(merged[-1]) == (ip, 3)
        assert driver.metrics()["dropped_records"] == {"sessions": {"window_closed": 1}}


def test_the_first_click_of_an_hour_is_that_of_the_tutorial() -> None:
    """All rows of `populate-clicks.sql`, and those of `FlinkSqlFindingDistinctWindowedTest`."""
    clicks = "1 01:00, 12 01:10, 13 01:20, 1 01:30, 12 01:40, 1 02:10, 1 03:10"
    with driver_of("deduplicated-clicks") as driver:
        for click in clicks.split(", "):
            host, time = click.split()
            pipe(driver, "clicks", (f"10.0.0.{host}", "https://acme.com", f"2023-07-09T{time}:00Z"))
        passed = [(row(each)[0], each.value["ts"].strftime("%H:%M")) for each in driver.read("firsts") if each.value]
        expected = [("1", "01:00"), ("12", "01:10"), ("13", "01:20"), ("1", "02:10"), ("1", "03:10")]
        assert passed == [(f"10.0.0.{host}", time) for host, time in expected]


def test_silent_devices_are_those_of_the_example() -> None:
    """The rows of Foundry's first example: sensor_1 is missed at 0:15, when the reading of 0:20 comes."""
    with driver_of("silent-devices") as driver:
        times = [("sensor_1", 20.5, 0), ("sensor_1", 21.0, 5), ("sensor_2", 19.8, 20)]
        pipe(driver, "readings", *((sensor, value, f"2024-09-30T00:00:{s:02}Z") for sensor, value, s in times))
        [record] = driver.read("silent")
        assert record.value is not None
        assert (record.key["sensor"], record.value["silent_since"].strftime("%H:%M:%S")) == ("sensor_1", "00:00:15")


def test_reward_points_are_accumulated() -> None:
    """As `RewardAccumulator`: whole dollars of price times quantity, added to those so far."""
    buys = [("Ann", 2, 4.75, 0), ("Bob", 1, 20, 1), ("Ann", 3, 6.5, 200), ("Ann", 1, 0.99, 199), ("Bob", 2, 3.5, 400)]
    with driver_of("reward-points") as driver:
        rows = (
            (
                str(number),
                name,
                "Lee",
                "4111-1111-1111-1234",
                "tea",
                quantity,
                price,
                f"2026-03-02T09:{s // 60:02}:{s % 60:02}Z",
            )
            for number, (name, quantity, price, s) in enumerate(buys)
        )
        pipe(driver, "purchases", *rows)
        driver.drain()
        assert [(who, float(total), *points) for who, total, *points in map(row, driver.read("messages"))] == [
            ("Lee,Ann", 9.5, 9, 9),
            ("Lee,Bob", 20.0, 20, 20),
            ("Lee,Ann", 0.99, 0, 9),
            ("Lee,Ann", 19.5, 19, 28),
            ("Lee,Bob", 7.0, 7, 27),
        ]
        card = driver.read("masked")[0].value
        assert card is not None and card["card_number"] == "xxxx-xxxx-xxxx-1234"


def test_a_departure_has_its_dimensions_as_of_its_time() -> None:
    with driver_of("star-schema") as driver:
        pipe(driver, "passengers", ("P1", "Ann", "Lee", 0), ("P1", "Ann", "Ray", 20_000))
        pipe(driver, "stations", ("S1", "Rome", 0), ("S2", "Pisa", 0), ("S2", "Lucca", 15_000))
        pipe(driver, "activities", ("T1", "P1", "S1", "S2", "B1", 10_000))
        pipe(driver, "channels", ("B1", "web", 9_000))  # late, within the grace
        pipe(driver, "activities", ("T2", "P1", "S2", "S9", "B1", 30_000))
        pipe(driver, "channels", ("B1", "app", 29_999))
        driver.drain()
        assert list(map(row, driver.read("departures"))) == [
            ("T1", "Ann", "Lee", "web", "Rome", "Pisa"),
            ("T2", "Ann", "Ray", "app", "Lucca", None),
        ]


def test_a_transaction_has_the_rate_of_its_time() -> None:
    with driver_of("currency-conversion") as driver:
        pipe(driver, "currency_rates", ("BZD", 1.6545, 3_000), ("BZD", 3.616, 10_000))
        pipe(driver, "transactions", ("T1", "BZD", 100, 5_000), ("T2", "KHR", 50, 7_000), ("T3", "BZD", 100, 12_000))
        pipe(driver, "currency_rates", ("KHR", 1.335, 6_000))
        pipe(driver, "transactions", ("T4", "EEK", 906.8, 30_000))
        driver.drain()
        found = {record.key["id"]: float(record.value["total_eur"]) for record in driver.read("by_id") if record.value}
        assert found == {"T1": 165.45, "T2": 66.75, "T3": 361.6}
        assert driver.metrics()["missed_lookups"] == {"converted": {"no_record": 1}}


def test_a_row_expires_as_in_the_tutorial() -> None:
    """The rows and the results of `KTableTTLTest`."""
    with driver_of("table-ttl") as driver:
        pipe(driver, "names", ("alice", "a", 5), ("bobby", "b", 10))
        pipe(driver, "events", ("alice", "11", 10), ("bobby", "21", 15), ("alice", "12", 30))
        pipe(driver, "names", ("freddy", "f", 65_000))
        pipe(driver, "events", ("alice", "13", 70_006), ("bobby", "22", 70_016))
        assert list(map(row, driver.read("joined"))) == [
            ("alice", "11", "a"),
            ("bobby", "21", "b"),
            ("alice", "12", "a"),
            ("alice", "13", None),
            ("bobby", "22", None),
        ]


def test_a_window_is_sent_once_as_in_the_tutorial() -> None:
    """The rows and the results of `WindowFinalResultTest`: three windows, and sensors apart from each other."""
    times = ["30:01", "30:02", "30:03", "45:01", "45:03", "55:10"]
    with driver_of("windows-once") as driver:
        pipe(driver, "pressures", *(("101", 1, f"2025-09-15T05:{time}+02:00") for time in times))
        pipe(driver, "pressures", ("XXX", 1, "2025-09-15T05:55:40+02:00"))
        sent = [(start(record), row(record)) for record in driver.read("counts")]
        assert sent == [("03:30:00", ("101", 3)), ("03:45:00", ("101", 2)), ("03:55:10", ("101", 1))]
    with driver_of("windows-once") as driver:
        ids = ["101", "102", "103"]
        pipe(driver, "pressures", *((each, 1, f"2025-09-15T05:{time}+02:00") for each in ids for time in times[:3]))
        pipe(driver, "pressures", ("XXX", 1, "2025-09-15T05:55:41+02:00"))
        assert [row(record) for record in driver.read("counts")] == [(each, 3) for each in ids]
