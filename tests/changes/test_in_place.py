"""With which changes of a topology its checkpoint goes on as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.changes.test_diff import OLD
from vsc.changes import in_place, in_words, renames_what_waits
from vsc.compiler import compile_topology
from vsc.plan import Clock, Plan


def plan(*changes: tuple[str, str]) -> Plan:
    text = OLD
    for was, now in changes:
        assert was in text
        text = text.replace(was, now)
    return replace(compile_topology(text, path="t.vdsl", variables={}), clock="records", clock_implied=False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([], []),
        ([("large", "big")], []),
        (
            [("totals = aggregate", "sums = aggregate"), ("sink totals", "sink sums")],
            ["store sums: renamed was `totals`", "store sums#groups: renamed was `totals#groups`",
             "sink sums to files 'totals': renamed was `totals to files 'totals'`"],
        ),
        ([("7 days", "30 days")], ["store rates: limits retention was 7 days, is 30 days (line 2)"]),
        ([("5 minutes", "9 minutes")], ["store priced#waiting: limits grace was 5 minutes, is 9 minutes (line 7)"]),
        (
            [("(path = 'final', format = 'json')", "(path = 'final', format = 'parquet')")],
            ["sink final to files 'final': limits format was 'json', is 'parquet' (line 14)"],
        ),
        (
            [("(path = 'final', format = 'json')", "(path = 'final', format = 'json', target_size = '1 MB')")],
            ["sink final to files 'final': limits target_size was not given, is '1 MB' (line 14)"],
        ),
        (
            [("sink once to console ();", "sink once to console ();\nsink large to noop ();")],
            ["sink large to noop: new"],
        ),
        ([("sink once to console ();", "")], ["sink once to console: dropped"]),
        (
            [("(path = 'payments', format = 'json')",
              "(path = 'payments', format = 'json', missing_columns = 'null', 'maxFilesPerTrigger' = '2')")],
            ["source payments: keep missing_columns was not given, is 'null'; "
             "maxFilesPerTrigger was not given, is '2' (line 4)"],
        ),
        ([("amount >= 100", "100 <= amount and (amount >= 100)")], []),
        (
            [("stream once =", "stream first ="), ("sink once", "sink first")],
            ["store first#passed: renamed was `once#passed`", "sink first to console: renamed was `once to console`"],
        ),
    ],
)  # fmt: skip
def test_a_checkpoint_goes_on(changes: list[tuple[str, str]], words: list[str]) -> None:
    found = in_place(plan(), plan(*changes))
    assert found is not None
    assert [in_words(change) for change in found] == words


def test_the_options_of_a_kafka_source_are_not_its_meaning() -> None:
    text = """stream s (k string) from kafka (bootstrap_servers = 'a:1', topic = 't', format = 'json') key k;
    table c = aggregate s group by k select count(*) as n;
    sink c to noop ();"""
    was = compile_topology(text)
    options = "bootstrap_servers = 'b:1,c:1', 'failOnDataLoss' = 'false', 'maxOffsetsPerTrigger' = '9'"
    (found,) = in_place(was, compile_topology(text.replace("bootstrap_servers = 'a:1'", options))) or ()
    assert in_words(found) == (
        "source s: keep bootstrap_servers was 'a:1', is 'b:1,c:1'; failOnDataLoss was not given, is 'false'; "
        "maxOffsetsPerTrigger was not given, is '9' (line 1)"
    )
    assert in_place(was, compile_topology(text.replace("topic = 't'", "topic = 'u'"))) is None


@pytest.mark.parametrize(
    "changes",
    [
        [(">= 100", "> 100")],  # another meaning
        [("(id bigint, account", "(id bigint, note string, account")],  # other rows
        [("path = 'payments'", "path = 'elsewhere'")],  # a source somewhere else
        [("stream payments", "stream paid"), ("filter payments", "filter paid")],  # sources are known by their names
        [("'payments', format = 'json'", "'payments', format = 'json', time_zone = 'Asia/Tokyo'"),
         ("at bigint)\n  from files (path = 'payments'", "at timestamp)\n  from files (path = 'payments'")],
        [("grace = 10 minutes", "grace = 5 minutes")],  # what the `suppress` holds has to be looked for
        [(" grace 5 minutes", "")],  # waiting records have to be joined
        [("stream once =", "stream more = filter large where amount > 7;\nstream once ="),
         ("sink once", "sink more to noop ();\nsink once")],  # a node more before stores
        [("sink totals to files (path = 'totals', format = 'json');\n", ""),
         ("sink once to console ();", "sink totals to files (path = 'totals', format = 'json');")],  # another number
        [("materialize versioned (retention = 7 days)", "materialize unversioned"), (" grace 5 minutes", "")],
    ],
)  # fmt: skip
def test_a_checkpoint_does_not_go_on(changes: list[tuple[str, str]]) -> None:
    assert in_place(plan(), plan(*changes)) is None


@pytest.mark.parametrize("clocks", [("records", "input"), ("input", "records")])
def test_another_clock_needs_an_upgrade(clocks: tuple[Clock, Clock]) -> None:
    was, now = (replace(plan(), clock=clock) for clock in clocks)
    assert in_place(was, now) is None


@pytest.mark.parametrize(
    ("change", "goes_on"),
    [
        (("5 minutes", "9 minutes"), False),  # windows behind it would tell the time in another way
        (("within 1 hour;", "within 1 hour grace 1 day;"), True),  # it holds nothing back
        (("large", "big"), True),
    ],
)
def test_with_the_clock_of_the_input_no_node_may_get_behind_in_place(change: tuple[str, str], goes_on: bool) -> None:
    was, now = (replace(one, clock="input") for one in (plan(), plan(change)))
    assert (in_place(was, now) is not None) is goes_on
    assert in_place(plan(), plan(change)) is not None


def test_names_under_which_records_wait() -> None:
    assert not renames_what_waits(plan(), plan(("totals =", "sums ="), ("sink totals", "sink sums")))
    assert not renames_what_waits(plan(), plan(("large", "big")))  # what it gives gets another key first
    assert renames_what_waits(plan(), plan(("stream once =", "stream first ="), ("sink once", "sink first")))


def test_no_branch_of_a_clock_may_get_behind_in_place() -> None:
    text = """
    stream a (k string, at timestamp) from memory () key k timestamp at reorder within 9 minutes;
    stream b (k string, at timestamp) from memory () key k timestamp at reorder within 5 minutes;
    stream c (k string, at timestamp) from memory () key k timestamp at;
    stream m = merge a, {of};
    table counts = aggregate m group by k window tumbling (size = 1 hour) emit final select count(*) as n;
    sink counts to console ();
    sink b to console ();
    """
    met, apart = (text.format(of=of) for of in "bc")
    longer = ("5 minutes", "6 minutes")  # of all paths to `counts`, that of 9 minutes stays the longest
    assert in_place(compile_topology(met), compile_topology(met.replace(*longer))) is None
    assert in_place(compile_topology(apart), compile_topology(apart.replace(*longer))) is not None
