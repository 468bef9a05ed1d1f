"""A window is forgotten at a moment: what asks for it later in the same batch does not find it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.oracle import Stores
from tests.oracle.epochs import EpochRow
from tests.oracle.playing import difference, oracle, shipped
from tests.runtime.operators.carry.carrying import compiled, epoch, run
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.operators.aggregate.groups.state import AggregateState

MOVING = ["sliding (difference = 10 ms, grace = 25 ms)", "session (gap = 10 ms, grace = 25 ms)"]
FIXED = [
    "tumbling (size = 10 ms, grace = 25 ms)",
    "hopping (size = 10 ms, advance = 4 ms, grace = 0 ms)",
    "hopping (size = 10 ms, advance = 4 ms, offset = 3 ms, grace = 0 ms)",
]


def plan(window: str, final: bool) -> Plan:
    """`seen` reads the windows directly, and by a way through another partition, which takes longer."""
    return compile_topology(f"""
    table other (k string, j bigint, n bigint, at bigint) from memory () key k, j timestamp at
      materialize unversioned;
    stream rows (k bigint, n bigint, at bigint) from memory () key k timestamp at;
    table windows = aggregate rows group by k window {window} {"emit final" if final else ""}
      select max(n) as most materialize unversioned;
    table around = left join windows as l with other as r on 'a', l.k select cast(r.n as double) as n
      materialize unversioned;
    table seen = left join around as l with windows as r select r.most as most materialize unversioned;
    sink seen to memory ();""")


def row(number: int, time: int, key: int = 2) -> EpochRow:
    return EpochRow("rows", "p", number, {"k": key, "n": number, "at": time}, time)


def both(found: Plan, epochs: list[list[EpochRow]], partitions: int) -> Any:
    names = [node.name for node in found.nodes]
    expected = oracle(found, epochs, names, partitions=partitions)
    given = shipped(found, epochs, names, partitions=partitions)
    assert difference(given, expected, partitions == 1) == ""
    return given


@pytest.mark.parametrize("together", [True, False])
def test_a_window_forgotten_as_it_closes_is_not_found_by_what_comes_later(together: bool) -> None:
    rows = [row(7, 5), row(8, 57)]
    seen = both(plan(MOVING[0], final=True), [rows] if together else [[one] for one in rows], 1).outcome["seen"]
    assert sorted((time, values) for _, time, values in seen) == [(5, "(None,)"), (57, "(8,)"), (57, "(None,)")]


@pytest.mark.parametrize("final", ["emit final ", ""])
@pytest.mark.parametrize("window", ["tumbling (size = 10 ms)", *MOVING])
def test_windows_that_a_reader_of_another_source_asks_for_late_are_forgotten_too(window: str, final: str) -> None:
    asked = compiled(f"""
    stream s (k string, v bigint, at bigint) from memory () key k timestamp at;
    stream o (k string, x bigint, at bigint) from memory () key k timestamp at;
    table w = aggregate s group by k window {window} {final}select count(*) as n;
    stream j = join o with w on o.k, timestamp_millis(0), timestamp_millis(0) select x, n;""")
    stores, kept = Stores(), []
    windows = [("s", "a", 1, time) for time in range(0, 1000, 50)]
    for at, rows in enumerate([windows, [("o", "a", 1, 2000)], [("o", "a", 1, 2001)], [("s", "a", 1, 3000)]]):
        run(asked, [epoch(asked, rows, 30 * at)], stores)
        kept.append(sum(1 for _ in stores(1, 0).scan(b"", None)))
    assert kept[0] == kept[1] > 40  # the reader may still ask for all of them
    assert kept[-1] < 12


@pytest.mark.parametrize("final", ["emit final ", ""])
def test_windows_that_begin_after_all_known_ones_are_not_looked_for(
    final: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = compiled(f"""
    stream s (k string, v bigint, at bigint) from memory () key k timestamp at;
    table w = aggregate s group by k window hopping (size = 10 ms, advance = 5 ms, grace = 20 ms)
      {final}select count(*) as n;""")
    stores, read = Stores(), AggregateState.get_many
    asked: list[list[int]] = []

    def noting(state: AggregateState, groups: list[bytes]) -> list[bytes | None]:
        asked.append([group[-1] for group in groups])
        return read(state, groups)

    monkeypatch.setattr(AggregateState, "get_many", noting)
    run(plan, [epoch(plan, [("s", "a", 1, 7), ("s", "b", 1, 22)])], stores)
    later = [("s", "a", 1, 8), ("s", "b", 1, 12), ("s", "b", 1, 26), ("s", "b", 1, 27)]
    sent = run(plan, [epoch(plan, later, 2)], stores)
    assert asked == [[], [0, 5, 5, 10, 20]]
    if not final:
        counts = [values for rows in sent["w"].values() for _, values in rows]
        assert sorted(counts) == ["(1,)"] * 3 + ["(2,)"] * 4 + ["(3,)"]


@pytest.mark.slow
@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("window", [*MOVING, *FIXED])
@pytest.mark.parametrize("seed", range(4))
def test_windows_are_forgotten_alike_however_rows_are_cut(window: str, final: bool, seed: int) -> None:
    draw = random.Random(seed)
    times = [draw.randrange(0, 30) + 25 * (i // 4) for i in range(24)]
    rows = [row(i, time, draw.randrange(3)) for i, time in enumerate(times)]
    cut = draw.randrange(1, 24)
    found = plan(window, final)
    for epochs in ([rows], [rows[:cut], rows[cut:]]):
        both(found, epochs, 1 + seed % 2)
