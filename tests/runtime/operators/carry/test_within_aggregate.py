"""A join of what came before whose calls are others after an upgrade: they find the records from before it."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tests.oracle import Stores, chunks
from tests.oracle.playing import shown_records
from tests.runtime.operators.carry.carrying import carried, changed, compiled, content, epoch
from tests.runtime.operators.carry.test_carry import STREAM
from vsc.runtime.errors import ExpressionError
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.context import RunOptions

TEXT = STREAM + "stream o = left join s as l with s as r within (before = 10 ms) select {};\n"
OLD, NEW = TEXT.format("sum(r.v) as t"), TEXT.format("sum(r.v) as t, sum(12 % r.v) over 5 ms as u")
FIRST = [("s", "a", 0, 1), ("s", "a", 5, 2), ("s", "b", 7, 2)]


def after_upgrade(
    rows: list[tuple[Any, ...]], before: int = 1, after: int = 1, on_error: Literal["drop", "fail"] = "drop"
) -> tuple[list[Any], dict[str, Any], int]:
    """What the new topology sends and counts, and how many records it keeps, if each of the rows is an epoch."""
    old, new = compiled(OLD), compiled(NEW)
    stores = Stores()
    runtime = LocalRuntime(old, stores, ["o"], before)
    runtime.process(chunks(old, epoch(old, FIRST)))
    stores.starts = runtime.starts
    state = carried(old, new, stores, before, after)
    sent, options = [], RunOptions(on_error=on_error)
    runtime = LocalRuntime(new, state, ["o"], after, options, starts=state.starts)
    for number, row in enumerate(rows):
        found = runtime.process(chunks(new, epoch(new, [row], len(FIRST) + number)))
        sent += shown_records(found["o"])
    kept = content(new, state, after)
    return sent, runtime.metrics.as_dict()["dropped_records"], sum(map(len, kept.values()))


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (3, 1)])
def test_a_new_call_counts_records_from_before_and_those_on_which_it_fails_are_counted_once(
    before: int, after: int
) -> None:
    sent, dropped, kept = after_upgrade([("s", "a", 9, 3), ("s", "a", 10, 4), ("s", "b", 5, 4)], before, after)
    assert sent == [
        ("('a',)", 3, "(14, 5)"), ("('a',)", 4, "(24, 7)"), ("('b',)", 4, "(12, 7)"),
    ]  # fmt: skip
    assert dropped == {"o": {"expression_failed": 1}}
    assert kept == 5


def test_a_run_that_is_to_fail_does() -> None:
    with pytest.raises(ExpressionError, match=r"sum\(12 % r.v\)"):
        after_upgrade([("s", "a", 9, 3)], on_error="fail")
    assert after_upgrade([("s", "b", 9, 3)], on_error="fail")[1] == {}


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (3, 1)])
def test_a_new_item_of_a_join_of_two_streams_sees_the_records_from_before(before: int, after: int) -> None:
    """Those that find a partner, and those that wait for one."""
    text = (
        STREAM + "stream o = outer join s as l with s as r within (before = 9 ms, after = 0 ms) grace 2 ms select {};\n"
    )
    items = "l.v as one, r.v as other"
    first, second = [("s", "a", 1, 1), ("s", "b", 2, 2), ("s", "a", 4, 5)], [("s", "a", 8, 6), ("s", "c", 9, 30)]
    found = changed(
        text.format(items), text.format(f"{items}, coalesce(l.v, 0) + 10 * coalesce(r.v, 0) as both"), first, second,
        before, after,
    )  # fmt: skip
    assert found.sent["o"] == found.whole["o"]
    assert ("(8, 1, 18)" in str(found.sent["o"])) and found.kept == found.whole_kept


def test_a_longer_grace_counts_the_records_that_miss_what_a_shorter_one_has_removed() -> None:
    """At 20 all before 12 is gone: 14 would count 9 to 12, and is not late any more; 18 finds all of its own."""
    text = STREAM + "stream o = join s as l with s as r within (before = 5 ms) grace {} ms select count(*) as n;\n"
    old, new = compiled(text.format(3)), compiled(text.format(7))
    stores, sent = Stores(), []
    runtime = LocalRuntime(old, stores, ["o"])
    runtime.process(chunks(old, epoch(old, [("s", "a", 0, at) for at in (9, 10, 11, 12, 20)])))
    stores.starts = runtime.starts
    state = carried(old, new, stores)
    runtime = LocalRuntime(new, state, ["o"], starts=state.starts)
    for offset, at in enumerate((14, 18, 40), start=5):
        found = runtime.process(chunks(new, epoch(new, [("s", "a", 0, at)], offset)))
        sent += shown_records(found["o"]) if "o" in found else []
    assert sent == [("('a',)", 14, "(2,)"), ("('a',)", 18, "(2,)"), ("('a',)", 20, "(2,)")]
    assert runtime.metrics.as_dict()["missed_lookups"] == {"o": {"older_than_retention": 1}}
