"""New operators over tables that hold rows are given these rows: as if they had been there from the beginning."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import Stores
from tests.runtime.operators.carry.carrying import Changed, carried, changed, compiled, epoch, run
from tests.runtime.operators.carry.test_carry import FIRST, NODES, PLAIN, SECOND, SOURCES, STREAM, TABLE
from tests.runtime.operators.carry.test_matrix import WIDE
from tests.runtime.operators.carry.test_waiting import Held, Waits
from vsc.changes import compare
from vsc.runtime.operators.carry import Carry

SUMS = NODES["sums"]
FILTERED = "table f = filter t where w > 0;\ntable sums = aggregate f group by w select count(*) as n, max(w) as m;\n"
MAPPED = "table m = map p select w % 2 as odd, w;\ntable sums = aggregate m group by odd select sum(w) as total;\n"
FOREIGN = "table fk = {}join p with t on cast(w as string) select p.w as pw, t.w as tw materialize unversioned;\n"
OF_COUNTS = "table sums = aggregate counts group by n select count(*) as m, sum(total) as s;\n"
ABOVE = (
    SUMS + "table more = aggregate sums group by n select count(*) as m;\n"
    "table late = suppress more until time limit 1 ms;\nstream told = to_stream late;\n"
)

# Each: the old text, the new one, the operator that is given rows.
GIVEN: dict[str, tuple[str, str, str]] = {
    "an aggregate of a versioned table": (SOURCES, SOURCES + SUMS, "sums"),
    "an aggregate of an unversioned table": (SOURCES, SOURCES + SUMS.replace("e t", "e p"), "sums"),
    "behind a filter": (SOURCES, SOURCES + FILTERED, "sums"),
    "behind a map": (SOURCES, SOURCES + MAPPED, "sums"),
    "one beside another": (SOURCES + FILTERED, SOURCES + FILTERED + SUMS.replace("sums", "new"), "new"),
    "an aggregate of an aggregate": (
        SOURCES + NODES["counts"], SOURCES + NODES["counts"] + OF_COUNTS, "sums"
    ),
    "one that others are computed from": (SOURCES, SOURCES + ABOVE, "sums"),
    "a foreign-key join": (SOURCES, SOURCES + FOREIGN.format(""), "fk"),
    "a left foreign-key join": (SOURCES, SOURCES + FOREIGN.format("left "), "fk"),
    "of a table with a column more": (SOURCES, WIDE + SUMS, "sums"),
    "of a table with a wider column": (SOURCES.replace("w bigint", "w int"), SOURCES + SUMS + FOREIGN.format(""), "fk"),
    "of a table with another name": (
        SOURCES, (SOURCES + SUMS).replace("table t ", "table u ").replace("aggregate t", "aggregate u"), "sums"
    ),
}  # fmt: skip


def given(old: str, new: str, before: int = 1, after: int = 1, **how: Any) -> Changed:
    wide = ("z",) if "z string" in new else ()
    second = [(*row, *wide) if row[0] in "stp" else row for row in SECOND]
    renamed = [("u", *row[1:]) if row[0] == "t" and "table u " in new else row for row in second]
    return changed(old, new, FIRST, renamed, before, after, later_stage=Waits, **how)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 5), (4, 1)])
@pytest.mark.parametrize("name", sorted(GIVEN))
def test_it_is_as_if_it_had_always_been_there(name: str, before: int, after: int) -> None:
    old, new, filled = GIVEN[name]
    changes = [c for c in compare(compiled(old), compiled(new)) if c.kind == "store" and c.node == filled]
    assert {c.verdict.value for c in changes} == {"new"}
    assert any(c.reason.startswith("filled with the rows that `") for c in changes)
    if "table u " in new:
        return
    found = given(old, new, before, after)
    before_it = [node.name for node in compiled(old).nodes if node.part_of is None]
    for node in before_it:
        assert found.sent.get(node) == found.whole.get(node), node
    assert found.kept == found.whole_kept


def test_literal_values() -> None:
    new = PLAIN + "table sums = aggregate p group by w select count(*) as n, sum(w) as total;\n"
    first = [("p", "a", 1, 10), ("p", "b", 1, 20), ("p", "c", 2, 30), ("p", "d", 3, 40), ("p", "d", None, 50)]
    # The rows come by first, in the order of event time, also in front of what is late.
    found = changed(PLAIN, new, first, [("p", "a", 2, 5), ("p", "c", 2, 60)], later_stage=Waits)
    assert found.sent["sums"] == {
        "(1,)": [(10, "(1, 1)"), (20, "(2, 2)"), (20, "(1, 1)")],
        "(2,)": [(30, "(1, 2)"), (30, "(2, 4)"), (60, "(2, 4)")],
    }
    assert sorted(row[2] for row in found.kept["sums in 2"]) == ["(1, 1)", "(2, 4)"]


@pytest.mark.parametrize(("before", "after"), [(1, 1), (3, 2)])
def test_a_reset_aggregate_is_computed_again(before: int, after: int) -> None:
    old = SOURCES + SUMS
    new = old.replace("count(*) as n", "min(w) as n")
    found = given(old, new, before, after, reset=["sums", "sums#groups"])
    assert found.kept == found.whole_kept
    assert found.kept["sums in 2" if "sums in 2" in found.kept else "sums in 3"]


def test_changes_that_wait_come_behind_the_rows() -> None:
    old_plan, new_plan, stores = compiled(STREAM + TABLE), compiled(STREAM + TABLE + SUMS), Stores()
    first = [("t", "a", 1, 10), ("t", "b", 1, 20), ("t", "a", 2, 40), ("s", "a", 0, 50)]
    run(old_plan, [epoch(old_plan, first)], stores, later_stage=Held)  # what is from 30 on waits
    state = carried(old_plan, new_plan, stores, 1, 2)
    sent = run(new_plan, [[]], state, 2, later_stage=Waits)
    assert {key: [row[1] for row in rows] for key, rows in sent["sums"].items()} == {
        "(1,)": ["(1, 'a')", "(2, 'b')", "(1, 'b')"], "(2,)": ["(1, 'a')"],
    }  # fmt: skip


def test_what_is_dropped_on_the_way_is_counted() -> None:
    new = PLAIN + "table sums = aggregate p group by cast(k as bigint) as number select count(*) as n;\n"
    old_plan, new_plan, stores = compiled(PLAIN), compiled(new), Stores()
    run(old_plan, [epoch(old_plan, [("p", "7", 5, 1), ("p", "b", 6, 2), ("p", "8", None, 3)])], stores)
    told = Carry.of(old_plan, new_plan, 1, 1, frozenset(), frozenset()).told(1, 0, stores(1, 0))
    assert sum(told.filled.values()) == 2  # one with a null in its value
    assert told.lost.flat()["dropped_records"] == {"sums.expression_failed": 1}


COMPLETE = "materialize versioned (retention = 1 hour, history = 'complete')"
STATES = f"table g = aggregate t group by w select count(*) as n {COMPLETE};\n"
REFERRING = f"table j = left join t with t as other on cast(t.w as string) select other.w as w {COMPLETE};\n"
OF_JOIN = f"table g = aggregate j group by coalesce(w, 0) as w select count(*) as n {COMPLETE};\n"


@pytest.mark.parametrize(
    ("text", "more"), [(TABLE, STATES), (TABLE + REFERRING, OF_JOIN), (TABLE, REFERRING + OF_JOIN)]
)
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 3)])
def test_a_complete_history_is_filled_with_the_history_of_its_table(
    text: str, more: str, before: int, after: int
) -> None:
    first = [("t", "a", 1, 1), ("t", "a", 2, 4), ("t", "b", 1, 2), ("t", "1", 5, 3), ("t", "b", 2, 6)]
    found = changed(text, text + more, first, [("t", "c", 1, 3)], before, after, later_stage=Waits)
    for name in (name for name in found.kept if name.startswith("g in ")):
        assert found.kept[name] == found.whole_kept[name]
        assert len(found.kept[name]) > 3


@pytest.mark.parametrize(("was", "now"), [("100 ms", "1 hour"), ("1 hour", "100 ms")])
def test_a_complete_history_goes_on_with_another_retention(was: str, now: str) -> None:
    """What has changed its groups lies by other spans of time from then on: late rows find both."""
    text = TABLE + STATES.replace("count(*) as n", "count(*) as n, last(k) as k")
    first = [("t", "a", 1, 1), ("t", "a", 2, 40), ("t", "b", 1, 20), ("t", "c", 1, 33), ("t", "b", 2, 60)]
    second = [("t", "d", 1, 30), ("t", "a", 1, 70), ("t", "c", 2, 25), ("t", "e", 2, 10), ("t", "b", 1, 50)]
    before, after = (text.replace("retention = 1 hour, history", f"retention = {span}, history") for span in (was, now))
    found = changed(before, after, first, second, 1, 2, later_stage=Waits)
    assert found.sent["g"] == found.whole["g"]
    for name in (name for name in found.kept if name.startswith("g in ")):
        assert found.kept[name] == found.whole_kept[name]
