"""What a change of a topology does to its sources, stores and sinks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from vsc.changes import Verdict, compare, render
from vsc.changes.in_place import in_place
from vsc.cli import main
from vsc.compiler import compile_topology

OLD = """
table rates (currency string, rate double, at bigint) from files (path = 'rates', format = 'json')
  key currency timestamp at materialize versioned (retention = 7 days);
stream payments (id bigint, account string, currency string, amount int, at bigint)
  from files (path = 'payments', format = 'json') key id timestamp at;
stream large = filter payments where amount >= 100;
stream priced = left join large with rates on currency grace 5 minutes select account, amount * rate as usd;
table totals = aggregate priced group by account select count(*) as n, sum(usd) as usd;
table hourly =
  aggregate priced group by account window tumbling (size = 1 hour, grace = 10 minutes) select count(*) as n;
table final = suppress hourly until window closes;
stream once = distinct large by account within 1 hour;
sink totals to files (path = 'totals', format = 'json');
sink final to files (path = 'final', format = 'json');
sink once to console ();
"""


def verdicts(old: str, new: str) -> dict[str, str]:
    """The verdicts that are not `keep`, by kind and name, with the reason behind them."""
    changes = compare(*(compile_topology(text, path="t.vdsl", variables={}) for text in (old, new)))
    return {
        f"{c.kind} {c.name}": f"{c.verdict.value}: {c.reason}".removesuffix(": ")
        for c in changes
        if c.verdict is not Verdict.KEEP
    }


def changed(*pairs: tuple[str, str]) -> dict[str, str]:
    new = OLD
    for was, now in pairs:
        assert was in new
        new = new.replace(was, now)
    return verdicts(OLD, new)


def test_a_topology_keeps_everything_of_itself() -> None:
    plan = compile_topology(OLD, path="t.vdsl", variables={})
    found = compare(plan, plan)
    assert {change.verdict for change in found} == {Verdict.KEEP}
    assert [f"{c.kind} {c.name}" for c in found] == [
        "source rates", "source payments", "store rates", "store priced#waiting", "store totals",
        "store totals#groups", "store hourly", "store hourly#windows", "store final#suppressed", "store once#passed",
        "sink totals to files 'totals'", "sink final to files 'final'", "sink once to console",
    ]  # fmt: skip


def test_comments_order_and_text_are_no_change() -> None:
    moved = OLD.replace("\n", "\n-- a comment\n", 3).replace("amount >= 100", "(amount   >= 100)")
    statements = re.findall(r"^(?:table|stream|sink)(?:.|\n)*?;$", OLD, re.MULTILINE)
    assert verdicts(OLD, moved) == {}
    assert verdicts(OLD, "\n".join([*statements[2:6][::-1], *statements[6:], *statements[:2]])) == {}


@pytest.mark.parametrize(
    ("pairs", "found"),
    [
        ([("retention = 7 days", "retention = 30 days")], {"store rates": "limits: retention was 7 days, is 30 days"}),
        (
            [("retention = 7 days", "retention = 7 days, grace = 1 day")],
            {"store rates": "limits: grace was 7 days, is 1 day"},
        ),
        (
            [("retention = 7 days", "retention = 7 days, segment = 1 day")],
            {"store rates": "limits: segment was 7 hours, is 1 day"},
        ),
        (
            [("grace 5 minutes", "grace 1 hour")],
            {"store priced#waiting": "limits: grace was 5 minutes, is 1 hour"},
        ),
        (
            [("grace 5 minutes", "grace 5 minutes max_age 1 day")],
            {"store priced#waiting": "limits: max_age was none, is 1 day"},
        ),
        (
            [("grace = 10 minutes", "grace = 20 minutes")],
            {
                "store hourly": "limits: grace was 10 minutes, is 20 minutes",
                "store hourly#windows": "limits: grace was 10 minutes, is 20 minutes",
                "store final#suppressed": "limits: wait was 10 minutes, is 20 minutes",
            },
        ),
        ([("'payments', format = 'json'", "'payments', format = 'json', max_ahead = none")],
         {"source payments": "limits: max_ahead was 1 day, is none"}),
        (
            [("within 1 hour", "within 1 hour grace 1 minute")],
            {"store once#passed": "limits: grace was 0 ms, is 1 minute"},
        ),
        (
            [("path = 'totals'", "append = true, path = 'totals'")],
            {"sink totals to files 'totals'": "limits: append was not given, is True"},
        ),
        (
            [("sink once to console ();", "")],
            {"sink once to console": "dropped"},
        ),
        (
            [("sink once to console ();", "sink once to console (); sink priced to noop ();")],
            {"sink priced to noop": "new"},
        ),
        ([("path = 'final'", "path = 'closed'")],
         {"sink final to files 'final'": "dropped", "sink final to files 'closed'": "new"}),
    ],
    ids=lambda value: value[0][1][:30] if isinstance(value, list) else "",
)  # fmt: skip
def test_what_changes_from_now_on(pairs: list[tuple[str, str]], found: dict[str, str]) -> None:
    assert changed(*pairs) == found


def test_another_clock_is_a_change_of_the_whole_topology_that_keeps_everything_else() -> None:
    was, now = (compile_topology(f"topology t (clock = '{clock}');{OLD}") for clock in ("records", "input"))
    first, *others = compare(was, now)
    assert {change.verdict for change in others} == {Verdict.KEEP}
    assert render([first], "text", "") == "topology  t  limits  clock was 'records', is 'input'\n"
    assert render([first], "github", "x") == "::notice file=x::topology t: limits clock was 'records', is 'input'\n"
    assert json.loads(render([first], "json", ""))["changes"][0]["line"] is None
    assert compare(now, was)[0].reason == "clock was 'input', is 'records'"


def test_a_quiet_is_a_change_of_the_whole_topology_that_keeps_everything_else() -> None:
    was, now = (compile_topology(f"topology t{options};{OLD}") for options in ("", " (quiet = 5 minutes)"))
    first, *others = compare(was, now)
    assert {change.verdict for change in others} == {Verdict.KEEP}
    assert (first.verdict, first.reason) == (Verdict.LIMITS, "quiet was none, is 5 minutes")
    assert in_place(was, now) == (first,)


ORDERED = """stream s (k string, n int, at bigint) from files (path = '${{in}}', format = 'json') key k timestamp at{};
table w = aggregate s group by k select count(*) as n;
sink s to files (path = '${{out}}/s', format = 'json');
sink w to files (path = '${{out}}/w', format = 'json');
"""


def test_a_source_that_is_put_in_order_from_now_on_keeps_what_reads_it() -> None:
    plain, ordered, longer = (
        compile_topology(ORDERED.format(clause), path="t.vdsl")
        for clause in ("", " reorder within 1 hour", " reorder within 2 hours")
    )
    found = {(c.kind, c.name): (c.verdict, c.reason) for c in compare(plain, ordered)}
    assert found["store", "s#waiting"] == (Verdict.NEW, "")
    assert found["sink", "s to files '${out}/s'"] == (Verdict.LIMITS, "reorder within was none, is 1 hour")
    assert found["sink", "w to files '${out}/w'"][0] is Verdict.KEEP
    assert found["store", "w#groups"][0] is Verdict.KEEP
    found = {(c.kind, c.name): (c.verdict, c.reason) for c in compare(ordered, longer)}
    assert found["store", "s#waiting"] == (Verdict.LIMITS, "within was 1 hour, is 2 hours")
    assert found["store", "w#groups"][0] is Verdict.KEEP
    found = {(c.kind, c.name): (c.verdict, c.reason) for c in compare(ordered, plain)}
    assert found["store", "s#waiting"][0] is Verdict.REBUILD  # what is held would be lost
    assert found["sink", "s to files '${out}/s'"] == (Verdict.LIMITS, "reorder within was 1 hour, is none")


def test_a_renamed_node_is_found_by_its_meaning() -> None:
    assert changed(("totals =", "sums ="), ("sink totals", "sink sums")) == {
        "store sums": "renamed", "store sums#groups": "renamed", "sink sums to files 'totals'": "renamed",
    }  # fmt: skip
    assert changed(("large", "big")) == {}
    assert changed(("priced", "valued")) == {"store valued#waiting": "renamed"}


def test_a_renamed_source_is_found_by_its_place_or_its_columns() -> None:
    assert changed(("table rates (", "table fx ("), ("with rates", "with fx")) == {
        "source fx": "renamed", "store fx": "renamed",
    }  # fmt: skip
    twins = "".join(f"stream {n} (n int, at bigint) from memory () timestamp at; sink {n} to memory ();" for n in "ab")
    found = verdicts(twins, twins.replace("stream a", "stream c").replace("sink a", "sink c"))
    assert found == {"source c": "renamed", "sink c to memory": "renamed"}
    other = twins.replace("stream a", "stream c").replace("sink a", "sink c")
    other = other.replace("stream b", "stream d").replace("sink b", "sink d")
    assert set(verdicts(twins, other).values()) == {"renamed"}  # by the order in which they stand: nothing tells more


REBUILT = {"store totals", "store totals#groups", "store hourly", "store hourly#windows",
           "store final#suppressed", "sink totals to files 'totals'", "sink final to files 'final'"}  # fmt: skip


@pytest.mark.parametrize(
    ("was", "now", "reason", "stores"),
    [
        ("amount >= 100", "amount > 100", "`large`: predicate was `amount >= 100`, is `amount > 100`",
         REBUILT | {"store priced#waiting", "store once#passed", "sink once to console"}),
        ("amount * rate as usd", "amount * rate * 2 as usd",
         "`priced`: `usd` was `amount * rate`, is `amount * rate * 2`",
         {"store totals", "store totals#groups", "sink totals to files 'totals'"}),  # `hourly` does not read it
        ("left join large", "join large", "`priced`: it was a left join, is an inner join", REBUILT),
        ("sum(usd) as usd", "max(usd) as usd", "`totals`: it computed `sum(usd)`, computes `max(usd)`",
         {"store totals", "store totals#groups", "sink totals to files 'totals'"}),
        ("size = 1 hour", "size = 2 hours",
         "`hourly`: window was tumbling (size = 1 hour, grace = 10 minutes), "
         "is tumbling (size = 2 hours, grace = 10 minutes)",
         {"store hourly", "store hourly#windows", "store final#suppressed", "sink final to files 'final'"}),
        ("size = 1 hour", "size = 1 day, zone = 'Asia/Tokyo'",
         "`hourly`: window was tumbling (size = 1 hour, grace = 10 minutes), "
         "is tumbling (size = 1 day, zone = 'Asia/Tokyo', grace = 10 minutes)",
         {"store hourly", "store hourly#windows", "store final#suppressed", "sink final to files 'final'"}),
        ("within 1 hour", "within 2 hours", "`once`: within was 1 hour, is 2 hours",
         {"store once#passed", "sink once to console"}),
        ("by account within", "by currency within", None, {"store once#passed", "sink once to console"}),
    ],
)  # fmt: skip
def test_what_was_computed_by_the_old_text_is_rebuilt(was: str, now: str, reason: str | None, stores: set[str]) -> None:
    found = changed((was, now))
    assert set(found) == stores
    assert all(text.startswith("rebuild: ") for text in found.values()), found
    if reason is not None:
        assert set(found.values()) == {f"rebuild: {reason}"}


SPLIT = """
stream transfers (id bigint, payer string, payee string, amount int, at bigint)
  from files (path = 'transfers', format = 'json') key id timestamp at;
stream debits = map transfers select payer as account, -amount as change;
stream credits = map transfers select payee as account, amount as change;
stream bookings = merge debits, credits;
table balances = aggregate bookings group by account select sum(change) as balance;
sink balances to console ();
"""


def test_columns_of_merged_streams_belong_together() -> None:
    turned = SPLIT.replace("-amount", "+amount").replace(" amount as", " -amount as").replace("+amount", "amount")
    found = verdicts(SPLIT, turned)
    assert {name for name, verdict in found.items() if verdict.startswith("rebuild")} == {
        "store balances",
        "store balances#groups",
        "sink balances to console",
    }


@pytest.mark.parametrize("clause", ["", "stream big = filter transfers where amount > 9;"])
def test_streams_may_be_merged_in_another_order(clause: str) -> None:
    text = SPLIT.replace("map transfers", "map big", 1) + clause if clause else SPLIT
    assert verdicts(text, text.replace("debits, credits", "credits, debits")) == {}
    assert verdicts(text, text.replace("debits", "first").replace("credits", "other")) == {}


def test_a_store_that_loses_its_history_is_rebuilt() -> None:
    found = changed(("versioned (retention = 7 days)", ""), (" grace 5 minutes", ""))
    assert found["store rates"] == "rebuild: it was versioned, is unversioned"
    assert found["store totals"].startswith("rebuild: `priced`: it was a join with the row valid at its time")
    assert found["store priced#waiting"] == "dropped: `grace` is gone: records that wait in it are joined at once"
    assert "store once#passed" not in found


TABLE = """
table t (k string, a int, at bigint) from memory () key k timestamp at materialize;
table m = map t select a materialize;
sink m to noop ();
"""


def test_a_column_more_widens_what_holds_it() -> None:
    found = verdicts(TABLE, TABLE.replace("a int,", "a int, c string,").replace("select a", "select a, c"))
    assert found == dict.fromkeys(("source t", "store t", "store m", "sink m to noop"), "widened: a new column `c`")
    assert changed(("amount int", "amount int, note string")) == {
        "source payments": "widened: a new column `note`",
        "sink once to console": "widened: a new column `note`",
    }


def test_a_wider_type() -> None:
    found = verdicts(TABLE, TABLE.replace("a int", "a bigint"))
    assert found["source t"] == "widened: `a` was int, is bigint"
    assert found["store m"] == "widened: `a` was int, is bigint"
    assert verdicts(TABLE.replace("a int", "a bigint"), TABLE)["store m"] == (
        "rebuild: the column `a` of `t` was bigint, is int"
    )
    assert verdicts(TABLE, TABLE.replace("k string", "k int"))["store m"] == (
        "rebuild: the key of `t` was (k string), is (k int)"
    )


def test_a_computed_column_more_is_a_rebuild_and_one_less_is_none() -> None:
    more = TABLE.replace("select a", "select a, a + 1 as b")
    assert verdicts(TABLE, more)["store m"] == "rebuild: `m` computes a new column `b`"
    assert verdicts(more, TABLE)["store m"] == "widened: the column `b` is gone"


def test_another_connector_needs_a_position_and_the_stores_behind_it_stay() -> None:
    found = changed(("from files (path = 'rates', format = 'json')", "from memory ()"))
    assert found == {
        "source rates": "moved: it read from files, reads from memory: upgrade it with --position rates=..."
    }


def test_rows_that_expire_from_now_on_later_or_no_longer() -> None:
    table = "table t (k string, a int) from files (path = 't', format = 'json') key k materialize unversioned{};"
    table += "sink t to console ();"
    plain, month, week = (table.format(x) for x in ("", " (expire = 30 days)", " (expire = 7 days)"))
    both = compile_topology(month, path="t.vdsl"), compile_topology(week, path="t.vdsl")
    assert verdicts(plain, month) == {
        "store t": "limits: expire was none, is 30 days",
        "store t#expiring": "new: rows from before expire as well: those that are due with the first rows read",
    }
    assert verdicts(month, plain) == {
        "store t": "limits: expire was 30 days, is none", "store t#expiring": "dropped: the rows of `t` stay"
    }  # fmt: skip
    assert verdicts(month, week) == {
        "store t": "limits: expire was 30 days, is 7 days", "store t#expiring": "limits: expire was 30 days, is 7 days"
    }  # fmt: skip
    assert in_place(*both) is None and in_place(*reversed(both)) is not None
    more = month.replace("a int", "a int, b int")
    assert verdicts(month, more) == {
        "source t": "widened: a new column `b`",
        "store t": "widened: a new column `b`",
        "sink t to console": "widened: a new column `b`",
    }
    versioned = plain.replace("unversioned", "versioned (retention = 1 day)")
    assert verdicts(versioned, month)["store t#expiring"] == "new"


def test_the_node_that_decided_and_its_line() -> None:
    new = OLD.replace("amount >= 100", "amount > 100").replace("\n", "\n\n")
    changes = compare(*(compile_topology(text, path="t.vdsl", variables={}) for text in (OLD, new)))
    (totals,) = [change for change in changes if change.name == "totals"]
    assert (totals.node, totals.line) == ("large", 1 + new[: new.index("stream large")].count("\n"))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.vdsl", tmp_path / "new.vdsl"
    old.write_text(OLD)
    new.write_text(OLD.replace("7 days", "8 days"))
    assert main(["diff", str(old), str(new)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "store   rates                     limits  retention was 7 days, is 8 days (line 2)" in lines
    assert main(["compile", str(old), "-o", str(tmp_path / "old.json")]) == 0
    new.write_text(OLD.replace("1 hour, grace", "2 hours, grace"))
    capsys.readouterr()
    assert main(["diff", str(tmp_path / "old.json"), str(new), "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)["changes"]
    assert [c["name"] for c in found if c["verdict"] == "rebuild"] == [
        "hourly", "hourly#windows", "final#suppressed", "final to files 'final'",
    ]  # fmt: skip
    assert {c["node"] for c in found if c["verdict"] == "rebuild"} == {"hourly"}
    (tmp_path / "checkpoint/vsc").mkdir(parents=True)
    (tmp_path / "old.json").rename(tmp_path / "checkpoint/vsc/plan.json")
    assert main(["diff", str(tmp_path / "checkpoint"), str(new), "--format", "github"]) == 1
    assert f"::error file={new},line=9::store hourly: rebuild `hourly`: window was " in capsys.readouterr().out


def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "a.vdsl"
    good.write_text(OLD)
    assert main(["diff", str(tmp_path), str(good)]) == 2
    assert "is not a checkpoint: it has no vsc/plan.json" in capsys.readouterr().err
    (tmp_path / "p.json").write_text("{}")
    assert main(["diff", str(tmp_path / "p.json"), str(good)]) == 2
    assert "is not a plan that this vsc can read" in capsys.readouterr().err
    (tmp_path / "b.vdsl").write_text("stream a = filter b where true;")
    assert main(["diff", str(good), str(tmp_path / "b.vdsl")]) == 1
    assert "b.vdsl:1:19" in capsys.readouterr().err


def test_annotations_escape_what_github_reads() -> None:
    plans = [
        compile_topology(text, path="t.vdsl", variables={})
        for text in (OLD, OLD.replace("amount >= 100", "amount % 2 = 0"))
    ]
    assert "is `amount %25 2 = 0`" in render(compare(*plans), "github", "t.vdsl")


@pytest.mark.slow
def test_a_long_chain_is_compared_without_recursion() -> None:
    def chain(least: int) -> str:
        filters = "".join(f"stream n{i + 1} = filter n{i} where a > {i}; " for i in range(1500))
        source = "stream s (a int, at bigint) from memory () timestamp at; "
        return f"{source} stream n0 = filter s where a > {least}; {filters} sink n1500 to noop ();"

    assert verdicts(chain(9001), chain(9002)) == {
        "sink n1500 to noop": "rebuild: `n0`: predicate was `a > 9001`, is `a > 9002`",
    }  # fmt: skip
    assert verdicts(chain(1), chain(2)) == {}  # another filter of the chain has that condition


OF_STREAM = "stream s (k string, v int, at bigint) from memory () key k timestamp at;"
OF_TABLE = "table t (k string, w bigint, at bigint) from memory () key k timestamp at materialize unversioned;"


def test_a_wider_column_is_another_meaning_only_where_it_is_kept_as_such() -> None:
    counted = OF_STREAM + "table a = aggregate s group by k select sum(v) as total, count(v) as n;"
    assert verdicts(counted, counted.replace("v int", "v bigint")) == {
        "source s": "widened: `v` was int, is bigint"
    }  # fmt: skip
    distinct = OF_STREAM + "table a = aggregate s group by k select count(distinct v) as n;"
    assert verdicts(distinct, distinct.replace("v int", "v bigint")) == {
        "source s": "widened: `v` was int, is bigint",
        "store a": "rebuild: `a`: `count(distinct v)` was computed from int, is computed from bigint",
        "store a#groups": "rebuild: `a`: `count(distinct v)` was computed from int, is computed from bigint",
    }


@pytest.mark.parametrize("type_", ["decimal(9, 2)", "bigint", "double", "boolean", "string"])
def test_a_null_of_a_type_is_a_constant_like_others(type_: str) -> None:
    def summed(value: str) -> str:
        return f"{OF_STREAM} table a = aggregate s group by k select min(cast({value} as {type_})) as n;"

    assert verdicts(summed("null"), summed("null")) == {}
    assert set(verdicts(summed("null"), summed("'1'"))) == {"store a", "store a#groups"}


def test_a_store_that_is_new_to_a_node_lacks_its_rows_and_so_does_what_reads_them() -> None:
    old = OF_TABLE + "table f = filter t where w > 0; table a = aggregate f group by w select count(*) as n;"
    new = old.replace("w > 0", "w > 0 materialize unversioned")
    assert verdicts(old, new) == {
        "store f": "new: `f` had no store: its earlier rows are missing from the new one",
        "store a": "rebuild: `f` had no store: its earlier rows are missing from the new one",
        "store a#groups": "rebuild: `f` had no store: its earlier rows are missing from the new one",
    }


UNKNOWN = "`t` had no store: its earlier rows are missing from the new one"


@pytest.mark.parametrize(
    ("reader", "stores"),
    [
        ("table a = aggregate READ group by w select count(*) as n;", {"a", "a#groups"}),
        ("table m = map READ select w + 1 as w; table a = aggregate m group by w select count(*) as n;",
         {"a", "a#groups"}),
        ("table a = left join o with READ as t select o.v, t.w materialize unversioned;", {"a"}),
        ("table a = left join o with READ as t on o.k select o.v, t.w;", {"a#subscriptions"}),
        ("stream j = left join s with READ as t select t.w; table a = to_table j materialize unversioned;", {"a"}),
    ],
)  # fmt: skip
def test_who_needs_the_rows_of_a_source_that_had_no_store_lacks_those_from_before(
    reader: str, stores: set[str]
) -> None:
    sources = f"{OF_STREAM}{OF_TABLE.replace(' materialize unversioned', '')}"
    sources += "table o = to_table s materialize unversioned;"
    old = f"{sources} table copy = materialize t unversioned; {reader} sink a to noop ();"
    found = verdicts(old.replace("READ", "copy"), f"{sources} {reader} sink a to noop ();".replace("READ", "t"))
    assert {name: found.pop(f"store {name}") for name in stores} == dict.fromkeys(stores, f"rebuild: {UNKNOWN}")
    assert found["store t"] == f"new: {UNKNOWN}"
    assert found["sink a to noop"] == f"rebuild: {UNKNOWN}"


def test_a_filter_that_asks_a_new_store_misses_deletions_of_rows_from_before() -> None:
    old = OF_TABLE.replace(" materialize unversioned", "") + "table f = filter t where w > 0; sink f to noop ();"
    old += "table m = map t select w + 1 as w; sink m to noop ();"
    assert verdicts(old, old + "table a = aggregate t group by w select count(*) as n;") == {
        "store t": f"new: {UNKNOWN}",
        "store a": "new",
        "store a#groups": "new",
        "sink f to noop": f"rebuild: {UNKNOWN}",
    }


def test_rows_that_a_source_without_a_store_has_passed_on_do_not_expire() -> None:
    old = OF_TABLE.replace(" materialize unversioned", "")
    read = "table m = map t select w + 1 as w; sink m to noop (); sink t to noop ();"
    assert verdicts(old + read, OF_TABLE.replace("unversioned", "unversioned (expire = 100 ms)") + read) == {
        "store t": f"new: {UNKNOWN}",
        "store t#expiring": "new",
        "sink m to noop": "limits: rows from before do not expire",
        "sink t to noop": "limits: rows from before do not expire",
    }


def test_what_becomes_of_a_tables_rows_in_a_new_node_is_said() -> None:
    new = OF_TABLE + "table a = aggregate t group by w select count(*) as n;"
    assert verdicts(OF_TABLE, new) == {
        "store a": "new: filled with the rows that `t` holds",
        "store a#groups": "new: filled with the rows that `t` holds",
    }
    streamed = OF_STREAM + "table a = aggregate s group by k select count(*) as n;"
    assert verdicts(OF_STREAM, streamed) == {"store a": "new", "store a#groups": "new"}


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("3", "4", "had the constant 3, has 4"),
        ("'a'", "'b'", "had the constant 'a', has 'b'"),
        ("1 hour", "90 minutes", "had the constant 1 hour, has 1 hour 30 minutes"),
        ("3", "1 + 2", "has other constants"),
    ],
)
def test_another_value_of_a_constant_is_shown_where_the_text_is_the_same(was: str, now: str, said: str) -> None:
    use = {"3": "v + c as x", "'a'": "concat(k, c) as x", "1 hour": "event_time() + c as x"}[was]
    made = f"{OF_STREAM} stream m = map s select {use}; sink m to console ();"
    text = use.removesuffix(" as x")
    assert verdicts(f"let c = {was}; {made}", f"let c = {now}; {made}") == {
        "sink m to console": f"rebuild: `m`: `x` (`{text}`) {said}"
    }
    call = f"max({text})"
    kept = f"{OF_STREAM} table a = aggregate s group by k select {call} as x;"
    assert verdicts(f"let c = {was}; {kept}", f"let c = {now}; {kept}")["store a"] == f"rebuild: `a`: `{call}` {said}"


def test_a_function_of_another_module_is_named() -> None:
    def own(module: str) -> str:
        declared = f"function f (n int) returns int from '{module}:f'; {OF_STREAM}"
        kept = "table a = aggregate m group by k select max(f(x)) as y;"
        return f"{declared} stream m = map s select f(v) as x; sink m to console (); {kept}"

    found = verdicts(own("old"), own("new"))
    assert found["sink m to console"] == "rebuild: `m`: `x` (`f(v)`) called old:f, calls new:f"
    aggregate = OF_STREAM + "table a = aggregate s group by k select max(f(v)) as y;"
    was, now = (f"function f (n int) returns int from '{module}:f'; {aggregate}" for module in ("old", "new"))
    assert verdicts(was, now)["store a"] == "rebuild: `a`: `max(f(v))` called old:f, calls new:f"


def test_a_constant_with_the_value_that_was_written_changes_nothing() -> None:
    kept = f"{OF_STREAM} table a = aggregate s group by k select max(v + {{}}) as x;"
    assert verdicts(kept.format("3"), "let c = 3; " + kept.format("c")) == {}


def test_the_age_of_a_join_that_keeps_nothing_is_told_by_what_reads_it() -> None:
    was = OLD.replace(" grace 5 minutes", " max_age 1 hour") + "sink priced to noop ();"
    told = "limits: `priced`: max_age was 1 hour, is 2 hours"
    assert verdicts(was, was.replace("max_age 1 hour", "max_age 2 hours")) == {
        "store totals": told, "store totals#groups": told, "store hourly": told, "store hourly#windows": told,
        "sink priced to noop": told,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("clause", "reason", "windows"),
    [
        ("strictly before",
         "it was a join with the row valid at its time, is a join with the row valid before its time", False),
        ("drop older_than_retention",
         "it was with the records older than the history, is without the records older than the history", True),
    ],
)  # fmt: skip
def test_which_rows_a_join_takes_is_another_meaning(clause: str, reason: str, windows: bool) -> None:
    found = changed(("grace 5 minutes", f"grace 5 minutes {clause}"))
    assert found["store totals"] == f"rebuild: `priced`: {reason}"
    assert ("store hourly" in found) is windows  # its rows are counted, whatever the join has found for them


def test_the_parameter_of_a_lambda_may_have_another_name() -> None:
    def topology(condition: str) -> str:
        return (
            "stream s (id bigint, n array<int>) from files (path = 'in', format = 'json') key id;\n"
            f"stream some = filter s where {condition};\n"
            "table t = aggregate some group by id select count(*) as n;\nsink t to noop ();\n"
        )

    was = topology("exists(n, x -> x > 1 and exists(n, y -> y < x))")
    assert verdicts(was, topology("exists(n, a -> exists(n, b -> a > b) and 1 < a)")) == {}
    assert "store t" in verdicts(was, topology("exists(n, x -> x > 1 and exists(n, y -> y < y))"))


def test_a_name_that_is_another_node_now_is_said() -> None:
    renamed = ("table rates", "table rates0")
    rates = "stream large =", "table rates = filter rates0 where rate > 1;\nstream large ="
    said = "`rates`, which `priced` reads, was a source, is a filter"
    assert changed(renamed, rates)["store totals"] == f"rebuild: {said}"
    other_key = changed(("on currency", "on account"))["store totals"]
    assert other_key == "rebuild: `priced`: its key was `currency`, is `account`"


COMPLETE = """
table a (k string, f string, n int, at bigint) from files (path = 'a', format = 'json') key k timestamp at
  materialize versioned (retention = 7 days);
table j = join a with a as b on f select a.n as n {clause};
table g = aggregate a group by f select count(*) as n {clause};
sink j to files (path = 'j', format = 'json');
sink g to files (path = 'g', format = 'json');
"""
LATEST = COMPLETE.replace("{clause}", "materialize versioned (retention = 7 days)")
WHOLE = COMPLETE.replace("{clause}", "materialize versioned (retention = 7 days, history = 'complete')")


def test_a_history_that_becomes_complete_begins_again() -> None:
    assert verdicts(LATEST, WHOLE) == {
        "store j": "rebuild: the history of `j` is to be complete",
        "store j#subscriptions": "rebuild: the history of `j` is to be complete",
        "store g": "rebuild: the history of `g` is to be complete",
        "store g#groups": "rebuild: the history of `g` is to be complete",
        "sink j to files 'j'": "rebuild: the history of `j` is to be complete",
        "sink g to files 'g'": "rebuild: the history of `g` is to be complete",
    }
    assert verdicts(WHOLE, WHOLE) == {}
