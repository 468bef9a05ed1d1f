"""Joins of two streams: what meets, what comes out alone, what is counted, kept and forgotten.

What Kafka Streams does is in `tests/conformance`; random topologies are in `tests/random_topologies`.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import product
from typing import Any

import pytest

from tests.runtime.operators.driving import RECORDS, dropped, missed
from vsc.compiler import compile_topology
from vsc.runtime.errors import StateError
from vsc.runtime.operators.views.catalog import find_store, open_view
from vsc.runtime.operators.views.question import question
from vsc.runtime.state.joined import Joined, RecordKey, packed, unpacked
from vsc.runtime.state.kv import MemoryKV
from vsc.testing import TopologyTestDriver

STREAMS = """stream a (k string, v bigint, at bigint) from memory () key k timestamp at;
stream b (k string, w bigint, at bigint) from memory () key k timestamp at;
"""
CLOCKS = pytest.mark.parametrize("clock", [RECORDS, ""], ids=["records", "input"])

Row = tuple[str, str | None, int | None, int]
"""Source, key, value, event time."""


def join(mode: str, within: str, select: str = "v, w") -> str:
    return f"{STREAMS}stream j = {mode}join a with b {within} select {select};"


def pipe(driver: TopologyTestDriver, given: list[Row]) -> None:
    for source, key, value, at in given:
        driver.pipe(source, {"k": key, "v" if source == "a" else "w": value, "at": at})


def play(text: str, given: list[Row], drain: bool = False, **options: Any) -> list[tuple[Any, ...]]:
    with TopologyTestDriver(text, **options) as driver:
        pipe(driver, given)
        if drain:
            driver.drain()
        return [(r.key["k"], *(r.value or {}).values(), r.timestamp) for r in driver.read("j")]


@CLOCKS
def test_both_ends_belong_and_every_pair_comes_once_in_the_order_of_the_partners(clock: str) -> None:
    text = clock + join("", "within (before = 3 ms, after = 5 ms) grace 20 ms")
    given: list[Row] = [
        ("b", "x", 1, 96), ("b", "x", 2, 97), ("b", "x", 3, 105), ("b", "x", 4, 106), ("b", "y", 5, 100),
        ("a", "x", 10, 100), ("a", "x", 20, 102), ("b", "x", 6, 101),
    ]  # fmt: skip
    assert play(text, given) == [
        ("x", 10, 2, 100), ("x", 10, 3, 105), ("x", 20, 3, 105), ("x", 20, 4, 106), ("x", 10, 6, 101), ("x", 20, 6, 102)
    ]  # fmt: skip


@CLOCKS
@pytest.mark.parametrize(
    ("side", "met"),
    [
        ("before = 3 ms", [("x", 10, 2, 100), ("x", 10, 3, 100)]),
        ("after = 3 ms", [("x", 10, 3, 100), ("x", 10, 4, 103)]),
    ],
)
def test_a_side_that_is_left_out_is_zero(side: str, met: list[Any], clock: str) -> None:
    text = clock + join("", f"within ({side}) grace 20 ms")
    partners: list[Row] = [("b", "x", n, at) for n, at in enumerate((96, 97, 100, 103, 104), 1)]
    assert play(text, [*partners, ("a", "x", 10, 100)]) == met


@CLOCKS
@pytest.mark.parametrize(
    ("mode", "alone"),
    [("", []), ("left ", [("x", 1, None, 100)]), ("outer ", [("x", 1, None, 100), ("y", None, 2, 103)])],
)
def test_what_finds_no_partner_comes_out_when_none_can_come_any_more(mode: str, alone: list[Any], clock: str) -> None:
    text = clock + join(mode, "within (before = 4 ms, after = 6 ms) grace 2 ms")
    given: list[Row] = [("a", "x", 1, 100), ("b", "y", 2, 103), ("a", "z", 3, 108)]
    assert play(text, given) == []
    assert play(text, [*given, ("a", "z", 3, 109)]) == alone[:1]
    assert play(text, [*given, ("a", "z", 3, 110)]) == alone
    assert play(text, given, drain=True) == [*alone, *([("z", 3, None, 108)] if mode else [])]


@CLOCKS
def test_a_partner_in_the_grace_is_in_time_and_a_later_one_is_a_second_result(clock: str) -> None:
    text = clock + join("left ", "within 5 ms grace 3 ms")
    first: list[Row] = [("a", "x", 1, 100), ("b", "z", 0, 108)]
    assert play(text, [*first, ("b", "x", 2, 104), ("b", "z", 0, 120)]) == [("x", 1, 2, 104)]
    assert play(text, [*first, ("b", "z", 0, 109), ("b", "x", 2, 104)]) == [("x", 1, None, 100), ("x", 1, 2, 104)]


@pytest.mark.parametrize(
    ("clock", "alone", "counts"),
    [(RECORDS, [("y", 94), ("y", 86), ("y", 81)], {"late": 1, "older_than_retention": 2}),
     ("", [("y", 86), ("y", 81)], {"older_than_retention": 2})],
    ids=["records", "input"],
)  # fmt: skip
def test_one_too_late_to_wait_comes_out_at_once_and_is_counted_with_the_grace_it_needed(
    clock: str, alone: list[Any], counts: dict[str, int]
) -> None:
    with TopologyTestDriver(clock + join("outer ", "within 5 ms grace 3 ms")) as driver:
        pipe(driver, [("a", "x", 1, 100), ("b", "y", 2, 94), ("b", "y", 3, 86), ("b", "y", 4, 81)])
        assert [(r.key["k"], r.timestamp) for r in driver.read("j")] == alone
        assert missed(driver) == {"j": counts}
        assert driver.metrics()["grace_needed"] == {"j": 14}


def test_late_within_the_grace_it_waits_until_the_clock_passes_and_no_longer() -> None:
    text = join("left ", "within (before = 2 ms, after = 5 ms) grace 4 ms")
    late: list[Row] = [("b", "z", 0, 109), ("a", "x", 1, 100)]  # its last partner could be of 105, and come until 109
    assert play(text, [*late, ("b", "x", 2, 98)]) == [("x", 1, 2, 100)]
    assert play(text, [*late, ("b", "z", 0, 109)]) == []
    assert play(text, [*late, ("b", "z", 0, 110)]) == [("x", 1, None, 100)]
    assert play(text, [("b", "z", 0, 110), ("a", "x", 1, 100)]) == [("x", 1, None, 100)]


def _random_rows(chance: random.Random, grace: int) -> list[Row]:
    """Rows out of order by at most the grace."""
    rows: list[Row] = []
    now = 0
    for number in range(chance.randint(10, 60)):
        now += chance.choice((0, 0, 1, 3, 8))
        at = max(0, now - chance.choice((0, 0, 0, 1, grace)))
        rows.append((chance.choice("ab"), chance.choice("pqr"), number, at))
    return rows


def _by_brute_force(mode: str, before: int, after: int, rows: list[Row]) -> Counter[tuple[Any, ...]]:
    sides = {side: [row[1:] for row in rows if row[0] == side] for side in "ab"}
    pairs = [(one, other) for one, other in product(sides["a"], sides["b"])
             if one[0] == other[0] and -before <= other[2] - one[2] <= after]  # fmt: skip
    found = Counter((k, v, other[1], max(at, other[2])) for (k, v, at), other in pairs)
    if mode:
        met = {one for one, _ in pairs}
        found.update((k, v, None, at) for k, v, at in sides["a"] if (k, v, at) not in met)
    if mode == "outer ":
        met = {other for _, other in pairs}
        found.update((k, None, w, at) for k, w, at in sides["b"] if (k, w, at) not in met)
    return found


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 20))])
def test_rows_out_of_order_by_at_most_the_grace_give_what_all_pairs_give(seed: int) -> None:
    chance = random.Random(seed)
    mode, grace = chance.choice(("", "left ", "outer ")), chance.choice((3, 10, 40))
    before, after = chance.choice((0, 5, 20)), chance.choice((0, 7, 20))
    rows = _random_rows(chance, grace)
    text = join(mode, f"within (before = {before} ms, after = {after} ms) grace {grace} ms")
    found: list[Counter[tuple[Any, ...]]] = []
    for partitions in (1, 3):
        with TopologyTestDriver(text, partitions=partitions) as driver:
            for row in rows:
                pipe(driver, [row])
                if chance.random() < 0.05:
                    driver.restart()
            driver.drain()
            found.append(Counter((r.key["k"], *(r.value or {}).values(), r.timestamp) for r in driver.read("j")))
    assert found == [_by_brute_force(mode, before, after, rows)] * 2


def test_a_join_with_itself_meets_itself_once_and_others_both_ways() -> None:
    text = STREAMS + "stream j = join a as l with a as r within 5 ms select l.v as v, r.v as w;"
    assert play(text, [("a", "x", 1, 100), ("a", "x", 2, 104), ("a", "x", 3, 106)]) == [
        ("x", 1, 1, 100), ("x", 2, 1, 104), ("x", 1, 2, 104), ("x", 2, 2, 104), ("x", 3, 2, 106), ("x", 2, 3, 106),
        ("x", 3, 3, 106),
    ]  # fmt: skip


def test_times_of_the_result_and_of_both_sides() -> None:
    text = join("outer ", "within 5 ms", "event_time() as t, event_time(a) as l, event_time(b) as r")
    found = play(text, [("a", "x", 1, 103), ("b", "x", 2, 101), ("b", "y", 3, 110)], drain=True)
    times = [tuple(None if t is None else t.microsecond // 1000 for t in row[1:4]) for row in found]
    assert times == [(103, 103, 101), (110, None, 110)]


def test_records_without_a_value_or_a_key_are_dropped_and_move_nothing() -> None:
    text = join("left ", "within 5 ms")
    with TopologyTestDriver(text) as driver:
        driver.delete("a", {"k": "x"}, timestamp=100)
        driver.delete("b", {"k": "x"}, timestamp=100)
        pipe(driver, [("b", "x", 1, 100)])
        assert list(driver.read("j")) == []
        assert dropped(driver) == {"j": {"no_value": 2}}
    keyless = """table t (k string, c string) from memory () key k;
      stream n = left join a with t on k select c; stream l = left join n with t on c select t.k as tk, n.k as nk;
      stream j = left join l with a within 5 ms select v;"""
    with TopologyTestDriver(STREAMS + keyless) as driver:
        pipe(driver, [("a", "x", 1, 100)])
        assert dropped(driver) == {"j": {"null_join_key": 1}}


@pytest.mark.parametrize("mode", ["", "outer "])
def test_a_result_that_fails_takes_the_record_to_which_it_happens(mode: str) -> None:
    text = join(mode, "within 5 ms", "10 / (v + w) as q, 1 / coalesce(v, 1) as p") + "sink dropped to memory ();"
    with TopologyTestDriver(text, on_error="drop") as driver:
        pipe(
            driver,
            [("a", "x", 2, 100), ("b", "x", -2, 101), ("b", "x", 3, 102), ("a", "y", 0, 103), ("a", "z", 1, 110)],
        )
        found = [(r.key["k"], r.timestamp) for r in driver.read("j")]
        letters = [json.loads(str((r.value or {})["value"])) for r in driver.read("dropped")]
    assert found == [("x", 102)]
    assert letters == [{"w": -2, "at": 101}, *([{"v": 0, "at": 103}] if mode else [])]


def test_missed_records_are_kept_with_their_reason() -> None:
    text = RECORDS + join("outer ", "within 5 ms grace 3 ms") + "sink missed of j to memory ();"
    with TopologyTestDriver(text) as driver:
        pipe(driver, [("a", "x", 1, 100), ("b", "y", 2, 94), ("b", "z", 3, 109)])
        found = [(r.value or {}) for r in driver.read("missed of j")]
        told = [(r["node"], r["reason"], r["source"], json.loads(str(r["value"]))) for r in found]
        assert sorted(told) == [("j", "late", "b", {"w": 2, "at": 94}), ("j", "no_record", None, {"v": 1, "at": 100})]
        assert missed(driver) == {"j": {"late": 1, "no_record": 1}}


# ------------------------------------------------------------------------------------------------------------ the state


@pytest.mark.quick(1)
@CLOCKS
def test_the_state_holds_no_more_than_the_span_and_is_seen(clock: str) -> None:
    with TopologyTestDriver(clock + join("outer ", "within (before = 3 ms, after = 6 ms) grace 2 ms")) as driver:
        store = find_store(driver.plan, "j")
        assert (store.name, store.kind) == ("j#records", "records")
        assert store.names == (
            "k",
            "left.v",
            "left.at",
            "right.w",
            "right.at",
            "_status",
            "_timestamp",
            "_due",
            "_right",
        )

        def seen(**asked: Any) -> list[Any]:
            view = open_view(driver.plan, store, driver._stores[0])
            return [(e.status.value, e.key[0], *e.extra) for e in view.answer(question(store, **asked))]

        most = 0
        for number in range(150):  # a key that never comes back each time, and one that always does
            pipe(driver, [("a", f"k{number}", 1, number), ("b", "same", 2, number)])
            most = max(most, len(list(driver._stores[0].scan(b"", None))))
        # A span has 12 ms on each side; buckets of 10 ms go when all of it is too old; the unpaired wait 9 and 6 ms.
        assert most <= 1 + (12 + 10) + 3 + 9 + 6
        pipe(driver, [("a", "x", 1, 1000), ("b", "y", 2, 1001)])
        assert seen() == [
            ("row", "x", 1000, 1012, 0), ("row", "y", 1001, 1013, 1), ("waiting", "x", 1000, 1009, 0),
            ("waiting", "y", 1001, 1007, 1),
        ]  # fmt: skip
        assert seen(key={"k": "y"}) == [("row", "y", 1001, 1013, 1), ("waiting", "y", 1001, 1007, 1)]
        view = open_view(driver.plan, store, driver._stores[0])
        assert (view.rows(), view.held, view.stream_time) == (4, 2, 1001)


def test_an_inner_join_lets_nothing_wait() -> None:
    with TopologyTestDriver(join("", "within 3 ms")) as driver:
        pipe(driver, [("a", "x", 1, 100)])
        store = find_store(driver.plan, "j")
        assert open_view(driver.plan, store, driver._stores[0]).held == 0
        assert not driver.plan.node("j").operation.waits


def test_state_of_something_else_is_refused() -> None:
    kv, rows = MemoryKV(), [(RecordKey(0, 3, b"k"), packed(None, unpacked([])[1][:0], []))]
    state = Joined(kv, b"p", 10)
    state.newest = [35, -1]
    state.write(rows, [], [], 0)
    again = Joined(kv, b"p", 10)
    assert (again.newest, again.waiting, [place for place, _ in again.scan()]) == ([35, -1], 0, [RecordKey(0, 3, b"k")])
    kv.write([(b"\0\1pm", b"VSTX")])
    with pytest.raises(StateError, match="not the state of a join of streams"):
        Joined(kv, b"p", 10)
    with pytest.raises(StateError, match="damaged"):
        unpacked([b"\2\0\0\0"])


def test_the_plan_has_no_more_stages_than_a_join_needs() -> None:
    plan = compile_topology(join("left ", "within 3 ms"), path="t.vdsl")
    assert [stage.nodes for stage in plan.stages] == [("a", "b"), ("j",)]
