"""The test driver as users meet it: values, times, mistakes, stores, partitions."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.operators.driving import STREAM, UNVERSIONED, VERSIONED, dropped, put, values
from vsc.compiler import TopologyError
from vsc.runtime.errors import ExpressionError
from vsc.testing import Record, TopologyTestDriver, VersionedRecord

UTC = dt.UTC


def test_values_come_back_as_python_values() -> None:
    text = (
        "stream s (k string, d date, at timestamp, x decimal(6, 2), b binary, n struct<p: int, q: array<string>>,"
        " f double, m map<string, bigint>) from memory () key k timestamp at;"
    )
    row = {
        "k": "a", "d": dt.date(2020, 2, 29), "at": dt.datetime(2020, 1, 1, 0, 0, 0, 1500, tzinfo=UTC),
        "x": Decimal("1.50"), "b": b"\0\xff", "n": {"p": 1, "q": ["u", None]}, "f": 0.1, "m": {"z": 2},
    }  # fmt: skip
    with TopologyTestDriver(text) as driver:
        driver.pipe("s", row)
        (record,) = driver.read("s")
        assert record.key == {"k": "a"}
        assert record.value == {name: value for name, value in row.items() if name != "k"}
        assert record.timestamp == 1577836800001


def test_a_dropped_record_of_kafka_is_a_dead_letter() -> None:
    text = """
    stream s (k string, at bigint) from kafka (bootstrap_servers = 'b:9092', topic = 's', format = 'json')
      key k timestamp timestamp_millis(at);
    stream once = distinct s within 5 ms;
    sink once to memory ();
    sink dropped to memory ();
    """
    with TopologyTestDriver(text) as driver:
        for at in (1, 2):
            driver.pipe("s", {"k": "a", "at": at})
        (letter,) = driver.read("dropped")
        assert letter.value is not None
        assert (letter.value["reason"], letter.value["position"]) == ("duplicate", '{"offset":1}')


def test_missing_columns_are_null_and_a_missing_timestamp_column_is_filled() -> None:
    text = "stream s (k string, v string, at timestamp, n bigint) from memory () key k timestamp at;"
    with TopologyTestDriver(text) as driver:
        driver.pipe("s", {"k": "a"}, timestamp=1500)
        driver.pipe("s", {"k": "a", "at": 2500}, timestamp=9)
        driver.pipe("s", {"k": "a", "at": 3500})
        assert driver.read("s") == [
            Record({"k": "a"}, {"v": None, "at": dt.datetime.fromtimestamp(t / 1000, UTC), "n": None}, t)
            for t in (1500, 2500, 3500)
        ]
        with pytest.raises(ValueError, match="no time"):
            driver.pipe("s", {"k": "a"})


def test_a_delete_has_the_time_it_is_given() -> None:
    text = (
        "table t (k string, at timestamp) from memory () key k timestamp at materialize versioned (retention = 1 day);"
    )
    with TopologyTestDriver(text) as driver:
        driver.pipe("t", {"k": "a", "at": 5})
        driver.delete("t", {"k": "a"}, timestamp=7)
        assert [(r.value is None, r.timestamp) for r in driver.read("t")] == [(False, 5), (True, 7)]
        assert driver.store("t").get({"k": "a"}) is None
        assert driver.store("t").get({"k": "a"}, as_of=6) is not None
        with pytest.raises(ValueError, match="timestamp="):
            driver.delete("t", {"k": "a"})


def test_reading_takes_records_away() -> None:
    with TopologyTestDriver(STREAM) as driver:
        put(driver, "s", "a", "1", 0)
        assert values(driver, "s") == [("1", 0)]
        assert values(driver, "s") == []
        put(driver, "s", "a", "2", 1)
        assert values(driver, "s") == [("2", 1)]


@pytest.mark.parametrize(
    ("source", "row", "timestamp", "message"),
    [
        ("x", {"k": "a"}, 0, "no node 'x'"),
        ("j", {"k": "a"}, 0, "'j' is not a source"),
        ("s", {"k": "a", "w": 1}, 0, "no column 'w'"),
        ("s", {"k": "a", "v": 1}, 0, "column 'v' string"),
        ("s", {"k": 5, "v": "a"}, 0, "column 'k' string"),
        ("s", {"k": "a"}, None, "no time"),
        ("s", {"k": "a"}, 1.5, "an int of ms"),
        ("s", {"k": "a"}, True, "an int of ms"),
        ("s", {"k": ["x"] * 1000}, 0, r"column 'k' string: \['x', .*\.\.\. is not a value of type string$"),
        ("t", {"k": "a"}, 2**70, "'t': timestamp= is too far from 1970: 1180591620717411303424"),
        (["s"], {"k": "a"}, 0, r"a node is named by a text, not by \['s'\]"),
    ],
)
def test_mistakes_are_named(source: str, row: dict[str, Any], timestamp: Any, message: str) -> None:
    with TopologyTestDriver(STREAM + VERSIONED + "stream j = join s with t select s.v;") as driver:
        with pytest.raises(ValueError, match=message):
            driver.pipe(source, row, timestamp=timestamp)
        assert dropped(driver) == {}


@pytest.mark.parametrize(("row", "message"), [(None, "given by delete"), ([1], r"a dict of column values, not \[1\]")])
def test_a_row_is_a_dict(row: Any, message: str) -> None:
    with TopologyTestDriver("table t (k string) from memory () key k; sink t to noop ();") as driver:
        with pytest.raises(ValueError, match=message):
            driver.pipe("t", row, timestamp=0)
        assert driver.read("t") == []


def test_a_delete_takes_key_columns_only() -> None:
    with TopologyTestDriver(VERSIONED) as driver:
        with pytest.raises(ValueError, match="no column 'v'"):
            driver.delete("t", {"k": "a", "v": "x"}, timestamp=0)
        driver.delete("t", {"k": None}, timestamp=0)
        driver.pipe("t", {"k": "a"}, timestamp=-5)
        assert dropped(driver) == {"t": {"null_key": 1, "negative_timestamp": 1}}


def test_stores_are_found_by_their_name_and_their_tables() -> None:
    text = UNVERSIONED.replace("materialize", "materialize as kept") + STREAM
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "a", "x", 3)
        for name in ("kept", "t"):
            assert driver.store(name).get({"k": "a"}) == VersionedRecord({"v": "x"}, 3, None)
        store = driver.store("t")
        with pytest.raises(ValueError, match="unversioned"):
            store.get({"k": "a"}, as_of=3)
        with pytest.raises(ValueError, match="no column 'z'"):
            store.get({"z": "a"})
        with pytest.raises(ValueError, match="'k' is missing"):
            store.get({})
        with pytest.raises(ValueError, match=r"no store 's'.*kept"):
            driver.store("s")


@pytest.mark.parametrize("as_of", ["x", 1.0, True, dt.datetime(2020, 1, 1)])
def test_a_store_is_not_read_as_of_something_else(as_of: Any) -> None:
    with TopologyTestDriver(VERSIONED) as driver:
        put(driver, "t", "a", "x", 3)
        with pytest.raises(ValueError, match=r"'t': as_of= is an int of ms, ISO text or an aware datetime, not "):
            driver.store("t").get({"k": "a"}, as_of=as_of)
        with pytest.raises(ValueError, match="a row is a dict of column values, not 'a'"):
            driver.store("t").get("a")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "at", ["2026-05-04T10:00:00Z", "2026-05-04T10:00:00.0009", "2026-05-04 12:00+02:00", 1777888800000,
           dt.datetime(2026, 5, 4, 10, tzinfo=UTC)],
)  # fmt: skip
def test_times_are_milliseconds_iso_text_or_datetimes(at: Any) -> None:
    ten = 1777888800000
    with TopologyTestDriver(VERSIONED) as driver:
        driver.pipe("t", {"k": "a", "v": "x"}, timestamp=at)
        assert driver.store("t").get({"k": "a"}) == VersionedRecord({"v": "x"}, ten, None)
        assert driver.store("t").get({"k": "a"}, as_of=at) == VersionedRecord({"v": "x"}, ten, None)
        assert driver.store("t").get({"k": "a"}, as_of="2026-05-04T09:59:59.999Z") is None
        driver.delete("t", {"k": "a"}, timestamp=at)
        assert driver.store("t").get({"k": "a"}) is None
        assert [record.timestamp for record in driver.read("t")] == [ten, ten]


def test_columns_take_iso_text_and_text_of_decimals() -> None:
    text = """stream s (k int, at timestamp, day date, days array<date>, price decimal(6, 2), also struct<at:timestamp>)
    from memory () key k timestamp at; sink s to noop ();"""
    row = {
        "k": 1, "at": "2026-05-04T10:00:00.000001Z", "day": "2026-05-04", "days": ["1969-12-31", dt.date(1970, 1, 2)],
        "price": "12.5", "also": {"at": "2026-05-04T10:00:00-07:00"},
    }  # fmt: skip
    wrong = ("at", "noon"), ("at", dt.datetime(2026, 5, 4)), ("day", "2026-02-30"), ("price", "12.345"), ("price", "x")
    with TopologyTestDriver(text) as driver:
        driver.pipe("s", row)
        driver.pipe("s", {"k": 2}, timestamp="2026-05-04")
        one, two = driver.read("s")
        for column, value in wrong:
            with pytest.raises(ValueError, match=f"'s': column '{column}' .*is not a value of type"):
                driver.pipe("s", {"k": 3, "at": 0, column: value})
    assert one.timestamp == 1777888800000
    assert one.value == {
        "at": dt.datetime(2026, 5, 4, 10, 0, 0, 1, UTC), "day": dt.date(2026, 5, 4),
        "days": [dt.date(1969, 12, 31), dt.date(1970, 1, 2)], "price": Decimal("12.50"),
        "also": {"at": dt.datetime(2026, 5, 4, 17, tzinfo=UTC)},
    }  # fmt: skip
    assert str(one.value["price"]) == "12.50"
    assert two.timestamp == 1777852800000
    assert two.value is not None and two.value["at"] == dt.datetime(2026, 5, 4, tzinfo=UTC)


def test_the_time_beside_a_timestamp_column_is_looked_at_as_well() -> None:
    with TopologyTestDriver("stream s (k string, at timestamp) from memory () key k timestamp at;") as driver:
        with pytest.raises(ValueError, match="timestamp= is an int of ms, ISO text or an aware datetime, not 'x'"):
            driver.pipe("s", {"k": "a", "at": 1}, timestamp="x")
        driver.pipe("s", {"k": "a", "at": 1}, timestamp=7)
        assert driver.read("s")[0].timestamp == 1


def test_what_is_no_topology_and_what_are_no_variables() -> None:
    with pytest.raises(ValueError, match="a topology is its text or a path, not 5"):
        TopologyTestDriver(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="variables are a mapping of names to texts, not int"):
        TopologyTestDriver(STREAM, variables=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the value of a variable is a text: 'least' has 1"):
        TopologyTestDriver(STREAM, variables={"least": 1})  # type: ignore[dict-item]
    with pytest.raises(TopologyError):
        TopologyTestDriver("x" * 6000)


def test_a_topology_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "topology.vdsl"
    path.write_text(STREAM)
    for given in (path, str(path)):
        with TopologyTestDriver(given) as driver:
            put(driver, "s", "a", "1", 0)
            assert values(driver, "s") == [("1", 0)]
    with pytest.raises(FileNotFoundError):
        TopologyTestDriver(str(tmp_path / "none.vdsl"))


def test_a_refused_topology() -> None:
    with pytest.raises(TopologyError):
        TopologyTestDriver("stream s (k string) from memory () key z;")


def test_its_state_is_in_memory_and_closing_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    driver = TopologyTestDriver(VERSIONED)
    put(driver, "t", "a", "1", 0)
    driver.close()
    driver.close()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="closed"):
        put(driver, "t", "a", "1", 0)
    with pytest.raises(ValueError, match="closed"):
        driver.metrics()


@pytest.mark.slow
def test_several_partitions_give_every_key_the_same() -> None:
    text = (
        STREAM
        + VERSIONED.replace("5 minutes", "40 ms")
        + "stream j = left join s with t grace 5 ms select s.v || coalesce(t.v, '-') as v;"
    )
    found = []
    for partitions in (1, 3):
        with TopologyTestDriver(text, partitions=partitions) as driver:
            for i in range(60):
                # one key a topology would share clocks: give each key its own story, with clocks that agree
                for key in "abcde":
                    put(driver, "t" if i % 3 == 0 else "s", key, f"{i}", i * 7 % 50 + i)
            driver.drain()
            by_key: dict[str, list[Any]] = {}
            for record in driver.read("j"):
                by_key.setdefault(record.key["k"], []).append((record.value, record.timestamp))
            found.append(by_key)
            assert driver.store("t").get({"k": "c"}) is not None
    assert found[0] == found[1]
    assert set(found[0]) == set("abcde")


@pytest.mark.parametrize("partitions", [0, -1, 1001, 1.5, "2", True])
def test_there_are_so_many_partitions(partitions: Any) -> None:
    with pytest.raises(ValueError, match=r"partitions is a number from 1 to 1000, not "):
        TopologyTestDriver(STREAM, partitions=partitions)


AHEAD = """
stream a (k string, at timestamp) from memory () key k timestamp at;
stream b (k string, at timestamp) from memory (max_ahead = none) key k timestamp at;
sink a to memory ();
sink b to memory ();
"""
DAY = 86_400_000


@pytest.mark.parametrize("now", [10 * DAY, dt.datetime(1970, 1, 11, tzinfo=UTC), "1970-01-11"])
def test_with_a_clock_rows_may_be_one_day_ahead_unless_the_source_says_otherwise(now: Any) -> None:
    with TopologyTestDriver(AHEAD, now=now) as driver:
        for source in ("a", "b"):
            for time in (11 * DAY, 11 * DAY + 1, 9_000 * DAY, 3):
                driver.pipe(source, {"k": "x", "at": time})
        assert [r.timestamp for r in driver.read("a")] == [11 * DAY, 3]
        assert [r.timestamp for r in driver.read("b")] == [11 * DAY, 11 * DAY + 1, 9_000 * DAY, 3]
        assert driver.metrics()["dropped_records"] == {"a": {"in_the_future": 2}}


def test_without_a_clock_no_row_is_too_far_ahead() -> None:
    with TopologyTestDriver(AHEAD) as driver:
        driver.pipe("a", {"k": "x", "at": 90_000 * DAY})
        assert [r.timestamp for r in driver.read("a")] == [90_000 * DAY]


@pytest.mark.parametrize("now", ["today", 1.5, True, dt.datetime(2026, 1, 1)])
def test_a_clock_is_a_time(now: Any) -> None:
    with pytest.raises(ValueError, match="now= is a time in ms or as ISO text, or an aware datetime, not"):
        TopologyTestDriver(AHEAD, now=now)


@pytest.mark.parametrize(
    "statement",
    [
        "stream o = join s with t grace 5 ms select 1 / (s.n - 7) as q;",
        "table c = aggregate s group by k select sum(n) as n; table w = suppress c until time limit 5 ms;"
        " table o = map w select 1 / (n - 7) as q;",
    ],
)
def test_a_row_that_fails_changes_no_store(statement: str) -> None:
    columns = "(k string, n bigint) from memory () key k"
    table = f"table t {columns} materialize versioned (retention = 1 minute);"
    text = f"stream s {columns}; {table} {statement} sink o to memory ();"
    with TopologyTestDriver(text) as driver:
        driver.pipe("t", {"k": "a", "n": 1}, timestamp=0)
        driver.pipe("s", {"k": "a", "n": 7}, timestamp=1)
        for _ in range(2):  # what is held comes out again: the first time it was not lost
            with pytest.raises(ExpressionError, match="DIVIDE_BY_ZERO"):
                driver.pipe("s", {"k": "b", "n": 1}, timestamp=20)
        assert driver.read("o") == []


def test_a_time_that_python_does_not_have_is_text() -> None:
    text = """
stream s (id bigint, t string) from memory () key id;
stream o = map s select cast(t as timestamp) as at, array(cast(t as date)) as days;
sink o to console ();
"""
    with TopologyTestDriver(text) as driver:
        driver.pipe("s", {"id": 1, "t": "10000-01-01"}, timestamp=5)
        assert driver.read("o") == [Record({"id": 1}, {"at": "253402300800000000", "days": "[2932897]"}, 5)]


FILLED = """table t (k string, v bigint, at bigint) from memory () key k timestamp at
  materialize versioned (retention = 1 hour);
table u (k string, v bigint, at bigint) from memory () key k timestamp at;
stream s (k string, at bigint) from memory () key k timestamp at;
stream j = left join s with t select v; stream i = left join s with u select v;
table x = join t with u select t.v as a, u.v as b;"""


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("clock", ["input", "records"])
def test_a_store_is_filled_ahead(partitions: int, clock: str) -> None:
    with TopologyTestDriver(f"topology t (clock = '{clock}'); {FILLED}", partitions=partitions) as driver:
        for value, at in (({"v": 1}, 5), ({"v": 2, "at": 10}, 10), (None, 20)):
            driver.store("t").put({"k": "a"}, value, at)
        driver.store("u").put({"k": "a"}, {"v": 7}, 5)
        assert driver.read("x") == driver.read("t") == []  # nothing is sent
        for at in (4, 7, 12, 25):
            driver.pipe("s", {"k": "a", "at": at})
        assert [(r.value or {})["v"] for r in driver.read("j")] == [None, 1, 2, None]
        assert [(r.value or {})["v"] for r in driver.read("i")] == [7, 7, 7, 7]
        driver.pipe("t", {"k": "a", "v": 3, "at": 30})
        assert [(r.value, r.timestamp) for r in driver.read("x")] == [({"a": 3, "b": 7}, 30)]
        with pytest.raises(ValueError, match="'t': key column 'k' is missing"):
            driver.store("t").put({}, {"v": 1}, 5)
