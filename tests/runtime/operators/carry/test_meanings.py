"""Changes of what a store means: it begins empty, is kept as it is, or neither can be."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.runtime.operators.carry.carrying import changed, compiled
from tests.runtime.operators.carry.test_carry import FIRST, PLAIN, SECOND, STREAM, TABLE, text
from vsc.changes import compare
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.carry import Carry

COUNTS = STREAM + "table counts = aggregate s group by k select count(*) as n, sum(v) as total;\n"
LARGE = (
    STREAM + "stream large = filter s where v >= {};\ntable counts = aggregate large group by k select count(*) as n;\n"
)
OF_TABLE = TABLE + "table f = filter t where w > {};\ntable sums = aggregate f group by w select count(*) as n;\n"
WINDOWS = (
    STREAM
    + """table windows = aggregate s group by k
  window tumbling (size = {} ms, grace = {} ms) select count(*) as n;\n"""
)
FINAL = WINDOWS.replace("windows", "hourly") + "table final = suppress hourly until window closes;\n"

ONE, OTHER = [("s", "a", 1, 1), ("s", "a", 20, 2), ("s", "b", 30, 3)], [("s", "a", 40, 4), ("s", "a", 2, 5)]


def refused(old: str, new: str, reset: Iterable[str] = (), accept: Iterable[str] = ()) -> tuple[str, str | None]:
    with pytest.raises(ConfigurationError) as caught:
        Carry.of(compiled(old), compiled(new), 1, 1, frozenset(reset), frozenset(accept))
    return caught.value.message, caught.value.help


def test_a_changed_predicate_asks_what_is_to_become_of_it() -> None:
    assert refused(LARGE.format(10), LARGE.format(20)) == (
        "decide what becomes of these stores: "
        "counts: `large`: predicate was `v >= 10`, is `v >= 20`; "
        "counts#groups: `large`: predicate was `v >= 10`, is `v >= 20`",
        "`--accept counts` keeps what the old topology computed, and goes on from it; "
        "`--reset counts` empties it: what is in there is lost, unless a table can fill it again",
    )


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (3, 1)])
def test_a_reset_store_begins_empty_and_an_accepted_one_goes_on(before: int, after: int) -> None:
    stores = ["counts", "counts#groups"]
    found = changed(LARGE.format(10), LARGE.format(20), ONE, OTHER, before, after, reset=stores)
    assert found.sent["counts"] == {"('a',)": [(4, "(1,)")]}
    assert [row[2] for row in found.kept["counts in 1"]] == ["(1,)"]
    found = changed(LARGE.format(10), LARGE.format(1), ONE, OTHER, before, after, accept=stores)
    assert found.sent["counts"] == {"('a',)": [(4, "(2,)"), (5, "(3,)")]}
    assert found.whole["counts"] == {"('a',)": [(4, "(3,)"), (5, "(4,)")]}
    assert [row[2] for row in found.kept["counts in 1"]] == ["(3,)", "(1,)"]


def test_other_windows() -> None:
    stores = ["windows", "windows#windows"]
    old, new = WINDOWS.format(10, 0), WINDOWS.format(100, 0)
    found = changed(old, new, ONE, OTHER, reset=stores)
    assert list(found.sent["windows"].values()) == [[(4, "(1,)"), (5, "(2,)")]]
    assert list(found.whole["windows"].values()) == [[(4, "(3,)"), (5, "(4,)")]]
    message, _ = refused(old, new)
    assert "window was" in message
    message, _ = refused(old, new, accept=stores)
    assert message == "store 'windows#windows' cannot be kept: it computes something else"


def test_a_longer_grace_counts_from_now_on_and_what_is_closed_stays_closed() -> None:
    first, second = [("s", "a", 1, 1), ("s", "a", 1, 15)], [("s", "a", 1, 2), ("s", "a", 1, 12)]
    found = changed(WINDOWS.format(10, 0), WINDOWS.format(10, 50), first, second)
    assert [[value for _, value in rows] for rows in found.sent["windows"].values()] == [["(2,)"]]
    assert [[value for _, value in rows] for rows in found.whole["windows"].values()] == [["(2,)"], ["(2,)"]]


@pytest.mark.parametrize(("before", "after"), [(1, 1), (8, 1), (8, 3), (1, 8)])
def test_a_distinct_does_not_pass_what_a_shorter_grace_has_forgotten(before: int, after: int) -> None:
    """Whatever partitions become one, and however long the grace is now."""
    text = STREAM + "stream once = distinct s by k within 10 ms grace {} ms;\n"
    first = [("s", "a", 1, 100), ("s", "a", 2, 200), *(("s", key, 3, 5) for key in "bcdefgh")]
    second = [("s", "a", 4, 105), ("s", "a", 5, 189), ("s", "a", 6, 195), ("s", "a", 7, 210), ("s", "z", 8, 205)]
    found = changed(text.format(0), text.format(200), first, second, before, after)
    assert found.sent["once"] == {"('a',)": [(210, "(7, 210)")], "('z',)": [(205, "(8, 205)")]}


def test_a_shorter_retention_counts_at_once_and_a_longer_one_answers_from_what_is_there() -> None:
    join = "stream j = left join s with t on k select v, w;\n"

    def with_retention(ms: int) -> str:
        return "topology t (clock = 'records');" + STREAM + TABLE.replace("1 hour", f"{ms} ms") + join

    first = [("t", "a", 1, 1), ("t", "a", 2, 50), ("t", "a", 3, 200)]
    second = [("s", "a", 0, 60), ("s", "a", 0, 201)]
    for old, new, at_60 in ((1000, 10, "(0, None)"), (10, 1000, "(0, 2)")):
        found = changed(with_retention(old), with_retention(new), first, second)
        assert found.sent["j"] == {"('a',)": [(60, at_60), (201, "(0, 3)")]}
        assert found.whole["j"] == {"('a',)": [(60, at_60), (201, "(0, 3)")]}


def test_names_that_do_not_exist_or_need_nothing() -> None:
    assert refused(COUNTS, COUNTS, ["nope"]) == ("there is no store 'nope'", "there are counts, counts#groups")
    assert refused(COUNTS, COUNTS, ["counts"]) == (
        "store 'counts' does not need it: its verdict is keep", "leave it out"
    )  # fmt: skip
    both = ["counts", "counts#groups"]
    assert refused(LARGE.format(1), LARGE.format(2), both, both)[0] == (
        "store 'counts' cannot be both reset and accepted"
    )


def test_what_cannot_be_kept_as_it_is() -> None:
    other = COUNTS.replace("sum(v)", "max(v)")
    message, help = refused(COUNTS, other, accept=["counts", "counts#groups"])
    assert (message, help) == ("store 'counts#groups' cannot be kept: it computes something else",
                               "--reset counts#groups")  # fmt: skip
    keyed = "table counts = aggregate s group by {} select count(*) as n, sum(at) as total;\n"
    message, _ = refused(STREAM + keyed.format("k"), STREAM + keyed.format("v"), accept=["counts", "counts#groups"])
    assert message == "store 'counts' cannot be kept: its key was (k string), is (v bigint)"
    versioned = PLAIN.replace("unversioned", "versioned (retention = 1 hour)")
    message, _ = refused(STREAM + PLAIN, STREAM + versioned, accept=["p"])
    assert message == "store 'p' cannot be kept: it was unversioned, is versioned"
    typed = TABLE.replace("w bigint", "w string")
    message, _ = refused(TABLE, typed, accept=["t"])
    assert message == "store 't' cannot be kept: its column `w` was bigint, is string"


def test_what_knows_rows_of_an_emptied_store_cannot_be_kept() -> None:
    old, new = FINAL.format(10, 0), FINAL.format(20, 0)
    message, help = refused(old, new, ["hourly", "hourly#windows"], ["final#suppressed"])
    assert message == "store 'final#suppressed' cannot be kept: it knows rows of 'hourly', which begins empty"
    assert help == "--reset final#suppressed"
    message, _ = refused(LARGE.format(1), LARGE.format(2), ["counts"], ["counts#groups"])
    assert message == "store 'counts#groups' cannot be kept: it knows rows of 'counts', which begins empty"
    materialized = OF_TABLE.replace("w > {};", "w > {} materialize unversioned;")
    message, _ = refused(materialized.format(0), materialized.format(1), ["f"], ["sums", "sums#groups"])
    assert message == "store 'sums' cannot be kept: it knows rows of 'f', which begins empty"


def test_a_store_that_a_filter_did_not_have_begins_empty_and_what_reads_it_too() -> None:
    old = TABLE + "table f = filter t where w > 0;\ntable sums = aggregate f group by w select count(*) as n;\n"
    new = old.replace("w > 0;", "w > 0 materialize unversioned;")
    message, _ = refused(old, new)
    assert "sums: `f` had no store: its earlier rows are missing from the new one" in message
    first, second = [("t", "a", 5, 1), ("t", "b", 5, 2)], [("t", "a", 6, 3), ("t", "c", 6, 4)]
    found = changed(old, new, first, second, reset=["sums", "sums#groups"])
    assert found.sent["sums"] == {"(6,)": [(3, "(1,)"), (4, "(2,)")]}
    assert [row[2] for row in found.kept["f in 1"]] == ["(6, 3)", "(6, 4)"]


def test_a_source_that_is_renamed_and_has_a_column_more_is_the_same_source() -> None:
    join = "stream j = left join s with {} on k select v, w;\n"
    new = TABLE.replace("table t", "table u").replace("w bigint, at", "w bigint, z string, at")
    changes = compare(compiled(STREAM + TABLE + join.format("t")), compiled(STREAM + new + join.format("u")))
    assert [(c.kind, c.name, c.verdict.value, c.was) for c in changes if c.verdict.value != "keep"] == [
        ("source", "u", "widened", "t"), ("store", "u", "widened", "t"),
    ]  # fmt: skip


def test_what_is_renamed_and_means_something_else_is_new() -> None:
    old = STREAM + "table a = aggregate s group by k select count(*) as n;\n"
    new = STREAM + "table b = aggregate s group by k select max(v) as n;\n"
    changes = compare(compiled(old), compiled(new))
    assert {c.name: c.verdict.value for c in changes if c.kind == "store"} == {
        "b": "new", "b#groups": "new", "a": "dropped", "a#groups": "dropped",
    }  # fmt: skip


NEW_ONES = {
    "sums": (
        "table sums = aggregate t group by w select count(*) as n;\n", {"sums": "new", "sums#groups": "new"}
    ),
    "over a filter": (
        "table f = filter t where w > 0;\ntable sums = aggregate f group by w select count(*) as n;\n",
        {"sums": "new", "sums#groups": "new"},
    ),
    "over a join": (
        "table both = join t with p select t.w as tw, p.w as pw;\n"
        "table sums = aggregate both group by tw select count(*) as n;\n",
        {"sums": "rebuild", "sums#groups": "rebuild"},
    ),
    "over a filter that is stored": (
        "table f = filter t where w > 0 materialize unversioned;\n"
        "table sums = aggregate f group by w select count(*) as n;\n",
        {"f": "new", "sums": "rebuild", "sums#groups": "rebuild"},
    ),
    "a foreign-key join": (
        "table fk = join t with p on cast(w as string) select t.w as tw, p.w as pw;\n",
        {"fk#subscriptions": "new"},
    ),
    "a suppress": ("table late = suppress p until time limit 1 ms;\n", {"late#suppressed": "new"}),
    "a join": (
        "table both = join t with p select t.w as tw, p.w as pw materialize unversioned;\n", {"both": "new"}
    ),
    "a stream that looks into it": (
        "stream waited = join s with t on k grace 4 ms select v, w;\n", {"waited#waiting": "new"}
    ),
    "an aggregate of a stream": (
        "table counts = aggregate s group by k select count(*) as n;\n", {"counts": "new", "counts#groups": "new"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(NEW_ONES))
def test_a_new_store_over_a_table_that_holds_rows(name: str) -> None:
    """What takes back rows that it has not been given goes wrong; what looks into the table, or passes changes on, does
    not."""
    node, expected = NEW_ONES[name]
    old = STREAM + TABLE + PLAIN
    found = {c.name: c.verdict.value for c in compare(compiled(old), compiled(old + node)) if c.kind == "store"}
    assert found == {"t": "keep", "p": "keep", **expected}
    found = {c.name: c.verdict.value for c in compare(compiled(STREAM), compiled(old + node)) if c.kind == "store"}
    assert found == {"t": "new", "p": "new", **dict.fromkeys(expected, "new")}


def test_a_new_aggregate_that_cannot_be_given_the_rows_has_to_be_reset() -> None:
    old = TABLE + PLAIN
    new = old + NEW_ONES["over a join"][0]
    message, _ = refused(old, new)
    assert message == (
        "decide what becomes of these stores: "
        "sums: it has not seen the rows that `t` holds, and would give wrong results when they change; "
        "sums#groups: it has not seen the rows that `t` holds, and would give wrong results when they change"
    )
    both = ["sums", "sums#groups"]
    assert refused(old, new, accept=both) == ("store 'sums' cannot be kept: it is new", "--reset sums")


def test_a_new_node_begins_with_what_comes_from_now_on() -> None:
    old, new = text("joined"), text("joined", "counts", "windows")
    found = changed(old, new, FIRST, SECOND)
    assert found.sent["joined"] == found.whole["joined"]
    only = changed(new, new, [], SECOND)
    assert found.sent["counts"] == only.whole["counts"]
    assert found.sent["windows"] == only.whole["windows"]
    assert found.sent["counts"]["('a',)"][0] == (36, "(1, 4, [4])")
