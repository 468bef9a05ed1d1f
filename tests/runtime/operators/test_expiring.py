"""Tables whose rows expire: when, in what order, what their readers see, and what is too late."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import Stores
from tests.oracle.epochs import EpochRow
from tests.random_topologies.test_partitions import Rows, apart, cut
from tests.runtime.operators.carry.carrying import changed, compiled, epoch, run
from tests.runtime.operators.carry.test_waiting import Waits
from vsc.runtime.operators.views.catalog import find_store, open_view, stores_of
from vsc.runtime.operators.views.question import Question
from vsc.testing import Record, TopologyTestDriver

TEXT = """
topology t (clock = '{clock}');
table t (k string, v bigint, at bigint, gone boolean) from memory () key k timestamp at delete when gone
  materialize unversioned (expire = 100 ms);
stream s (k string, at bigint) from memory () key k timestamp at;
stream j = left join s with t select v;
table a = aggregate t group by v select count(*) as n;
sink j to memory ();
sink t to memory ();
sink a to memory ();
sink dropped to memory ();
"""
PARTITIONS = (1, 7, *(pytest.param(count, marks=pytest.mark.slow) for count in (2, 4)))


def t(key: str, at: int, v: int = 0, gone: bool = False) -> tuple[str, dict[str, Any]]:
    return "t", {"k": key, "v": v, "at": at, "gone": gone}


def s(key: str, at: int = 0) -> tuple[str, dict[str, Any]]:
    return "s", {"k": key, "at": at}


def driven(rows: Rows, node: str, partitions: int = 1, clock: str = "input", drain: bool = True) -> list[Any]:
    """The records of a node, in order: key, value (of one column) and time; the rows come one by one."""
    with TopologyTestDriver(TEXT.format(clock=clock), partitions=partitions) as driver:
        for source, row in rows:
            driver.pipe(source, row)
        if drain:
            driver.drain()
        return [short(record) for record in driver.read(node)]


def short(record: Record) -> tuple[Any, Any, int]:
    (key,) = record.key.values()
    return key, None if record.value is None else next(iter(record.value.values())), record.timestamp


# ------------------------------------------------------------------------------------------- when and in what order


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_rows_expire_by_time_and_key_before_the_row_that_moves_the_clock(partitions: int) -> None:
    rows = [t("c", 10), t("b", 30), t("a", 30), t("d", 20), t("x", 131)]
    expected: list[Any] = [("c", 0, 10), ("b", 0, 30), ("a", 0, 30), ("d", 0, 20)]
    expected += [("c", None, 110), ("d", None, 120), ("a", None, 130), ("b", None, 130), ("x", 0, 131)]
    assert driven(rows, "t", partitions) == expected
    assert not apart(TEXT.format(clock="input"), rows, partitions=partitions)


def test_by_the_clock_of_records_they_do_behind_it() -> None:
    rows = [t("c", 10), t("b", 30), t("a", 30), t("x", 131)]
    assert driven(rows, "t", clock="records")[3:] == [
        ("x", 0, 131),
        ("c", None, 110),
        ("a", None, 130),
        ("b", None, 130),
    ]


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_the_moment_itself_counts_and_the_millisecond_before_does_not(partitions: int) -> None:
    assert driven([t("a", 10), t("x", 109)], "t", partitions) == [("a", 0, 10), ("x", 0, 109)]
    assert driven([t("a", 10), t("x", 110)], "t", partitions)[1:] == [("a", None, 110), ("x", 0, 110)]


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_row_that_is_renewed_expires_by_its_new_time(partitions: int) -> None:
    rows = [t("a", 10, 1), t("a", 60, 2), t("x", 120), t("x", 160)]
    assert driven(rows, "t", partitions) == [("a", 1, 10), ("a", 2, 60), ("x", 0, 120), ("a", None, 160), ("x", 0, 160)]
    assert not apart(TEXT.format(clock="input"), rows[:3], rows[3:], partitions=partitions)


@pytest.mark.parametrize("clock", ["input", "records"])
def test_a_row_that_is_deleted_does_not_expire(clock: str) -> None:
    rows = [t("a", 10), t("a", 20, gone=True), t("x", 300)]
    assert driven(rows, "t", clock=clock) == [("a", 0, 10), ("a", None, 20), ("x", 0, 300)]


def test_a_row_renewed_by_the_one_that_is_past_it_has_expired_by_the_input_and_not_by_records() -> None:
    rows = [t("a", 10, 1), t("a", 200, 2)]
    assert driven(rows, "t") == [("a", 1, 10), ("a", None, 110), ("a", 2, 200)]
    assert driven(rows, "t", clock="records") == [("a", 1, 10), ("a", 2, 200)]


@pytest.mark.parametrize("clock", ["input", "records"])
def test_the_end_of_the_input_removes_nothing(clock: str) -> None:
    assert driven([t("a", 10)], "t", clock=clock) == [("a", 0, 10)]
    with TopologyTestDriver(TEXT.format(clock=clock)) as driver:
        driver.pipe(*t("a", 10))
        driver.drain()
        driver.pipe(*t("x", 110))
        assert [short(one) for one in driver.read("t") if one.value is None] == [("a", None, 110)]


@pytest.mark.parametrize(("emit", "sent"), [
    ("", [(0, 1, 1), (0, 2, 4), (10, 1, 12), (30, 1, 33), (0, None, 34), (30, 2, 34), (10, None, 42), (40, 1, 45)]),
    ("emit final", [(0, 2, 4), (10, 1, 12), (30, 2, 34), (0, None, 34)]),
])  # fmt: skip
def test_a_copy_of_windows_forgets_them(emit: str, sent: list[Any]) -> None:
    """A window's row has the time of its newest record; one that waits for its window is not late for the copy."""
    text = f"""
    stream s (k string, at bigint) from memory () key k timestamp at;
    table w = aggregate s group by k window tumbling (size = 10 ms) {emit} select count(*) as n;
    table m = materialize w unversioned (expire = 30 ms);
    sink m to memory ();
    """
    with TopologyTestDriver(text) as driver:
        for at in (1, 4, 12, 33, 34, 45):
            driver.pipe(*s("a", at))
        found = [(one.key["window_start"], one.value and one.value["n"], one.timestamp) for one in driver.read("m")]
        assert [(start.timestamp() * 1000, n, time) for start, n, time in found] == sent


# ------------------------------------------------------------------------------------------------------ what is late


@pytest.mark.parametrize("clock", ["input", "records"])
@pytest.mark.parametrize("gone", [False, True])
def test_a_change_that_would_expire_at_once_is_refused_and_the_row_that_is_there_stays(clock: str, gone: bool) -> None:
    with TopologyTestDriver(TEXT.format(clock=clock)) as driver:
        for row in (t("a", 150, 1), t("a", 50, 2, gone)):
            driver.pipe(*row)
        assert [short(one) for one in driver.read("t")] == [("a", 1, 150)]
        assert driver.store("t").get({"k": "a"}).value["v"] == 1  # type: ignore[union-attr]
        assert driver.metrics()["dropped_records"] == {"t": {"expired": 1}}
        (letter,) = driver.read("dropped")
        assert letter.value is not None
        assert [letter.value[name] for name in ("node", "reason", "source", "key")] == [
            "t",
            "expired",
            "t",
            '{"k":"a"}',
        ]
        assert letter.value["position"]


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_one_that_is_less_late_replaces_a_newer_row_and_expires_by_its_own_time(partitions: int) -> None:
    rows = [t("a", 150, 1), t("a", 51, 2), t("x", 151)]
    assert driven(rows, "t", partitions) == [("a", 1, 150), ("a", 2, 51), ("a", None, 151), ("x", 0, 151)]


# ----------------------------------------------------------------------------------------------------- what readers see

READ = [
    t("a", 10, 5),
    t("b", 20, 5),
    s("a"),
    t("x", 109),
    s("a"),
    t("x", 110),
    s("a", 1),
    s("b", 1),
    t("x", 120),
    s("b", 2),
]


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_look_up_finds_a_row_until_the_table_has_come_to_its_moment(partitions: int) -> None:
    found = [("a", 5, 0), ("a", 5, 0), ("a", None, 1), ("b", 5, 1), ("b", None, 2)]
    assert driven(READ, "j", partitions) == found
    assert not apart(TEXT.format(clock="input"), READ, partitions=partitions)


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_an_aggregate_takes_it_back(partitions: int) -> None:
    rows = [t("a", 10, 5), t("b", 20, 5), t("x", 300, 6)]
    changes = [(5, 1, 10), (5, 2, 20), (5, 1, 110), (5, None, 120), (6, 1, 300)]
    assert driven(rows, "a", partitions) == changes
    assert [(time, value) for _, time, value in cut(TEXT.format(clock="input"), rows, partitions)["a"]] == [
        (10, "(1,)"), (20, "(2,)"), (110, "(1,)"), (120, None), (300, "(1,)")
    ]  # fmt: skip


BEHIND = """
stream s (k string, v bigint, at bigint) from memory () key k timestamp at;
table counts = aggregate s group by k select count(*) as n;
table calm = suppress counts until time limit 10 ms;
table recent = materialize calm as kept unversioned (expire = 50 ms);
stream changes = to_stream recent;
table w = aggregate changes group by k window tumbling (size = 5 ms) select count(*) as n, max(n) as most;
sink recent to memory ();
sink w to memory ();
"""


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_behind_what_holds_back_they_expire_by_a_clock_as_far_behind(partitions: int) -> None:
    rows = [
        ("s", {"k": "a", "v": 1, "at": 0}),
        ("s", {"k": "x", "v": 1, "at": 59}),
        ("s", {"k": "x", "v": 1, "at": 60}),
    ]
    with TopologyTestDriver(BEHIND, partitions=partitions) as driver:
        for source, row in rows:
            driver.pipe(source, row)
        assert [short(one) for one in driver.read("recent")] == [("a", 1, 0), ("a", None, 50)]
        assert driver.metrics()["dropped_records"] == {"w": {"no_value": 1}}
        driver.drain()
        assert [short(one) for one in driver.read("recent")] == [("x", 2, 60)]
    assert not apart(BEHIND, rows, partitions=partitions)


BESIDE = """
table t (k string, at bigint) from memory () key k timestamp at materialize unversioned (expire = 100 ms);
stream s (k string, at bigint) from memory () key k timestamp at;
stream changes = to_stream t;
stream plain = map s select at;
stream both = merge changes, plain;
stream d = distinct both within 5 ms;
table n = aggregate changes group by k select count(*) as n;
sink d to memory ();
sink n to memory ();
sink dropped of n to memory ();
"""


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_tombstone_meets_the_clock_of_the_other_source_of_its_reader(partitions: int) -> None:
    rows = [("t", {"k": "a", "at": 1}), ("s", {"k": "x", "at": 150}), ("t", {"k": "y", "at": 160})]
    with TopologyTestDriver(BESIDE, partitions=partitions) as driver:
        for source, row in rows:
            driver.pipe(source, row)
        # the tombstone of the time 101 is 49 ms behind `s` when it comes
        assert [short(one)[::2] for one in driver.read("d")] == [("a", 1), ("x", 150), ("y", 160)]
        assert driver.metrics()["dropped_records"] == {"d": {"expired": 1}, "n": {"no_value": 1}}
        (letter,) = driver.read("dropped of n")
        assert letter.value is not None
        told = [letter.value[name] for name in ("reason", "source", "position", "key")]
        assert told == ["no_value", "t", None, '{"k":"a"}']
    assert not apart(BESIDE, rows, partitions=partitions)


# ------------------------------------------------------------------------------------------------------- what it keeps


@pytest.mark.parametrize("clock", ["input", "records"])
def test_keys_that_never_come_back_leave_nothing_behind(clock: str) -> None:
    plan, stores = compiled(TEXT.format(clock=clock)), Stores()
    sizes = []
    for start in range(0, 5000, 1000):
        rows = [EpochRow("t", "f", at, t(f"key {at}", at)[1], at) for at in range(start, start + 1000)]
        run(plan, [rows], stores)
        sizes.append([open_view(plan, store, stores(store.stage, 0)).rows() for store in stores_of(plan)])
    assert sizes[0] == sizes[-1]
    assert [size for store, size in zip(stores_of(plan), sizes[-1], strict=True) if store.node == "t"] == [100, 100]


def test_a_store_tells_when_rows_expire() -> None:
    plan, stores = compiled(TEXT.format(clock="input")), Stores()
    rows = [EpochRow("t", "f", at, row, at) for at, (_, row) in ((10, t("b", 10)), (20, t("a", 20)), (30, t("b", 30)))]
    run(plan, [rows], stores)
    store = find_store(plan, "t#expiring")
    view = open_view(plan, store, stores(store.stage, 0))
    assert [(e.status.value, e.key, e.value, *e.extra) for e in view.answer(Question())] == [
        ("row", ("a",), (), 20, 120), ("row", ("b",), (), 30, 130)
    ]  # fmt: skip
    assert (store.names, view.held, view.stream_time) == (("k", "_status", "_timestamp", "_due"), 0, 30)


# -------------------------------------------------------------------------------------------------------------- changes

OLD = """table t (k string, w bigint, at bigint) from memory () key k timestamp at {};
stream s (k string, v bigint, at bigint) from memory () key k timestamp at;
stream j = left join s with t select w;
table n = aggregate t group by w select count(*) as n;
sink j to memory (); sink n to memory (); sink t to memory ();"""
"""Compiled with a store or without: the aggregate needs one."""
ROWS = [("t", key, 1, at) for at, key in enumerate("abcd")] + [("t", "e", 1, 60)]
LATER = [("t", "x", 2, 61), ("t", "x", 2, 70), ("t", "x", 2, 125)]


def expire(text: str) -> str:
    return OLD.format(f"materialize unversioned {text}")


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (4, 2)])
@pytest.mark.parametrize(
    ("was", "now", "gone"),
    [
        ("", "(expire = 60 ms)", {"a": 60, "b": 61, "c": 62, "d": 63, "e": 120}),
        ("", "(expire = 10 ms)", {"a": 10, "b": 11, "c": 12, "d": 13, "e": 70}),
        ("(expire = 1 hour)", "(expire = 60 ms)", {"a": 60, "b": 61, "c": 62, "d": 63, "e": 120}),
        ("(expire = 61 ms)", "(expire = 10 ms)", {"a": 10, "b": 11, "c": 12, "d": 13, "e": 70}),
        ("(expire = 65 ms)", "(expire = 125 ms)", {"a": 125}),
        ("(expire = 65 ms)", "", {}),
    ],
)
def test_a_checkpoint_goes_on_with_its_rows(was: str, now: str, gone: dict[str, int], before: int, after: int) -> None:
    found = changed(expire(was), expire(now), ROWS, LATER, before, after)
    sent = {key: rows for key, rows in found.sent["t"].items() if key != "('x',)"}
    assert sent == {f"('{key}',)": [(at, None)] for key, at in gone.items()}
    rest = sorted(key for key in "abcde" if key not in gone)
    left = [row for row in found.kept["t in 1"] if b"x" not in row[1]]
    assert len(left) == len(rest)
    counts = [n for _, n in found.sent["n"].get("(1,)", [])]
    assert counts == [f"({n},)" if n else None for n in range(4, 4 - len(gone), -1)]


def test_a_new_aggregate_is_filled_with_rows_that_expire_later() -> None:
    new = expire("(expire = 10 ms)") + "\ntable m = aggregate t group by w select count(*) as n;\nsink m to memory ();"
    for clock in ("input", "records"):
        begin = f"topology x (clock = '{clock}');\n"
        found = changed(begin + expire(""), begin + new, ROWS, LATER[:1], later_stage=Waits)
        assert found.sent["m"]["(1,)"][:5] == [(at, f"({n},)") for n, at in enumerate((0, 1, 2, 3, 60), 1)]
        assert found.sent["m"]["(1,)"][-1] == found.sent["n"]["(1,)"][-1]


def test_a_restart_and_a_cut_change_nothing() -> None:
    plan = compiled(expire("(expire = 10 ms)"))
    rows = [("t", "abc"[n % 3], n % 2, 4 * n % 37 + n) for n in range(40)]
    stores = Stores()
    whole = run(plan, [epoch(plan, rows)], stores)
    again: dict[str, dict[Any, list[Any]]] = {}
    stores = Stores()
    for number, row in enumerate(rows):
        for name, by_key in run(plan, [epoch(plan, [row], number)], stores).items():
            for key, sent in by_key.items():
                again.setdefault(name, {}).setdefault(key, []).extend(sent)
    assert again == whole
    assert sum(value is None for sent in whole["t"].values() for _, value in sent) == 14
