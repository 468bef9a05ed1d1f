"""What a store depends on, and nothing else, decides whether it is kept: by verdicts, and by the values that follow."""

from __future__ import annotations

import pytest

from tests.runtime.operators.carry.carrying import changed, compiled
from tests.runtime.operators.carry.test_carry import FIRST, PLAIN, SECOND, STREAM, TABLE
from tests.runtime.operators.carry.test_matrix import verdicts
from vsc.changes import compare

COUNT = "table c = aggregate {} group by k select sum(v) as total, count(*) as n;\n"
COUNTED = "table c = aggregate m group by k select count(*) as n;\n"
FOREIGN = "table fk = join t with p on cast(w as string) select p.w as pw, t.w as tw;\n"
WINDOWED = "table ws = aggregate s group by k window tumbling (size = 10 ms) select count(*) as n;\n"
WINDOWED += "stream x = to_stream ws;\n"
DROPPED = "sink dropped to noop ();\n"
OUT = "sink c to noop ();\n"
BY_V = STREAM + "stream m = {};\n" + COUNT.format("m")

# Each: the old text and the new one, which mean the same for every store that both have.
SAME: dict[str, tuple[str, str]] = {
    "a column more that nothing stored reads": (
        BY_V.format("map s select v"), BY_V.format("map s select v, v % 2 as odd")),
    "a column less": (BY_V.format("map s select v, at"), BY_V.format("map s select v")),
    "a map split in two": (
        BY_V.format("map s select v * 2 as v"),
        STREAM + "stream x = map s select v * 2 as d;\nstream m = map x select d as v;\n" + COUNT.format("m")),
    "two maps made one": (
        STREAM + "stream x = map s select v + 1 as d;\nstream m = map x select d * 2 as v;\n" + COUNT.format("m"),
        BY_V.format("map s select (v + 1) * 2 as v")),
    "two filters for one `and`": (
        BY_V.format("filter s where v > 1 and v < 4"),
        STREAM + "stream x = filter s where v < 4;\nstream m = filter x where v > 1;\n" + COUNT.format("m")),
    "a filter before a map": (
        STREAM + "stream x = map s select v * 2 as v;\nstream m = filter x where v > 4;\n" + COUNT.format("m"),
        STREAM + "stream x = filter s where v * 2 > 4;\nstream m = map x select v * 2 as v;\n" + COUNT.format("m")),
    "conditions the other way round": (
        BY_V.format("filter s where v > 1 and v < 4"), BY_V.format("filter s where 4 > v and 1 < v")),
    "a negation": (BY_V.format("filter s where not (v = 1)"), BY_V.format("filter s where v <> 1")),
    "a condition said twice": (
        BY_V.format("filter s where v > 1"), BY_V.format("filter s where v > 1 and (v > 1 and true)")),
    "between": (BY_V.format("filter s where v between 1 and 3"), BY_V.format("filter s where v >= 1 and v <= 3")),
    "an option of `in` elsewhere": (
        BY_V.format("filter s where v in (1, 2, 3)"), BY_V.format("filter s where v in (3, 1, 2)")),
    "a sum the other way round": (BY_V.format("map s select v + at as v"), BY_V.format("map s select at + v as v")),
    "a renamed column on the way": (
        STREAM + "stream m = map s select v as a;\ntable c = aggregate m group by k select sum(a) as n;\n",
        STREAM + "stream m = map s select v as b;\ntable c = aggregate m group by k select sum(b) as n;\n"),
    "an unread column of a join": (
        STREAM + TABLE + "stream m = left join s with t on k select v, w;\n" + COUNT.format("m"),
        STREAM + TABLE + "stream m = left join s with t on k select v, w * 2 as w, t.at as a;\n" + COUNT.format("m")),
    "lost records are kept": (
        STREAM + TABLE + "stream m = join s with t on k select v;\n" + COUNT.format("m") + OUT,
        STREAM + TABLE + "stream m = join s with t on k select v;\n" + COUNT.format("m") + OUT
        + "sink dropped to noop ();\nsink missed to noop ();\n"),
    "lost records of a foreign-key join are kept": (
        TABLE + PLAIN + FOREIGN + "sink fk to noop ();\n",
        TABLE + PLAIN + FOREIGN + "sink fk to noop ();\nsink dropped to noop ();\n"),
    "lost records of a table are kept": (
        PLAIN + "table a = aggregate p group by w select count(*) as n;\nsink a to noop ();\n",
        PLAIN + "table a = aggregate p group by w select count(*) as n;\nsink a to noop ();\n" + DROPPED),
    "lost records of a distinct are kept": (
        STREAM + "stream c = distinct s by v within 3 ms;\nsink c to noop ();\n",
        STREAM + "stream c = distinct s by v within 3 ms;\nsink c to noop ();\n" + DROPPED),
    "the windows of windows": (
        STREAM + WINDOWED + "table c = aggregate x group by k, window_start select sum(n) as n;\n",
        STREAM + WINDOWED + "stream y = map x select n, n + 1 as m;\n"
        "table c = aggregate y group by k, window_start select sum(n) as n;\n"),
    "a predicate of a column whose type is wider": (
        BY_V.format("filter s where v > 1").replace("v bigint", "v int"), BY_V.format("filter s where v > 1")),
    "a filter on a table": (
        TABLE + "table f = filter t where w > 0 and w < 3;\ntable a = aggregate f group by w select count(*) as n;\n",
        TABLE + "table g = filter t where w < 3;\ntable f = filter g where 0 < w;\n"
        "table a = aggregate f group by w select count(*) as n;\n"),
    "a column more on a table": (
        PLAIN + "table m = map p select w;\ntable a = aggregate m group by w select count(*) as n;\n",
        PLAIN + "table m = map p select w, w + 1 as x;\ntable a = aggregate m group by w select count(*) as n;\n"),
    "a grace waits with columns that it does not read": (
        STREAM + TABLE + "stream m = map s select v;\nstream j = left join m with t on k grace 4 ms select v, w;\n",
        STREAM + TABLE + "stream m = map s select v, v + 1 as x;\n"
        "stream j = left join m with t on k grace 4 ms select v, w;\n"),
}  # fmt: skip


@pytest.mark.quick(4)
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 3)])
@pytest.mark.parametrize("change", sorted(SAME))
def test_what_a_store_does_not_depend_on_does_not_count(change: str, before: int, after: int) -> None:
    old, new = SAME[change]
    stores = {name: v for name, v in verdicts(old, new).items() if name.startswith("store")}
    assert set(stores.values()) <= ({"widened"} if "wait" in change else set())
    found = changed(old, new, FIRST, SECOND, before, after)
    node = next(name for name in ("c", "a", "j", "fk") if name in found.whole)
    assert found.sent[node] == found.whole[node] != {}
    assert found.kept == found.whole_kept


# Each: two texts of which the second is easily taken for the first.
OTHER: dict[str, tuple[str, str]] = {
    "`or` for `and`": (BY_V.format("filter s where v > 1 and v < 4"), BY_V.format("filter s where v > 1 or v < 4")),
    "the other bound": (BY_V.format("filter s where v > 1"), BY_V.format("filter s where v >= 1")),
    "a difference the other way round": (
        BY_V.format("map s select v - at as v"), BY_V.format("map s select at - v as v")),
    "a filter less": (
        STREAM + "stream x = filter s where v < 4;\nstream m = filter x where v > 1;\n" + COUNT.format("m"),
        BY_V.format("filter s where v > 1")),
    "a filter behind the map for one before it": (
        STREAM + "stream x = map s select v * 2 as v;\nstream m = filter x where v > 4;\n" + COUNT.format("m"),
        STREAM + "stream x = filter s where v > 4;\nstream m = map x select v * 2 as v;\n" + COUNT.format("m")),
    "the text of a number": (
        (STREAM + "stream m = filter s where cast(v as string) = '1';\n").replace("v bigint", "v int") + COUNTED,
        (STREAM + "stream m = filter s where cast(v as string) = '1';\n").replace("v bigint", "v double") + COUNTED),
    "the hash of a wider number": (
        BY_V.format("filter s where xxhash64(v) > 0").replace("v bigint", "v int"),
        BY_V.format("filter s where xxhash64(v) > 0")),
    "an inner join that finds others": (
        STREAM + TABLE + PLAIN + "stream m = join s with t on k select v;\n" + COUNT.format("m"),
        STREAM + TABLE + PLAIN + "stream m = join s with p on k select v;\n" + COUNT.format("m")),
    "a column of the other table": (
        STREAM + TABLE + PLAIN + "stream x = left join s with t on k select v, w;\n"
        "stream m = left join x with p on k select x.w as v;\n" + COUNT.format("m"),
        STREAM + TABLE + PLAIN + "stream x = left join s with t on k select v, w;\n"
        "stream m = left join x with p on k select p.w as v;\n" + COUNT.format("m")),
    "another order of joined tables": (
        TABLE + PLAIN + "table b = left join t with p select t.w as w;\n"
        "table a = aggregate b group by w select count(*) as n;\n",
        TABLE + PLAIN + "table b = left join p with t select t.w as w;\n"
        "table a = aggregate b group by w select count(*) as n;\n"),
}  # fmt: skip


@pytest.mark.parametrize("change", sorted(OTHER))
def test_what_a_store_depends_on_counts(change: str) -> None:
    assert "rebuild" in {verdict for name, verdict in verdicts(*OTHER[change]).items() if name.startswith("store")}


PEOPLE = """stream people (id string, at bigint) from files (path = 'people', format = 'json') key id timestamp at;
stream staff (id string, at bigint) from files (path = 'staff', format = 'json') key id timestamp at;
table a = aggregate people group by id select count(*) as n;
table b = aggregate staff group by id select count(*) as n;
"""


def test_names_are_passed_on_with_what_they_name() -> None:
    new = PEOPLE.replace("people (", "former (").replace("e people", "e former")
    new = new.replace("staff (", "people (").replace("e staff", "e people")
    found = {c.name: (c.verdict.value, c.was) for c in compare(compiled(PEOPLE), compiled(new))}
    kept = dict.fromkeys(("a", "a#groups", "b", "b#groups"), ("keep", None))
    assert found == {"former": ("renamed", "people"), "people": ("renamed", "staff"), **kept}


def test_a_source_that_moves_keeps_its_name() -> None:
    assert verdicts(PEOPLE, PEOPLE.replace("'people'", "'other'")) == {}


def test_aggregates_that_swap_names_swap_their_state() -> None:
    text = STREAM + "table {} = aggregate s group by k select count(*) as n;\n"
    text += "table {} = aggregate s group by k select sum(v) as n;\n"
    old, new = text.format("a", "b"), text.format("b", "a")
    assert verdicts(old, new) == dict.fromkeys(("store a", "store b", "store a#groups", "store b#groups"), "renamed")
    found = changed(old, new, [("s", "x", 5, 1), ("s", "x", 7, 2)], [("s", "x", 1, 3)])
    assert found.sent["b"] == {"('x',)": [(3, "(3,)")]}
    assert found.sent["a"] == {"('x',)": [(3, "(13,)")]}


ZONED = """stream s (k string, v bigint, at timestamp) from files (path = 's', format = 'json') key k timestamp {};
table c = aggregate s group by k select count(*) as n;
table d = aggregate s group by k select max(at) as last;
"""


def test_another_time_zone_is_another_meaning_for_what_depends_on_its_times() -> None:
    def of(old: str, new: str, time: str) -> set[str]:
        found = verdicts(ZONED.format(time).replace("'json'", "'json'" + old),
                         ZONED.format(time).replace("'json'", "'json'" + new))  # fmt: skip
        return {name for name, verdict in found.items() if verdict == "rebuild" and name.startswith("store")}

    berlin, utc = ", time_zone = 'Europe/Berlin'", ", time_zone = 'UTC'"
    assert of("", berlin, "at") == of(berlin, "", "at") == {"store c", "store c#groups", "store d", "store d#groups"}
    assert of("", berlin, "v") == {"store d", "store d#groups"}
    assert of("", utc, "at") == set()
    assert of(", 'timestampFormat' = 'dd/MM/yyyy'", ", 'timestampFormat' = 'MM/dd/yyyy'", "v") == {
        "store d", "store d#groups"
    }  # fmt: skip
    (reason,) = {
        c.reason
        for c in compare(
            compiled(ZONED.format("at")), compiled(ZONED.format("at").replace("'json'", "'json'" + berlin))
        )
        if c.verdict.value == "rebuild"
    }
    assert reason == "`s`: time_zone was 'UTC', is 'Europe/Berlin'"


JOIN = "stream j = left join s with t on k select v * t.w as total;\ntable a = aggregate j group by k select {};\n"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (STREAM + TABLE + JOIN.format("sum(total) as x"),
         STREAM + TABLE.replace("w bigint", "w int") + JOIN.format("sum(total) as x"),
         "the column `w` of `t` was bigint, is int"),
        (STREAM.replace("v bigint", "v int") + TABLE.replace("w bigint", "w int") + JOIN.format("sum(total) as x"),
         STREAM + TABLE.replace("w bigint", "w int") + JOIN.format("sum(total) as x"),
         "`j`: `total` (`v * t.w`) was int, is bigint"),
        (STREAM + COUNT.format("s"), STREAM + COUNT.format("s").replace("group by k", "group by upper(k) as k"),
         "`c`: its key was `k`, is `upper(k)`"),
        (STREAM + COUNT.format("s").replace("group by k", "group by lower(k) as k"),
         STREAM + COUNT.format("s").replace("group by k", "group by upper(k) as k"),
         "`c`: its key was `lower(k)`, is `upper(k)`"),
        (STREAM + TABLE + JOIN.format("sum(total) as x"),
         STREAM + TABLE.replace("table t", "table u") + "table t = aggregate u group by k select max(w) as w;\n"
         + JOIN.format("sum(total) as x"),
         "`t`, which `j` reads, was a source, is an aggregate"),
        (STREAM + TABLE + JOIN.format("sum(total) as x"),
         STREAM + TABLE + JOIN.replace("on k select v", "on upper(k) select v").format("sum(total) as x"),
         "`j`: its key was `k`, is `upper(k)`"),
        (STREAM + COUNT.format("s"), STREAM + COUNT.format("s").replace("sum(v)", "min(v)"),
         "`c`: it computed `sum(v)`, computes `min(v)`"),
        (STREAM + COUNT.format("s"), STREAM + COUNT.format("s").replace(", count(*) as n", ""),
         "`c`: it no longer computes `count(*)`"),
        (STREAM + "stream m = filter s where v > 1;\n" + COUNT.format("m"),
         STREAM + "stream x = filter s where v > 1;\nstream y = filter x where v < 9;\n" + COUNT.format("y"),
         "`c` took `v > 1`, takes `v > 1` and `v < 9`"),
        (TABLE + "table f = filter t where w > 1;\ntable a = aggregate f group by w select count(*) as n;\n",
         TABLE + "table f = filter t where w > 1;\ntable a = aggregate t group by w select count(*) as n;\n",
         "`a` took `w > 1`, takes all rows"),
    ],
)  # fmt: skip
def test_a_reason_says_what_differs(old: str, new: str, reason: str) -> None:
    changes = [c for c in compare(compiled(old), compiled(new)) if c.kind == "store" and c.verdict.value == "rebuild"]
    assert reason in {c.reason for c in changes}, changes
