"""From checked topologies to plan nodes."""

from __future__ import annotations

import pytest

from vsc.compiler import check_topology, compile_topology
from vsc.compiler.passes.check import CheckedTopology
from vsc.plan import Map, Node, Plan, Rekey, Source, Store, StreamTableJoin
from vsc.plan.expressions import Cast
from vsc.plan.expressions import Column as C
from vsc.plan.types import BIGINT, INT, STRING

SOURCES = """
stream s (id bigint, k string, g string, n int) from memory () key id;
table t (k string, m int) from memory () key k;
table b (id bigint, m int) from memory () key id materialize versioned (retention = 1 minute);
"""


def plan(text: str) -> Plan:
    return compile_topology(SOURCES + text)


def join(node: Node) -> StreamTableJoin:
    assert isinstance(node.operation, StreamTableJoin)
    return node.operation


def names(node: Node) -> tuple[list[str], list[str]]:
    return [c.name for c in node.schema.key], [c.name for c in node.schema.value]


def test_a_join_on_a_plain_column_moves_the_column_into_the_key() -> None:
    found = plan("stream j = join s with t on k select id, n, m;")
    rekey, node = found.node("j#rekey"), found.node("j")
    assert names(rekey) == (["k"], ["id", "n"])
    assert rekey.operation == Rekey((rekey.operation.items[0],)) and rekey.inputs == ("s",)
    assert rekey.operation.items[0].expr == C(0, "k", STRING)
    assert names(node) == (["k"], ["id", "n", "m"]) and node.inputs == ("j#rekey", "t")


def test_a_join_on_an_expression_keeps_the_column_of_the_key_s_name_beside_it() -> None:
    found = plan("stream j = left join s with t on upper(k) select k as new, s.k as old, t.k as theirs;")
    assert names(found.node("j#rekey")) == (["on#0"], ["k"])
    assert names(found.node("j")) == (["new"], ["old", "theirs"])
    items = join(found.node("j")).items
    assert [item.expr for item in items] == [C(0, "k", STRING), C(1, "k", STRING)]


def test_the_key_s_own_name_in_an_expression_is_the_new_key() -> None:
    found = plan("stream j = join s with t on upper(k) select k || '!' as loud;")
    (item,) = join(found.node("j")).items
    assert C(0, "on#0", STRING) in item.expr.args  # type: ignore[union-attr]


def test_a_key_that_is_widened_is_cast_in_front_of_the_join() -> None:
    found = plan("stream j = join s with b on n select k, m;")
    rekey = found.node("j#rekey")
    assert isinstance(rekey.operation, Rekey)
    assert rekey.operation.items[0].expr == Cast(C(0, "n", INT), BIGINT)
    assert names(rekey) == (["on#0"], ["k"]) and names(found.node("j")) == (["id"], ["k", "m"])


def test_on_the_stream_s_own_key_is_no_re_key_and_takes_the_table_s_name() -> None:
    found = plan("table c (cid bigint, m int) from memory () key cid; stream j = join s with c on id select n, m;")
    assert [node.name for node in found.nodes] == ["s", "t", "b", "c", "j"]
    assert names(found.node("j")) == (["cid"], ["n", "m"]) and found.node("j").inputs == ("s", "c")


def test_an_alias_after_on_names_the_key() -> None:
    assert names(plan("stream j = join s with t on g as grp select n;").node("j")) == (["grp"], ["n"])


def test_a_star_is_what_is_not_the_key() -> None:
    found = plan("stream j = join s with t on g select *; stream i = map s select *;")
    assert names(found.node("j")) == (["k"], ["id", "g", "n", "m"])
    assert names(found.node("i")) == (["id"], ["k", "g", "n"])


def test_a_table_that_a_stream_reads_gets_a_store_at_its_source() -> None:
    found = plan("table f = filter t where m > 0; table x = map f select m; stream j = join s with x on k select m;")
    assert found.node("t").store == Store("t", "unversioned", implied=True)
    assert found.node("f").store is None and found.node("x").store is None
    assert not join(found.node("j")).as_of


def test_a_versioned_store_s_measures_and_the_join_as_of() -> None:
    found = plan("stream j = left join s with b grace 30 seconds select m;")
    assert found.node("b").store == Store("b", "versioned", retention=60_000, grace=60_000, segment=20_000)
    operation = join(found.node("j"))
    assert (operation.left, operation.as_of, operation.grace) == (True, True, 30_000)


def test_tables_come_before_streams_in_the_order_of_arrival() -> None:
    ranks = {n.name: n.operation.rank for n in plan("").nodes if isinstance(n.operation, Source)}
    assert ranks == {"t": 0, "b": 1, "s": 2}


def test_a_map_renames_the_key_and_copies_it() -> None:
    node = plan("stream m = map s select id as number, id as copy, upper(k) as id;").node("m")
    assert names(node) == (["number"], ["copy", "id"])
    assert isinstance(node.operation, Map) and node.operation.items[0].expr == C(0, "id", BIGINT)


def test_the_name_of_the_re_key_is_never_that_of_a_node() -> None:
    found = plan("stream `j#rekey` = filter s where true; stream j = join s with t on k select m;")
    assert [node.name for node in found.nodes][-3:] == ["j#rekey", "j#rekey#", "j"]


def test_the_topology_is_named_by_the_file_unless_it_names_itself() -> None:
    assert compile_topology(SOURCES, path="/somewhere/sales.vdsl").name == "sales"
    assert compile_topology("topology mine;" + SOURCES, path="sales.vdsl").name == "mine"


def test_variables_of_connectors_are_listed_in_order() -> None:
    text = "sink s to files (path = '${out}/${day}', format = 'json', 'x' = '${a}');"
    assert plan(text).variables == ("a", "day", "out")


def test_sinks_are_numbered_in_the_order_of_the_file() -> None:
    found = plan("sink s to console (); sink t to noop (); sink s to noop ();")
    assert [(sink.id, sink.node, sink.connector.kind, sink.line) for sink in found.sinks] == [
        ("sink-0", "s", "console", 5),
        ("sink-1", "t", "noop", 5),
        ("sink-2", "s", "noop", 5),
    ]


def test_a_checked_topology_comes_from_check_alone() -> None:
    with pytest.raises(TypeError, match=r"passes\.check"):
        CheckedTopology(*([None] * 8), seal=object())  # type: ignore[arg-type]


def test_forms_that_cannot_run_are_named_and_nothing_else_is_said() -> None:
    text = """
    topology shop;
    stream clicks (page string, visitor string, price decimal(12, 2), at timestamp)
    from files (path = 'clicks', format = 'json') key page timestamp at;
    global table countries (code string, name string) from memory () key code;
    stream lines = explode clicks by array(1, 2) as part;
    stream both = merge clicks, clicks2;
    stream clicks2 = map clicks select *;
    stream by_visitor = rekey clicks by visitor;
    table by_page = aggregate clicks group by page select count(*) as n, sum(price) as total materialize as pages;
    table hourly =
      aggregate clicks group by page window tumbling (size = 1 hour, grace = 10 minutes) emit changes
      select max_by(visitor, at) as last_visitor;
    table done = suppress hourly until window closes;
    stream changes = to_stream by_page;
    sink done to console (); sink changes to console (); sink lines to noop (); sink both to noop ();
    stream named = join by_visitor with countries on visitor select name;
    sink named to noop ();
    """
    assert {d.code for d in check_topology(text)} == {"VSC190"}
    assert len(check_topology(text)) == 8
