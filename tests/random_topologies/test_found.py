"""What random topologies have found, each as small as it gets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.oracle import oracle, shipped
from tests.oracle.epochs import EpochRow
from tests.random_topologies.partitions import Case
from vsc.compiler import compile_topology
from vsc.runtime.expressions.forms import full


def rows(*found: tuple[str, dict[str, Any]]) -> list[EpochRow]:
    return [EpochRow(source, "", offset, row, row["at"]) for offset, (source, row) in enumerate(found)]


def test_the_place_of_a_record_does_not_depend_on_what_else_enters_its_stage() -> None:
    # The right table of a foreign-key join is the left one of another: its change goes both ways and meets itself.
    text = """
    table a (k bigint, s string, at bigint) from memory () key k timestamp at;
    table b (k string, j bigint, at bigint) from memory () key k timestamp at;
    table ab = left join b with a on j select a.s;
    table aba = join a with ab on s select ab.s as t;
    sink aba to memory ();
    """
    plan = compile_topology(text, path="found.vdsl")
    epoch = rows(("b", {"k": "x", "j": 0, "at": 0}), ("a", {"k": 0, "s": "x", "at": 50}))
    whole, single = shipped(plan, [epoch], ["aba"]), oracle(plan, [epoch], ["aba"])
    assert whole.outcome == single.outcome == {"aba": [("(0,)", 50, "('x',)")]}


def test_late_records_are_counted_once_however_many_windows_are_drained() -> None:
    text = """
    stream s (k string, at bigint) from memory () key k timestamp at;
    table w = aggregate s group by k window tumbling (size = 5 ms) emit final select count(*) as n;
    sink w to memory ();
    """
    plan = compile_topology(text, path="found.vdsl")
    epoch = rows(*(("s", {"k": k, "at": at}) for k, at in (("a", 20), ("b", 21), ("c", 22), ("a", 3))))
    assert oracle(plan, [epoch], ["w"]).metrics["dropped_records"] == {"w": {"window_closed": 1}}


def test_a_constant_list_for_no_rows() -> None:
    assert full(pa.scalar(["x"]), 0).type == pa.list_(pa.string())


@pytest.mark.parametrize("store", ["", "materialize unversioned"])
@pytest.mark.parametrize("join", ["join t as a with t as b", "left join t as a with high as b"])
def test_what_a_join_takes_back_is_what_it_has_sent_though_both_its_sides_have_changed(join: str, store: str) -> None:
    text = f"""
    table t (k string, g string, n bigint, at bigint) from memory () key k timestamp at;
    table high = filter t where n > 2;
    table y = {join} select a.g as g, a.n * coalesce(b.n, 1) as m {store};
    table z = aggregate y group by g select sum(m) as total, min(m) as least, count(*) as n;
    sink z to memory ();
    """
    plan = compile_topology(text, path="found.vdsl")
    given = [("a", "x", 1), ("a", "x", 5), ("b", "x", 3), ("a", "y", 4)]
    epoch = rows(*(("t", {"k": k, "g": g, "n": n, "at": at}) for at, (k, g, n) in enumerate(given)))
    whole, single = shipped(plan, [epoch], ["z"]), oracle(plan, [epoch], ["z"])
    assert whole.outcome == single.outcome
    newest = {key: value for key, _, value in whole.outcome["z"]}
    assert newest == {"('x',)": "(9, 9, 1)", "('y',)": "(16, 16, 1)"}
    after_each = {at: value for key, at, value in whole.outcome["z"] if key == "('x',)"}
    assert after_each == {0: "(1, 1, 1)", 1: "(25, 25, 1)", 2: "(34, 9, 2)", 3: "(9, 9, 1)"}


def test_what_a_join_takes_back_is_not_what_its_store_has_refused() -> None:
    text = """
    table t (k string, n bigint, at bigint) from memory () key k timestamp at;
    table u (k string, g string, at bigint) from memory () key k timestamp at;
    table y = join t with u select u.g as g, t.n as n materialize versioned (retention = 1 ms);
    table z = aggregate y group by g select sum(n) as total;
    sink z to memory ();
    """
    plan = compile_topology(text, path="found.vdsl")
    given = [
        ("u", "a", 0, 0),
        ("t", "a", 1, 0),
        ("u", "b", 0, 9),
        ("t", "b", 10, 9),
        ("t", "a", 5, 1),
        ("t", "a", 2, 9),
    ]
    epochs = [rows((source, {"k": k, "n": n, "g": "x", "at": at})) for source, k, n, at in given]
    for played in (shipped(plan, epochs, ["z"]), oracle(plan, epochs, ["z"])):
        assert [value for _, _, value in played.outcome["z"]] == ["(1,)", "(11,)", "(12,)"]
        assert played.metrics["dropped_records"] == {"y": {"expired": 1}}


def test_what_fails_on_the_way_to_a_look_up_is_counted_though_its_table_is_computed_elsewhere() -> None:
    text = """
    table t (k string, n bigint, at bigint) from memory () key k timestamp at;
    table u = aggregate t group by k select sum(n) as n;
    table y = join u with t select 10 % t.n as m;
    table z = join y as a with y as b on a.k select a.m;
    sink z to memory ();
    """
    plan = compile_topology(text, path="found.vdsl")
    epoch = rows(("t", {"k": "a", "n": 3, "at": 0}), ("t", {"k": "a", "n": 0, "at": 1}))
    for played in (shipped(plan, [epoch], ["z"]), oracle(plan, [epoch], ["z"])):
        assert played.metrics["dropped_records"] == {"y": {"expression_failed": 3}}


@pytest.mark.parametrize("clock", ["input", "records"])
def test_a_late_record_does_not_count_among_those_that_wait_for_a_join(clock: str) -> None:
    text = f"""
    topology found (clock = '{clock}');
    table t (k bigint, at bigint) from memory () key k timestamp at materialize versioned (retention = 9 ms);
    stream s (k string, n bigint, at bigint) from memory () key k timestamp at;
    stream j = left join s with t on n grace 2 ms select s.k as word;
    sink j to memory ();
    """
    plan = compile_topology(text, path="found.vdsl")
    given = [("a", 1, 35), ("late", 1, 0), ("no key", None, 36), ("b", 1, 36), ("c", 1, 35), ("d", 1, 35)]
    all_rows = rows(*(("s", {"k": k, "n": n, "at": at}) for k, n, at in given))
    whole, single = shipped(plan, [all_rows], ["j"]), shipped(plan, [[row] for row in all_rows], ["j"])
    assert whole.stores.bytes_kept(plan) == single.stores.bytes_kept(plan)
    (meta,) = [data for data in whole.stores.bytes_kept(plan).values() if data.startswith(b"VSTB")]
    assert int.from_bytes(meta[16:24], "little") == 4


def test_what_meets_itself_twice_keeps_the_order_in_which_it_met() -> None:
    text = """
    stream s (k string, n bigint, at bigint) from memory () key k timestamp at;
    stream t = map s select cast(n as string) as n;
    stream pairs = join t as l with t as r within (before = 12 ms, after = 0 ms) select concat(l.n, r.n) as n;
    stream again = outer join pairs as l with pairs as r within 40 ms select concat_ws('/', l.n, r.n) as n;
    stream each = explode again by array('<', '>') as side;
    sink each to memory ();
    """
    plan = compile_topology(text, path="found.vdsl")
    epoch = rows(("s", {"k": "a", "n": 4, "at": 52}), ("s", {"k": "a", "n": 2, "at": 49}))
    met = ["44/44", "22/44", "22/22", "44/22", "42/22", "42/44", "22/42", "44/42", "42/42"]
    sent = shipped(plan, [epoch], ["each"]).outcome["each"]
    assert [value for _, _, value in sent] == [f"('{n}', '{side}')" for n in met for side in "<>"]


def test_an_older_result_of_a_foreign_key_join_is_its_keys_newest_by_the_clock_of_the_input() -> None:
    text = """
    table a (k string, s string, at bigint) from memory () key k timestamp at materialize unversioned;
    table b (k string, g string, at bigint) from memory () key k timestamp at materialize unversioned;
    table ab = left join b with a on g select a.s materialize versioned (retention = 5 ms, grace = 10 ms);
    sink ab to memory ();
    """
    given = rows(
        ("b", {"k": "p", "g": "x", "at": 0}),
        ("a", {"k": "x", "s": "one", "at": 45}),
        ("a", {"k": "x", "s": "two", "at": 44}),
    )
    case = Case(text, [[row] for row in given], [2] * 3, [False] * 3, [False] * 3)
    assert case.difference() == ""
    assert case.records()["ab"] == [("('p',)", 0, "(None,)"), ("('p',)", 45, "('one',)"), ("('p',)", 45, "('two',)")]


@pytest.mark.parametrize("on", ["", "on l.g"])
def test_a_result_that_a_store_refuses_is_lost_at_its_own_time_however_the_input_is_cut(on: str) -> None:
    text = f"""
    table t (k string, g string, n bigint, at bigint) from memory () key k timestamp at materialize unversioned;
    table y = left join t as l with t as r {on} select r.n materialize versioned (retention = 0 ms);
    sink y to memory ();
    sink dropped to memory ();
    """
    given = (("a", 0, 63), ("b", 1, 4), ("b", 2, 1))
    epoch = rows(*(("t", {"k": k, "g": k, "n": n, "at": at}) for k, n, at in given))
    case = Case(text, [epoch], [2], [False], [False])
    assert case.difference() == ""
    assert {time for _, time, _ in case.records()["dropped"]} == {4, 1}


def test_records_without_a_key_beside_a_join_of_what_came_before() -> None:
    text = """
    table t (k string, at bigint) from memory () key k timestamp at;
    stream s (k string, n bigint, at bigint) from memory () key k timestamp at;
    stream j = left join s with t on if(n > 0, k, null) select s.n;
    stream before = join s as l with s as r within (before = 3 ms) select max(r.k) as key_of_r;
    sink j to memory ();
    sink before to memory ();
    """
    epoch = rows(("s", {"k": "a", "n": 0, "at": 1}), ("s", {"k": "a", "n": 2, "at": 2}))
    case = Case(text, [epoch], [1], [False], [False])
    assert case.difference() == ""


def test_late_records_of_a_join_of_what_came_before_are_counted_alike_on_any_number_of_partitions() -> None:
    text = """
    stream s (k string, at bigint) from memory () key k timestamp at;
    stream before = join s as l with s as r within (before = 3 ms) select count(r.k) as n;
    sink before to memory ();
    """
    epoch = rows(*(("s", {"k": k, "at": at}) for at, k in ((50, "a"), *((1, k) for k in "bcdefgh"))))
    case = Case(text, [[row] for row in epoch], [4] * 8, [False] * 8, [False] * 8)
    assert case.difference() == ""
    whole = Case(text, [epoch], [4], [False], [False])
    assert whole.difference() == ""
