"""`suppress` on whole columns against record by record: what comes out, what is counted, what is held."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import difference, oracle, shipped
from tests.oracle.epochs import EpochRow
from vsc.compiler import compile_topology
from vsc.testing import TopologyTestDriver

STREAM = "stream s (k string, v bigint, at bigint) from memory () key k timestamp at;"
TABLE = "table t (k string, v bigint, at bigint, gone boolean) from memory () key k timestamp at delete when gone"
WINDOWS = (
    STREAM
    + """
table w = aggregate s group by k window tumbling (size = 10 ms, grace = 3 ms) select count(*) as n, sum(v) as v;
table f = filter w where v % 2 = 0;
"""
)
TOPOLOGIES = {
    "closes": WINDOWS + "table o = suppress f until window closes CLAUSE;",
    "closes, kept": WINDOWS + "table x = suppress f until window closes CLAUSE; table o = materialize x;",
    "limit": TABLE + "; table o = suppress t until time limit 4 ms CLAUSE;",
    "limit, kept": TABLE + """; table x = suppress t until time limit 4 ms CLAUSE;
        table o = materialize x versioned (retention = 9 ms);""",
    "limit, of no time": TABLE + "; table o = suppress t until time limit 0 ms CLAUSE;",
    "aggregated": TABLE + """ materialize; table x = suppress t until time limit 4 ms CLAUSE;
        table o = aggregate x group by v select count(*) as n;""",
    "looked into": TABLE + " materialize;" + STREAM + """
        table x = suppress t until time limit 4 ms CLAUSE; stream o = left join s with x select x.v as w;""",
    "twice": TABLE + """ materialize; table a = suppress t until time limit 3 ms CLAUSE;
        table b = suppress a until time limit 3 ms CLAUSE;
        table o = outer join a as l with b as r select l.v as l, r.v as r;""",
}  # fmt: skip
BOUNDS = ("", "(max_records = 2, when_full = 'emit')", "(max_bytes = 90, when_full = 'emit')", "(max_records = 1000)")
KEYS = ["a", "a\0", "b", "", "ä"]


def rows(found: list[tuple[str, str, int | None, int, bool]]) -> list[EpochRow]:
    return [
        EpochRow(source, "", offset, {"k": k, "v": v, "at": at, **({"gone": gone} if source == "t" else {})}, at)
        for offset, (source, k, v, at, gone) in enumerate(found)
    ]


@st.composite
def histories(draw: st.DrawFn, sources: list[str]) -> list[list[EpochRow]]:
    value, step = st.none() | st.integers(0, 5), st.integers(-4, 9)
    one = st.tuples(st.sampled_from(sources), st.sampled_from(KEYS), value, step, st.booleans())
    found, clock = [], 0
    for source, k, v, moved, gone in draw(st.lists(one, min_size=1, max_size=60)):
        found.append((source, k, v, max(0, clock + moved), gone))
        clock = max(clock, clock + moved)
    every = rows(found)
    marks = sorted({0, len(every), *draw(st.lists(st.integers(0, len(every)), max_size=3))})
    return [every[a:b] for a, b in pairwise(marks)]


@pytest.mark.slow
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("form", TOPOLOGIES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_whole_columns_hold_back_what_records_do(form: str, bounds: str, data: st.DataObject) -> None:
    if form.startswith("closes") and "emit" in bounds:
        bounds = "(max_bytes = 1000000, when_full = 'fail')"
    text = TOPOLOGIES[form].replace("CLAUSE", bounds)
    plan = compile_topology(f"{text} sink o to memory ();", path="suppress.vdsl")
    epochs = data.draw(histories([name for name in ("s", "t") if f" {name} (" in text]))
    assert not difference(shipped(plan, epochs, ["o"]), oracle(plan, epochs, ["o"]), in_sequence=True)


@pytest.mark.parametrize("bounds", ["", "(max_records = 1000)"])
def test_what_comes_out_earlier_at_one_event_sees_the_rest_held(bounds: str) -> None:
    # At the last row `a` emits k3, then k2. At k3 `b` emits k2, which meets the one that `a` still hides.
    plan = compile_topology(
        TOPOLOGIES["twice"].replace("CLAUSE", bounds) + " sink o to memory ();", path="suppress.vdsl"
    )
    changes = [("k2", 1, 0), ("k3", 2, 10), ("k2", 3, 12), ("k3", 4, 20)]
    epoch = rows([("t", k, v, at, False) for k, v, at in changes])
    whole, single = shipped(plan, [epoch], ["o"]), oracle(plan, [epoch], ["o"])
    assert ("('k2',)", 0, "(1, 1)") in whole.outcome["o"]
    assert whole.outcome == single.outcome


@pytest.mark.parametrize("emit", ["emit final", "emit changes"])
@pytest.mark.parametrize(
    ("window", "last"),
    [
        ("session (gap = 3 ms)", [("a", 48, 1), ("b", 48, 2)]),
        ("sliding (difference = 3 ms, grace = 3 ms)", [("a", 48, 1), ("b", 45, 2)]),
    ],
)
def test_what_a_record_may_still_change_is_not_final(window: str, last: list[tuple[str, int, int]], emit: str) -> None:
    """At 48 what ends at 45 may still change, whatever came at 48 before (D31)."""
    name, late = ("w" if emit == "emit final" else "o"), 48 if "session" in window else 45
    text = f"""{STREAM}
        table w = aggregate s group by k window {window} {emit} select count(*) as n;
        table o = suppress w until window closes;
        sink {name} to memory ();"""
    with TopologyTestDriver(text) as driver:
        for key, at in (("b", 45), ("a", 48), ("b", late), ("a", 90)):
            driver.pipe("s", {"k": key, "v": 1, "at": at})
        read = driver.read(name)
    found = [(r.key["k"], round(r.key["window_end"].timestamp() * 1000), *(r.value or {}).values()) for r in read]
    assert sorted(found) == last
