"""Source tables, filter, map, to_table, materialize: what is stored, refused, superseded, sent on."""

from __future__ import annotations

import pytest

from tests.runtime.operators.driving import STREAM, UNVERSIONED, dropped, put, values
from vsc.testing import TopologyTestDriver, VersionedRecord

SHORT = "table t (k string, v string) from memory () key k materialize versioned (retention = 10 ms);"
NO_STORE = "table t (k string, v string) from memory () key k;"
KEEP_A = "table f = filter t where v like 'a%'{store};"


def test_a_versioned_source_refuses_what_is_older_than_its_grace() -> None:
    with TopologyTestDriver(SHORT) as driver:
        put(driver, "t", "x", "new", 100)
        put(driver, "t", "y", "in time", 90)
        put(driver, "t", "y", "too late", 89)
        put(driver, "t", "x", "older", 95)
        put(driver, "t", "z", None, 95)
        assert values(driver, "t") == [("new", 100), ("in time", 90), ("older", 95), (None, 95)]
        assert dropped(driver) == {"t": {"expired": 1}}
        store = driver.store("t")
        assert store.get({"k": "x"}) == VersionedRecord({"v": "new"}, 100, None)
        assert store.get({"k": "x"}, as_of=99) == VersionedRecord({"v": "older"}, 95, 100)
        assert store.get({"k": "x"}, as_of=94) is None
        assert store.get({"k": "z"}) is None


def test_a_longer_grace_than_retention() -> None:
    text = SHORT.replace("retention = 10 ms", "retention = 10 ms, grace = 50 ms")
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "x", "new", 100)
        put(driver, "t", "y", "old", 50)
        put(driver, "t", "y", "too old", 49)
        assert values(driver, "t") == [("new", 100), ("old", 50)]
        assert driver.store("t").get({"k": "y"}) == VersionedRecord({"v": "old"}, 50, None)


def test_an_unversioned_source_takes_what_comes_last() -> None:
    with TopologyTestDriver(UNVERSIONED) as driver:
        put(driver, "t", "x", "new", 100)
        put(driver, "t", "x", "older", 1)
        assert values(driver, "t") == [("new", 100), ("older", 1)]
        assert driver.store("t").get({"k": "x"}) == VersionedRecord({"v": "older"}, 1, None)


def test_delete_when_true_makes_a_tombstone_and_null_does_not() -> None:
    text = (
        "table t (k string, v string, gone boolean) from memory () key k delete when gone"
        " materialize versioned (retention = 1 minute);"
    )
    with TopologyTestDriver(text) as driver:
        for time, gone in enumerate((None, False, True)):
            driver.pipe("t", {"k": "x", "v": "a", "gone": gone}, timestamp=time)
        assert [r.value for r in driver.read("t")] == [{"v": "a", "gone": None}, {"v": "a", "gone": False}, None]


REJECTED_TWICE = [("b", 1), ("b", 2), ("a", 3), ("b", 4), (None, 5)]


@pytest.mark.parametrize(
    ("table", "store", "expected"),
    [
        # D7: without a store nothing is known of old rows; with one, repeated tombstones end here; versioned: never
        (NO_STORE, "", [(None, 1), (None, 2), ("a", 3), (None, 4), (None, 5)]),
        (NO_STORE, " materialize unversioned", [(None, 1), (None, 2), ("a", 3), (None, 4), (None, 5)]),
        (UNVERSIONED, "", [("a", 3), (None, 4)]),
        (UNVERSIONED, " materialize unversioned", [("a", 3), (None, 4)]),
        (UNVERSIONED, " materialize versioned (retention = 1 minute)", [("a", 3), (None, 4)]),
        (SHORT, "", [(None, 1), (None, 2), ("a", 3), (None, 4), (None, 5)]),
        (SHORT, " materialize unversioned", [(None, 1), (None, 2), ("a", 3), (None, 4), (None, 5)]),
    ],
)
def test_a_filter_drops_repeated_tombstones_of_an_unversioned_stored_table(
    table: str, store: str, expected: list[tuple[str | None, int]]
) -> None:
    with TopologyTestDriver(table + KEEP_A.format(store=store)) as driver:
        for value, time in REJECTED_TWICE:
            put(driver, "t", "x", value, time)
        assert values(driver, "f") == expected


def test_only_the_filter_of_the_unversioned_table_drops() -> None:
    text = SHORT + KEEP_A.format(store=" materialize unversioned") + "table g = filter f where true;"
    with TopologyTestDriver(text) as driver:
        for value, time in REJECTED_TWICE:
            put(driver, "t", "x", value, time)
        assert values(driver, "f") == [(None, 1), (None, 2), ("a", 3), (None, 4), (None, 5)]
        assert values(driver, "g") == [("a", 3), (None, 4)]


def test_a_chain_without_stores_counts_as_its_stored_ancestor() -> None:
    text = UNVERSIONED + "table m = map t select v || '!' as v; table f = filter m where v like 'a%';"
    with TopologyTestDriver(text) as driver:
        for value, time in REJECTED_TWICE:
            put(driver, "t", "x", value, time)
        assert values(driver, "m") == [("b!", 1), ("b!", 2), ("a!", 3), ("b!", 4), (None, 5)]
        assert values(driver, "f") == [("a!", 3), (None, 4)]


def test_a_filter_of_a_filter_sees_the_filtered_old_row() -> None:
    text = UNVERSIONED + KEEP_A.format(store="") + "table g = filter f where v like '%z';"
    with TopologyTestDriver(text) as driver:
        for time, value in enumerate(("a", "az", "ay", "bz", "az")):
            put(driver, "t", "x", value, time)
        assert values(driver, "f") == [("a", 0), ("az", 1), ("ay", 2), (None, 3), ("az", 4)]
        assert values(driver, "g") == [("az", 1), (None, 2), ("az", 4)]


def test_materialize_judges_by_its_own_store() -> None:
    text = (
        SHORT.replace("10 ms", "100 ms")
        + "table u = materialize t unversioned; table w = materialize u versioned (retention = 5 ms);"
    )
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "x", "new", 100)
        put(driver, "t", "x", "older", 97)
        put(driver, "t", "x", "old", 50)
        assert values(driver, "u") == [("new", 100), ("older", 97), ("old", 50)]
        assert values(driver, "w") == [("new", 100), ("older", 97)]
        assert dropped(driver) == {"w": {"expired": 1}}
        assert driver.store("t").get({"k": "x"}) == VersionedRecord({"v": "new"}, 100, None)
        assert driver.store("u").get({"k": "x"}) == VersionedRecord({"v": "old"}, 50, None)
        assert driver.store("w").get({"k": "x"}, as_of=99) == VersionedRecord({"v": "older"}, 97, 100)


def test_map_with_a_store_of_another_kind() -> None:
    text = SHORT + "table m = map t select v || '!' as v materialize as mapped unversioned;"
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "x", "new", 10)
        put(driver, "t", "x", "older", 5)
        assert values(driver, "m") == [("new!", 10), ("older!", 5)]
        assert driver.store("mapped").get({"k": "x"}) == VersionedRecord({"v": "older!"}, 5, None)


def test_to_table_deletes_by_predicate_and_by_records_without_value() -> None:
    text = STREAM + "table t = to_table s delete when v = 'gone' materialize versioned (retention = 1 minute);"
    with TopologyTestDriver(text) as driver:
        for time, value in enumerate(("one", "gone", "two", None)):
            put(driver, "s", "x", value, time)
        assert values(driver, "t") == [("one", 0), (None, 1), ("two", 2), (None, 3)]
        assert driver.store("t").get({"k": "x"}, as_of=0) == VersionedRecord({"v": "one"}, 0, 1)
        assert driver.store("t").get({"k": "x"}, as_of=3) is None


OWN_TABLE = " materialize versioned (retention = 1 minute);"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        # depth first, in the order of the statements: what stands first has been done when the second begins
        ("stream a = filter s where true; table t = to_table a" + OWN_TABLE + "stream j = left join s with t", "1-1"),
        (
            "stream b = filter s where true; table t = to_table s" + OWN_TABLE + "stream j = left join b with t",
            "1-null",
        ),
        ("table t = to_table s" + OWN_TABLE + "stream b = filter s where true; stream j = left join b with t", "1-1"),
        ("table t = to_table s" + OWN_TABLE + "stream j = left join s with t", "1-1"),
    ],
)
def test_a_stream_meets_its_own_table(nodes: str, expected: str) -> None:
    stream = "b" if "join b" in nodes else "s"
    text = STREAM + nodes + f" select {stream}.v || '-' || coalesce(t.v, 'null') as v;"
    with TopologyTestDriver(text) as driver:
        put(driver, "s", "x", "1", 5)
        assert values(driver, "j") == [(expected, 5)]


def test_stream_filter_and_map_of_records_without_value() -> None:
    text = (
        STREAM
        + "stream f = filter s where v = 'a'; stream n = filter s where v is null;"
        + "stream m = map s select v || '!' as v;"
    )
    with TopologyTestDriver(text) as driver:
        put(driver, "s", "x", "a", 1)
        put(driver, "s", "x", None, 2)
        driver.pipe("s", {"k": "x"}, timestamp=3)
        assert values(driver, "f") == [("a", 1)]
        assert values(driver, "n") == [(None, 2), (None, 3)]
        assert values(driver, "m") == [("a!", 1), (None, 2), (None, 3)]
