"""How nodes tell the time with the input's clock: whose clock it is, how far behind, and which stages wait for it."""

from __future__ import annotations

import dataclasses

import pytest

from vsc.compiler.driver import compile_topology
from vsc.plan import Plan, StreamTableJoin, Window
from vsc.plan.clocks import Branch, NodeClock, WindowEnds, moments_due, node_clocks, stepping

SOURCES = """
stream sales (sku string, country string, n int) from memory () key sku;
stream returns (sku string, country string, n int) from memory () key sku;
table prices (sku string, price double) from memory () key sku materialize versioned (retention = 7 days);
global table names (country string, name string) from memory () key country;
"""
HOUR = 3_600_000


def _plan(text: str) -> Plan:
    return dataclasses.replace(compile_topology(SOURCES + text), clock="input")


def _clock(text: str, name: str) -> tuple[frozenset[str], int]:
    clock = node_clocks(_plan(text))[name]
    return clock.sources, clock.hold


def _of(source: str, holds: int = 0) -> NodeClock:
    sources = frozenset({source})
    return NodeClock(sources, (Branch(sources, 0),), holds)


def test_a_join_with_a_table_goes_by_the_stream_and_holds_nothing_back_from_itself() -> None:
    clocks = node_clocks(_plan("stream j = left join sales with prices grace 6 hours select n; sink j to memory ();"))
    assert clocks["sales"] == _of("sales")
    assert clocks["prices"] == _of("prices")
    assert clocks["j"] == _of("sales", 6 * HOUR)


def test_a_stage_has_to_know_all_steps_of_a_table_whose_rows_expire_and_nothing_is_held_back() -> None:
    text = "table t = to_table sales materialize unversioned (expire = 1 hour); sink t to memory ();"
    plan = _plan(text)
    assert node_clocks(plan)["t"] == _of("sales")
    assert stepping(plan) == (frozenset(), frozenset({"sales"}))
    assert (moments_due(plan)["sales"], moments_due(plan)["returns"]) == (None, frozenset())
    assert set(stepping(_plan(text.replace(" (expire = 1 hour)", "")))) == {frozenset()}


def test_a_join_that_counts_late_versions_has_to_know_all_steps_of_its_stream() -> None:
    plan = _plan("stream j = left join sales with prices select n; sink j to memory ();")
    assert stepping(plan) == (frozenset(), frozenset({"sales"}))
    assert (moments_due(plan)["sales"], moments_due(plan)["prices"]) == (None, frozenset())
    join = plan.node("j").operation
    assert isinstance(join, StreamTableJoin)
    newest = dataclasses.replace(join, as_of=False)
    nodes = tuple(dataclasses.replace(n, operation=newest) if n.name == "j" else n for n in plan.nodes)
    assert set(stepping(dataclasses.replace(plan, nodes=nodes))) == {frozenset()}


def test_what_comes_after_a_join_with_grace_is_behind_by_the_grace_and_a_global_table_adds_nothing() -> None:
    text = """
    stream j = left join sales with prices grace 6 hours select country, n;
    stream g = join j with names on country select n, names.name;
    table t = aggregate g group by name window tumbling (size = 1 day, grace = 1 hour) select sum(n) as n;
    sink t to memory ();
    """
    assert _clock(text, "t") == (frozenset({"sales"}), 6 * HOUR)


def test_where_branches_meet_the_longest_hold_counts_and_all_sources() -> None:
    text = """
    stream j = left join sales with prices grace 6 hours select country, n;
    stream both = merge j, returns;
    table t = aggregate both group by country select count(*) as n;
    sink t to memory ();
    """
    assert _clock(text, "both") == (frozenset({"sales", "returns"}), 6 * HOUR)
    assert _clock(text, "t") == (frozenset({"sales", "returns"}), 6 * HOUR)


@pytest.mark.parametrize(
    ("window", "hold"),
    [
        ("tumbling (size = 100 ms, grace = 7 ms) emit final", 107),
        ("hopping (size = 100 ms, advance = 10 ms, grace = 7 ms) emit final", 107),
        ("sliding (difference = 100 ms, grace = 7 ms) emit final", 108),
        ("session (gap = 100 ms, grace = 7 ms) emit final", 108),
        ("tumbling (size = 100 ms, grace = 7 ms)", 0),
    ],
)
def test_final_windows_hold_back_their_length_and_grace(window: str, hold: int) -> None:
    text = f"""
    table t = aggregate sales group by sku window {window} select count(*) as n;
    stream changes = to_stream t;
    sink changes to memory ();
    """
    assert _clock(text, "t")[1] == 0
    assert _clock(text, "changes")[1] == hold


@pytest.mark.parametrize(
    ("window", "hold"),
    [
        ("tumbling (size = 100 ms, grace = 7 ms)", 107),
        ("sliding (difference = 100 ms, grace = 7 ms)", 108),
        ("session (gap = 100 ms, grace = 7 ms)", 108),
    ],
)
def test_suppress_finds_the_window_far_above(window: str, hold: int) -> None:
    text = f"""
    table t = aggregate sales group by sku window {window} select count(*) as n, last(country) as country;
    table big = filter t where n > 2;
    table named = left join big with places on country select big.n, places.n as m;
    table places = aggregate returns group by country select count(*) as n;
    table final = suppress named until window closes;
    table slower = suppress final until time limit 5 ms;
    stream changes = to_stream slower;
    sink changes to memory ();
    """
    assert _clock(text, "final") == (frozenset({"sales", "returns"}), 0)
    assert _clock(text, "slower")[1] == hold
    assert _clock(text, "changes") == (frozenset({"sales", "returns"}), hold + 5)


def test_the_nodes_of_dead_letters_have_no_clock() -> None:
    assert _clock("sink sales to memory (); sink dropped to memory ();", "dropped") == (frozenset(), 0)


def test_only_stages_that_wait_are_told_the_time_of_the_sources_that_they_wait_for() -> None:
    text = """
    stream j = left join sales with prices grace 6 hours select country, n;
    stream both = merge j, returns;
    table t = aggregate both group by country select count(*) as n;
    stream changes = to_stream t;
    table days = aggregate changes group by n window tumbling (size = 1 day) emit final select count(*) as days;
    sink days to memory ();
    """
    plan = _plan(text)
    of = {name: sources for stage, sources in zip(plan.stages, stepping(plan), strict=True) for name in stage.emits}
    assert of["sales"] == frozenset()  # stage 0
    assert of["j"] == frozenset({"sales"})
    assert of["t"] == frozenset()
    assert of["days"] == frozenset({"sales", "returns"})
    assert set(stepping(dataclasses.replace(plan, clock="records"))) == {frozenset()}


def test_windows_are_due_at_regular_moments_and_all_else_at_any() -> None:
    text = """
    stream j = left join sales with prices grace 7 ms select country, n;
    table days = aggregate j group by country window tumbling (size = 100 ms, grace = 5 ms) emit final
    select count(*) as n;
    table hours = aggregate returns group by country window hopping (size = 60 ms, advance = 20 ms, grace = 3 ms)
    select count(*) as n;
    table closed = suppress hours until window closes;
    sink days to memory (); sink closed to memory ();
    """
    due = moments_due(_plan(text))
    assert (due["sales"], due["returns"], due["prices"]) == (
        None,
        frozenset({WindowEnds(Window("hopping", 60, 20, 0), 3)}),
        frozenset(),
    )
    only = _plan(text.replace("left join sales with prices grace 7 ms", "map sales"))
    assert moments_due(only)["sales"] == frozenset({WindowEnds(Window("tumbling", 100, 100, 0), 5)})


def test_a_stage_steps_on_all_sources_of_a_node_that_gets_what_waited_for_fewer() -> None:
    text = """
    stream j = left join sales with prices grace 7 ms select country, n;
    stream both = merge j, returns;
    table counts = aggregate both group by country window tumbling (size = 9 ms) select count(*) as n;
    sink counts to memory ();
    """
    plan = _plan(text)
    assert set().union(*stepping(plan)) == {"sales", "returns"}
    assert moments_due(plan)["returns"] is None
    assert set().union(*stepping(_plan(text.replace("left join sales with prices grace 7 ms", "map sales")))) == set()
    assert set().union(*stepping(_plan(text.replace("window tumbling (size = 9 ms)", "")))) == {"sales"}
