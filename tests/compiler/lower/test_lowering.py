"""From checked topologies to plan nodes."""

from __future__ import annotations

from dataclasses import fields

import pytest

from vsc.compiler import compile_topology
from vsc.compiler.passes.check import CheckedTopology
from vsc.compiler.passes.survey import Survey
from vsc.plan import (
    Aggregate,
    Answer,
    GroupChanges,
    Item,
    Map,
    Node,
    Plan,
    Rekey,
    Source,
    Store,
    StreamGlobalJoin,
    StreamTableJoin,
    Subscribe,
    Suppress,
    TableTableJoin,
    ToTable,
    Window,
)
from vsc.plan.expressions import Call, Cast
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
    assert isinstance(rekey.operation, Rekey) and rekey.inputs == ("s",)
    assert [item.expr for item in rekey.operation.items] == [C(0, "k", STRING)]
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
    text = "sink s to files (path = '${out}/${day}', format = 'json', 'x.y' = '${a}');"
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
        CheckedTopology(*([None] * len(fields(Survey))), seal=object())  # type: ignore[arg-type, misc]


SHOP = """
stream clicks (page string, visitor string, price decimal(12, 2), at timestamp) from memory () key page timestamp at;
table pages (page string, site string, weight int) from memory () key page;
table sites (site string, country string, rank int) from memory () key site;
global table countries (code string, name string) from memory () key code;
"""


def shop(text: str) -> Plan:
    return compile_topology(SHOP + text)


def value(node: Node) -> list[str]:
    return [column.name for column in node.schema.value]


def test_a_foreign_key_join_is_subscriptions_answers_and_a_table() -> None:
    found = shop("table j = left join pages with sites on site select weight + rank as n, country;")
    subscribe, answer, join_ = found.nodes[-3:]
    assert (subscribe.name, subscribe.inputs) == ("j#subscribe", ("pages",))
    assert value(subscribe) == ["page", "weight", "#instruction"]
    assert subscribe.operation == Subscribe((Item("site", C(0, "site", STRING), "site"),), True, False)
    assert (answer.name, answer.inputs) == ("j#answer", ("j#subscribe", "sites"))
    assert isinstance(answer.operation, Answer)
    assert [c.name for c in answer.operation.left_schema.key] == ["page"]
    assert [c.name for c in answer.operation.left_schema.value] == ["weight"]
    assert join_.inputs == ("j#answer",) and isinstance(join_.operation, ToTable)
    assert join_.schema == answer.schema and names(join_) == (["page"], ["n", "country"])
    assert found.node("pages").store == Store("pages", "unversioned", implied=True)
    assert found.node("sites").store == Store("sites", "unversioned", implied=True)
    assert join_.store is None


def test_an_aggregate_by_the_key_reads_its_stream_as_it_is() -> None:
    found = shop("table n = aggregate clicks group by page as p select count(*) as n, count(*) + 1 as m;")
    node = found.nodes[-1]
    assert node.inputs == ("clicks",) and isinstance(node.operation, Aggregate)
    assert [call.text for call in node.operation.calls] == ["count(*)"]
    assert names(node) == (["p"], ["n", "m"])
    assert node.store == Store("n", "unversioned", implied=True)


def test_an_aggregate_by_another_key_moves_what_its_calls_read() -> None:
    found = shop("table n = aggregate clicks group by visitor as v, upper(page) as p select max(page) as m;")
    moved, node = found.nodes[-2:]
    assert (moved.name, names(moved)) == ("n#rekey", (["visitor", "on#1"], ["page"]))
    assert node.inputs == ("n#rekey",) and names(node) == (["v", "p"], ["m"])
    assert isinstance(node.operation, Aggregate) and node.operation.row == moved.schema


def test_the_changes_of_a_table_travel_with_its_key() -> None:
    found = shop("table n = aggregate pages group by site select site as where_, sum(weight) as total;")
    changes, node = found.nodes[-2:]
    assert (changes.name, changes.kind) == ("n#changes", "stream")
    assert value(changes) == ["#old", "#new", "old#page", "old#weight", "new#page", "new#weight"]
    assert isinstance(changes.operation, GroupChanges) and changes.operation.columns == ("page", "weight")
    assert isinstance(node.operation, Aggregate) and names(node) == (["where_"], ["total"])
    assert node.operation.over == "table" and [c.name for c in node.operation.row.value] == ["page", "weight"]
    assert node.operation.calls[0].type == BIGINT
    assert found.node("pages").store is not None


def test_an_item_sees_the_group_under_its_new_name() -> None:
    node = shop("table n = aggregate clicks group by page select page as p, page || '!' as x;").nodes[-1]
    assert isinstance(node.operation, Aggregate)
    assert node.operation.items[0].expr.args[0] == C(0, "p", STRING)  # type: ignore[union-attr]


def test_types_of_aggregates() -> None:
    node = shop("table n = aggregate clicks group by visitor select sum(price) as s, avg(price) as a, "
                "avg(1) as i, collect_list(at) as l, min_by(page, at) as p;").nodes[-1]  # fmt: skip
    assert [str(column.type) for column in node.schema.value] == [
        "decimal(22,2)", "decimal(16,6)", "double", "array<timestamp>", "string",
    ]  # fmt: skip


def test_windows_and_what_suppress_waits_for() -> None:
    found = shop(
        "table w = aggregate clicks group by page window session (gap = 2 minutes, grace = 30 seconds) emit final "
        "select count(*) as n; table f = filter w where n > 1;"
        "table s = suppress f until window closes (max_bytes = 9);"
        "table l = suppress pages until time limit 5 seconds (max_records = 2);"
    )
    window = found.node("w")
    assert [str(c.type) for c in window.schema.key] == ["string", "timestamp", "timestamp"]
    assert isinstance(window.operation, Aggregate) and window.operation.final
    assert window.operation.window == Window("session", 120_000, 0, 30_000)
    assert found.node("s").operation == Suppress("window_closes", 150_001, None, 9, "fail")
    assert found.node("l").operation == Suppress("time_limit", 5_000, 2, None, "emit")
    assert found.node("pages").store == Store("pages", "unversioned", implied=True)


def test_an_outer_join_has_the_key_of_whichever_side_is_there() -> None:
    node = shop("table j = outer join pages with sites select page as k, pages.page as a, page || '!' as b;").nodes[-1]
    both = Call("coalesce", (C(0, "page", STRING), C(1, "site", STRING)), STRING)
    assert isinstance(node.operation, TableTableJoin)
    assert node.operation.items[0].expr == C(0, "page", STRING)
    assert node.operation.items[1].expr.args[0] == both  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("reads", "stored"),
    [
        ("table x = aggregate j group by visitor select count(*) as n;", True),
        ("table m = map j select a; table x = aggregate m group by a select count(*) as n;", True),
        ("table x = suppress j until time limit 1 second;", True),
        ("table x = join j with pages on j.a select a;", True),
        ("table x = join pages with j on upper(pages.page) select a;", False),  # only looked up
        ("stream x = to_stream j;", False),
    ],
)
def test_a_join_of_tables_that_change_together_keeps_the_rows_that_it_has_sent(reads: str, stored: bool) -> None:
    text = """
    table t (visitor string, page string) from memory () key visitor;
    table pages (page string, title string) from memory () key page;
    table f = filter t where page > 'a';
    table j = left join t with f select t.page as a;
    """
    plan = compile_topology(text + reads + "sink x to memory ();", path="t.vdsl")
    assert plan.node("j").store == (Store("j", "unversioned", implied=True) if stored else None)
    apart = text.replace("filter t where page > 'a'", "aggregate t group by page as visitor select count(*) as page")
    plan = compile_topology(apart + reads + "sink x to memory ();", path="t.vdsl")
    assert plan.node("j").store is None  # the changes of both sides come one by one


def test_a_global_table_is_handed_to_every_partition() -> None:
    found = shop("stream j = left join clicks with countries on upper(visitor) select name;")
    assert isinstance(found.nodes[-1].operation, StreamGlobalJoin)
    assert [entry.node for entry in found.stages[1].inputs if entry.broadcast] == ["countries"]
    assert found.node("countries").store == Store("countries", "unversioned", implied=True)
