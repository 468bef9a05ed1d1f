"""``vsc test --disorder``: which orders it tries, what depends on them, and how small the report is."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from vsc.cli import main
from vsc.compiler import compile_topology
from vsc.scenario import Scenario, disorder, load
from vsc.scenario.arrivals import Arrangement, Arrivals
from vsc.scenario.tolerance import tolerances

SALES = "stream s (id string, v int, at bigint) from memory () key id timestamp at;\n"
TOTALS = (
    "table t = aggregate s group by id window tumbling (size = 20 ms, grace = 10 ms) emit final\n"
    "  select sum(v) as total;\nsink t to console ();\n"
)
NEWEST = "table n = to_table s materialize unversioned;\nsink n to console ();\n"
STEPS = """\
topology: t.vdsl
scenarios:
  - name: one
    steps:
      - s: [{id: a, v: 1, at: 1}, {id: b, v: 2, at: 3}, {id: b, v: 9, at: 4}, {id: a, v: 3, at: 9}, {id: c, v: 1, at: 30}]
      - s: {id: a, v: 5, at: 12}
      - s: {id: c, v: 7, at: 45}
"""  # noqa: E501


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _scenario(folder: Path, topology: str, steps: str = STEPS) -> Scenario:
    (folder / "t.vdsl").write_text(topology)
    (folder / "a.scenario.yaml").write_text(steps)
    return load("a.scenario.yaml", steps).scenarios[0]


def test_what_graces_allow_changes_nothing(folder: Path) -> None:
    scenario = _scenario(folder, SALES + TOTALS)
    arrivals, chance = Arrivals(scenario), random.Random(1)
    tried = [disorder.other(arrivals, chance) for _ in range(20)]
    assert all(map(arrivals.allows, tried))
    assert len({one.order for one in tried}) > 5
    assert any(one.joined for one in tried) and any(one.restarted for one in tried)
    assert {one.partitions for one in tried} == {1, 2, 3, 4, 5}
    assert disorder.disordered(scenario, 20, 1) is None
    (totals,) = arrivals.results(arrivals.written).values()
    assert [(one[:12], one.partition("value: ")[2]) for one in totals] == [
        ("key: {id: a,", "{total: 4}, timestamp: 9"),
        ("key: {id: b,", "{total: 11}, timestamp: 4"),
        ("key: {id: c,", "{total: 1}, timestamp: 30"),
        ("key: {id: c,", "{total: 7}, timestamp: 45"),
    ]


def test_a_late_row_stays_late_and_one_in_time_in_time(folder: Path) -> None:
    """The row of 12 ms is late, as that of 30 came before it."""
    arrivals = Arrivals(_scenario(folder, SALES + TOTALS))
    assert [one.time for one in arrivals.all] == [1, 3, 4, 9, 30, 12, 45]
    assert arrivals.may_swap(0, 3) and not arrivals.may_swap(4, 5) and not arrivals.may_swap(3, 4)
    swapped = (*arrivals.written.order[:4], 5, 4, 6)
    assert not arrivals.allows(Arrangement(swapped, frozenset(), frozenset(), 1))
    assert arrivals.in_order([4, 5])


def test_the_smallest_order_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _scenario(folder, SALES + TOTALS + NEWEST)
    assert main(["test", ".", "--disorder", "20", "--seed", "7"]) == 1
    out, err = capsys.readouterr()
    assert err == "--disorder 20 --seed 7\n0 passed, 1 failed\n"
    lines = out.splitlines()
    assert lines[:2] == ["./a.scenario.yaml", "  FAILED one"]
    assert lines[2].startswith("    ./a.scenario.yaml:3:5: results depend on the order of arrival, as run ")
    assert lines[3] == "      these rows, in this order, on 1 partition:"
    rows = [line.strip() for line in lines[4:6]]
    first, second = ("v: 9, at: 4", "v: 2, at: 3") if "id: b" in rows[0] else ("v: 3, at: 9", "v: 1, at: 1")
    key = "b" if "id: b" in rows[0] else "a"
    assert rows == [
        f"s: {{id: {key}, {first}}}  # step 1, line 5",
        f"s: {{id: {key}, {second}}}  # step 1, line 5",
    ]
    assert [line.strip() for line in lines[6:]] == [
        "`n`:",
        f"- as written key: {{id: {key}}}, value: {{{first}}}, timestamp: {first[-1]}",
        f"+ reordered  key: {{id: {key}}}, value: {{{second}}}, timestamp: {second[-1]}",
    ]
    assert main(["test", ".", "--disorder", "20", "--seed", "7"]) == 1
    assert capsys.readouterr().out == out


def test_partitions_count_by_kafkas_clock(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No order is at fault: each partition has a clock of its own."""
    _scenario(folder, "topology t (clock = 'records');\n" + SALES + TOTALS)
    assert main(["test", ".", "--disorder", "20", "--seed", "3"]) == 1
    out = capsys.readouterr().out
    assert " partitions:\n" in out and "reordered" in out and "at: 30" in out and "at: 12" in out


def test_a_seed_is_made_and_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _scenario(folder, SALES + TOTALS)
    assert main(["test", ".", "--disorder", "2"]) == 0
    assert capsys.readouterr().err.startswith("--disorder 2 --seed ")
    for wrong in ("0", "x", "1000000"):
        assert main(["test", ".", "--disorder", wrong]) == 2
        assert "a number from 1 to 100000" in capsys.readouterr().err


RATES = (
    "table r (id string, x int, at bigint) from memory () key id timestamp at\n"
    "materialize versioned (retention = 1 s);\n"
)
BOTH = SALES + RATES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SALES + "sink s to console ();", {("s", "s"): 0}),
        (SALES + TOTALS, {("s", "s"): 10}),
        (BOTH + "sink s to console (); sink r to console ();", {("s", "s"): 0, ("s", "r"): None, ("r", "r"): 1000}),
        (
            BOTH + "stream j = join s with r select v, x; sink j to console ();",
            {("s", "s"): 0, ("s", "r"): 0, ("r", "r"): 1000},
        ),
        (
            BOTH + "stream j = join s with r grace 7 ms select v, x; sink j to console ();" + TOTALS,
            {("s", "s"): 7, ("s", "r"): 7, ("r", "r"): 7},
        ),
    ],
)
def test_rows_may_swap_within_every_grace_where_they_meet(
    text: str, expected: dict[tuple[str, str], int | None]
) -> None:
    found = tolerances(compile_topology(text, path="t.vdsl"))
    assert {pair: found[pair] for pair in expected} == expected
    assert all(found[one, other] == found[other, one] for one, other in found)


def test_a_batch_is_as_a_query_merges_it(folder: Path) -> None:
    steps = (
        STEPS[: STEPS.index("      - s:")]
        + """\
      - s: {id: a, v: 1, at: 5}
      - r: {id: a, x: 1, at: 5}
      - r: {id: a, x: 2, at: 6}
      - s: {id: a, v: 1, at: 3}
      - drain: true
"""
    )
    arrivals = Arrivals(_scenario(folder, BOTH + "stream j = join s with r select v, x; sink j to console ();", steps))
    batches = ([0, 1], [1, 0], [1, 2], [1, 2, 3], [2, 3], [0, 2], [0, 2, 3], [3, 4])
    assert [arrivals.in_order(batch) for batch in batches] == [False, True, True, False, False, True, False, False]
    assert not arrivals.may_swap(3, 4)


VERSIONED = "materialize versioned (retention = 1 day)"
GROUPED = "aggregate t group by g"
SAME = {  # what ends the same in every order of these rows
    "a key whose newest row is a tombstone": (
        f"table t {{row}} {VERSIONED};\ntable n = filter t where g <> 'b';\nsink n to console ();\n",
        "{id: x, g: a, at: 1}, {id: x, g: b, at: 5}",
    ),
    "the newest counts": (
        f"table t {{row}} {VERSIONED};\ntable n = map t select g;\nsink n to console ();\n",
        "{id: x, g: a, at: 1}, {id: x, g: b, at: 5}",
    ),
    "an aggregate of a versioned table": (
        f"table t {{row}} {VERSIONED};\ntable n = {GROUPED} select count(*) as c;\nsink n to console ();\n",
        "{id: x, g: a, at: 1}, {id: x, g: b, at: 5}, {id: y, g: a, at: 3}",
    ),
    "sessions": (
        "stream t {row};\ntable n = aggregate t group by g window session (gap = 5 ms, grace = 1 hour) "
        "select count(*) as c;\nsink n to console ();\n",
        "{id: x, g: a, at: 1}, {id: y, g: a, at: 9}, {id: z, g: a, at: 5}",
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_what_ends_the_same_is_the_same(case: str, folder: Path) -> None:
    topology, rows = SAME[case]
    row = "(id string, g string, at bigint) from memory () key id timestamp at"
    steps = f"topology: t.vdsl\nscenarios:\n  - name: one\n    steps:\n      - t: [{rows}]\n"
    assert disorder.disordered(_scenario(folder, topology.format(row=row), steps), 40, 1) is None


def test_two_rows_change_places(folder: Path) -> None:
    steps = STEPS[: STEPS.index("      - s:")] + "      - s: [{id: a, v: 1, at: 1}, {id: a, v: 2, at: 3}]\n"
    scenario = _scenario(folder, SALES + TOTALS, steps)
    arrivals, chance = Arrivals(scenario), random.Random(1)
    assert {disorder.other(arrivals, chance).order for _ in range(20)} == {(0, 1), (1, 0)}
