"""What is held back while the topology changes comes out, or a decision is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.oracle import Stores
from tests.runtime.operators.carry.carrying import SENT, carried, changed, compiled, content, epoch, run
from tests.runtime.operators.carry.test_carry import STREAM, TABLE
from tests.runtime.operators.carry.test_matrix import verdicts
from tests.runtime.operators.carry.test_meanings import refused
from vsc.runtime.operators.carry import Carry

WAITS = STREAM + TABLE + "stream waited = left join s with t on k grace 10 ms select v, w;\n"
ROWS = [("t", key, number, 0) for number, key in enumerate("abcdef")]
FIRST = [*ROWS, *(("s", key, number, 5) for number, key in enumerate("abcdef")), ("s", "a", 9, 8)]
BEHIND = """table sums = aggregate waited group by w window tumbling (size = 5 ms)
  select count(*) as n, sum(v) as total;
stream more = map waited select v + w as x;\n"""


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (4, 1), (2, 5)])
def test_records_that_wait_when_a_grace_is_removed_are_joined_first(before: int, after: int) -> None:
    new = WAITS.replace("grace 10 ms ", "")
    assert verdicts(WAITS, new) == {"store waited#waiting": "dropped"}
    found = changed(WAITS + BEHIND, new + BEHIND, FIRST, [("s", "b", 7, 40)], before, after)
    assert found.sent["waited"] == {
        f"('{key}',)": [(5, f"({n}, {n})"), *({"a": [(8, "(9, 0)")], "b": [(40, "(7, 1)")]}.get(key, []))]
        for n, key in enumerate("abcdef")
    }
    sums = [value for rows in found.sent["sums"].values() for _, value in rows]  # none is late behind the time 40
    assert sorted(sums) == ["(1, 0)", "(1, 1)", "(1, 2)", "(1, 3)", "(1, 4)", "(1, 5)", "(1, 7)", "(2, 9)"]
    assert sorted(row for rows in found.sent["more"].values() for row in rows) == [
        (5, "(0,)"), (5, "(10,)"), (5, "(2,)"), (5, "(4,)"), (5, "(6,)"), (5, "(8,)"), (8, "(9,)"), (40, "(8,)")
    ]  # fmt: skip


def test_they_are_joined_even_if_nothing_more_comes() -> None:
    found = changed(WAITS, WAITS.replace("grace 10 ms ", ""), FIRST, [], drain=False)
    assert sum(map(len, found.sent["waited"].values())) == 7


HELD = STREAM + "table counts = aggregate s group by k select count(*) as n;\n"
LIMIT = "table held = suppress counts until time limit {};\n"


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (4, 1)])
def test_a_suppress_that_holds_less_long_lets_go_of_what_it_holds(before: int, after: int) -> None:
    old, new = (HELD + LIMIT.format(limit) for limit in ("1 hour", "5 ms"))
    first = [("s", key, 1, at) for at, key in enumerate("abcdef")] + [("s", "a", 1, 100)]
    second = [("s", key, 1, 200) for key in "ghijklmnop"]
    found = changed(old, new, first, second, before, after, drain=False)
    assert found.sent["held"].keys() >= {f"('{key}',)" for key in "abcdef"}
    assert found.sent["held"]["('a',)"] == [(100, "(2,)")]


WINDOWS = (
    STREAM + "table ws = aggregate s group by k window tumbling (size = 10 ms, grace = {}) {}select count(*) as n;\n"
)


@pytest.mark.parametrize("how", ["emit final ", "", "suppress"])
def test_a_shorter_grace_of_windows_lets_go_of_what_they_hold(how: str) -> None:
    old, new = (
        WINDOWS.format(grace, how.replace("suppress", ""))
        + ("table held = suppress ws until window closes;\n" if how == "suppress" else "")
        for grace in ("1 hour", "0 ms")
    )
    first = [("s", "a", 1, 1), ("s", "a", 1, 2), ("s", "a", 1, 15), ("s", "b", 1, 100)]
    found = changed(old, new, first, [("s", "b", 1, 200)], drain=False)
    node = "held" if how == "suppress" else "ws"
    sent = sorted(value for key, rows in found.sent[node].items() if "'a'" in key for _, value in rows)
    assert sent == ([] if how == "" else ["(1,)", "(2,)"])


def test_a_suppress_until_something_else_is_decided_on() -> None:
    windows = WINDOWS.format("0 ms", "") + "table held = suppress ws until {};\n"
    old, new = windows.format("time limit 5 ms"), windows.format("window closes")
    assert verdicts(old, new)["store held#suppressed"] == "rebuild"
    message, _ = refused(old, new, accept=["held#suppressed"])
    assert message == "store 'held#suppressed' cannot be kept: it holds its rows until something else happens"


SINK = "sink {} to files (path = 'out', format = 'json');\n"


def test_what_a_suppress_holds_is_decided_on_when_it_is_removed() -> None:
    old, new = HELD + LIMIT.format("5 ms") + SINK.format("held"), HELD + SINK.format("counts")
    assert verdicts(old, new) == {"store held#suppressed": "rebuild", "sink counts to files 'out'": "rebuild"}
    assert refused(old, new)[0] == (
        "decide what becomes of these stores: "
        "held#suppressed: it is gone, and what it holds back has not reached the sink counts to files 'out'"
    )
    assert refused(old, new, accept=["held#suppressed"])[0] == "store 'held#suppressed' cannot be kept: it is gone"
    old_plan, stores = compiled(old), Stores()
    run(old_plan, [epoch(old_plan, [("s", key, 1, 1) for key in "abc"])], stores)
    carry = Carry.of(old_plan, compiled(new), 1, 1, frozenset(["held#suppressed"]), frozenset())
    assert carry.told(1, 0, stores(1, 0)).held == {"held#suppressed": 3}
    assert Carry.of(old_plan, old_plan, 1, 1, frozenset(), frozenset()).told(1, 0, stores(1, 0)).held == {}
    found = changed(old, new, [("s", "a", 1, 1)], [("s", "a", 1, 2)], reset=["held#suppressed"])
    assert found.sent["counts"] == {"('a',)": [(2, "(2,)")]}
    assert verdicts(old, HELD)["store held#suppressed"] == "dropped"  # nothing waits for it


@pytest.mark.parametrize("clock", ["input", "records"])
@pytest.mark.parametrize("window", ["sliding (difference = 5 ms)", "session (gap = 2 ms)"])
def test_a_final_window_that_has_moved_is_removed_by_a_late_record_of_its_key(clock: str, window: str) -> None:
    text = f"topology t (clock = '{clock}');\n{STREAM}"
    plan = compiled(text + f"table w = aggregate s group by k window {window} emit final select count(*) as n;\n")
    first, later = epoch(plan, [("s", "a", 1, 28), ("s", "b", 1, 35)]), epoch(plan, [("s", "c", 1, 60)], 2)
    late = epoch(plan, [("s", "a", 1, 18), ("s", "a", 1, 60)], 3)
    stores, whole = Stores(), Stores()
    run(plan, [first], stores, 2)
    state = carried(plan, plan, stores, 2, 1)
    run(plan, [later], state)
    sent = run(plan, [late], state, drain=True)
    run(plan, [first, later], whole)
    assert sent == run(plan, [late], whole, drain=True)
    assert content(plan, state, 1) == content(plan, whole, 1)


def kept_rows(stores: Stores) -> int:
    """How many rows the only partition of stage 1 keeps."""
    return sum(1 for _ in stores(1, 0).scan(b"", None))


def finals(sent: Sequence[SENT]) -> list[tuple[Any, Any]]:
    """All results of the windows `w`, in any order."""
    return sorted((key, row) for one in sent for key, rows in one.get("w", {}).items() for row in rows)


@pytest.mark.parametrize("clock", ["input", "records"])
@pytest.mark.parametrize("window", ["tumbling (size = 10 ms)", "sliding (difference = 5 ms)", "session (gap = 2 ms)"])
def test_a_final_window_that_has_moved_is_given_once_and_is_forgotten(clock: str, window: str) -> None:
    """By the clock of the records, the partition of the key is ahead of the others."""
    text = f"topology t (clock = '{clock}');\n{STREAM}"
    plan = compiled(text + f"table w = aggregate s group by k window {window} emit final select count(*) as n;\n")
    first = epoch(plan, [*(("s", key, 1, 1) for key in "bcdef"), ("s", "a", 1, 14), ("s", "a", 1, 20)])
    later = [epoch(plan, [("s", key, 1, at)], at) for key, at in (("a", 18), ("n", 100), ("n", 200))]
    stores, whole = Stores(), Stores()
    sent = [run(plan, [first], stores, 4)]
    state = carried(plan, plan, stores, 4, 1)
    sent += [run(plan, [rows], state) for rows in later]
    finals = [(key, row) for one in sent for key, rows in one.get("w", {}).items() for row in rows]
    expected = [run(plan, [rows], whole) for rows in (first, *later)]
    assert sorted(finals) == sorted(
        (k, row) for one in expected for k, rows in one.get("w", {}).items() for row in rows
    )
    assert kept_rows(state) == kept_rows(whole)
    assert content(plan, state, 1) == content(plan, whole, 1)


FINAL = "table out = aggregate s group by k window {} emit final select sum(10 % v) as v;\n"


@pytest.mark.parametrize("window", ["tumbling (size = 10 ms)", "sliding (difference = 5 ms)", "session (gap = 5 ms)"])
def test_a_window_that_moves_to_a_later_clock_closes_at_the_next_record(window: str) -> None:
    """By the clock of the records. One that fails is none."""
    plan = compiled(f"topology x (clock = 'records');\n{STREAM}{FINAL.format(window)}")
    stores = Stores()
    rows = [("s", key, 1, 1) for key in "abcdef"]
    sent = run(plan, [epoch(plan, [*rows, ("s", "a", 9, 100)])], stores, 4).get("out", {})
    state = carried(plan, plan, stores, 4, 1)
    assert not run(plan, [epoch(plan, [("s", "n", 0, 101)], 7)], state).get("out")
    later = run(plan, [epoch(plan, [("s", "z", 1, 101)], 8)], state)["out"]
    assert 1 < len(later) < 6
    assert {key[2] for key in (*sent, *later)} == set("abcdef")
