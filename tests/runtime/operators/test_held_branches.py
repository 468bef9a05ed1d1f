"""What is held back by the clock of its own sources meets other sources (D25): whoever came in time is in time there.

The expected results know nothing of clocks: they are what a batch over all rows gives, where every row came in time by
the clock of all sources together.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from tests.oracle.epochs import EpochRow
from tests.random_topologies.partitions import Case
from tests.random_topologies.seeds import seeds
from tests.random_topologies.shrinking import outcome
from vsc.runtime.records import QUIET
from vsc.testing import Record, TopologyTestDriver

COLUMNS = "(id int, k string, at bigint) from memory () key k timestamp at"
WITHIN = 5
SIZE = 10


class Row(NamedTuple):
    source: str
    id: int
    k: str
    at: int


def played(text: str, rows: Sequence[Row], rng: random.Random | None = None) -> TopologyTestDriver:
    """A driver that took these rows, one by one; with `rng` in random epochs and partitions, and with restarts."""
    driver = TopologyTestDriver(text, partitions=rng.choice((1, 3)) if rng else 1)
    left = list(rows)
    while left:
        many = rng.choice((1, 1, 2, 5)) if rng else 1
        with driver.batch():
            for row in left[:many]:
                driver.pipe(row.source, {"id": row.id, "k": row.k, "at": row.at})
        del left[:many]
        if rng and rng.random() < 0.1:
            driver.restart()
    return driver


def final(records: Iterable[Record]) -> dict[Any, tuple[Any, ...]]:
    """The last row of each key; that of a window is its key and start, in ms."""
    found: dict[Any, tuple[Any, ...]] = {}
    for record in records:
        key = tuple(round(p.timestamp() * 1000) if hasattr(p, "timestamp") else p for p in record.key.values())[:2]
        found.pop(key, None)
        if record.value is not None:
            found[key] = tuple(record.value.values())
    return found


MERGED = f"""
stream a {COLUMNS} reorder within {WITHIN} ms;
stream b {COLUMNS};
stream m = merge a, b;
table w = aggregate m group by k window tumbling (size = {SIZE} ms) emit final select collect_list(id) as ids;
sink w to memory ();
"""


@pytest.mark.parametrize("restarted", [False, True])
def test_a_source_that_is_ahead_makes_nothing_late_that_waited_for_its_own(restarted: bool) -> None:
    with TopologyTestDriver(MERGED, partitions=3) as driver:
        for source, id, at in [("a", 1, 3), ("b", 2, 4), ("b", 3, 40), ("a", 4, 30), ("a", 5, 46)]:
            driver.pipe(source, {"id": id, "k": "x", "at": at})
            if restarted:
                driver.restart()
        # what a brings goes on up to 41
        assert final(driver.read("w")) == {("x", 0): ([1, 2],), ("x", 30): ([4],)}
        driver.drain()
        assert final(driver.read("w")) == {("x", 40): ([3, 5],)}
        assert not driver.metrics()["dropped_records"]


@pytest.mark.parametrize("emit", ["emit final", "emit changes"])
@pytest.mark.parametrize("partitions", [1, 4])
def test_a_branch_without_hold_closes_no_window_and_keeps_none_open(emit: str, partitions: int) -> None:
    """By a's clock less its hold, 25, the windows of b's last rows have closed, in all partitions."""
    with TopologyTestDriver(MERGED.replace("emit final", emit), partitions=partitions) as driver:
        for source, id, k, at in [("b", 1, "x", 4), ("a", 2, "y", 30), ("b", 3, "x", 5), ("b", 4, "z", 24)]:
            driver.pipe(source, {"id": id, "k": k, "at": at})
        still_open = {("z", 20): ([4],)} if emit == "emit changes" else {}
        assert final(driver.read("w")) == {("x", 0): ([1],), **still_open}
        assert driver.metrics()["dropped_records"] == {"w": {"window_closed": 1}}


# ---------------------------------------------------------------------------------------- beside a batch over all rows

Check = Callable[[Sequence[Record], Sequence[Row]], None]
PAUSE = 7
"""How far a row may be behind the highest time of all sources: everything that tells the time allows for it."""


def windows(records: Sequence[Record], rows: Sequence[Row]) -> None:
    expected: dict[Any, list[int]] = {}
    for row in rows:
        expected.setdefault((row.k, row.at // SIZE * SIZE), []).append(row.id)
    assert {key: sorted(ids) for key, (ids,) in final(records).items()} == {k: sorted(v) for k, v in expected.items()}


def joined(records: Sequence[Record], rows: Sequence[Row]) -> None:
    left, right = ([row for row in rows if row.source in part] for part in ("a", "bc"))
    expected: list[tuple[int | None, int | None]] = [
        (one.id, two.id) for one in left for two in right if one.k == two.k and abs(one.at - two.at) <= 4
    ]
    met, partners = {one for one, _ in expected}, {two for _, two in expected}
    expected += [(one.id, None) for one in left if one.id not in met]
    expected += [(None, two.id) for two in right if two.id not in partners]
    assert Counter(tuple((record.value or {}).values()) for record in records) == Counter(expected)


def before(records: Sequence[Record], rows: Sequence[Row]) -> None:
    left, right = ([row for row in rows if row.source in part] for part in ("a", "bc"))
    expected = {one.id: sum(two.k == one.k and one.at - 6 <= two.at <= one.at for two in right) for one in left}
    found = [tuple((record.value or {}).values()) for record in records]
    assert sorted(found) == sorted(expected.items())


def of_windows(records: Sequence[Record], rows: Sequence[Row]) -> None:
    counts = [Counter((row.k, row.at // SIZE * SIZE) for row in rows if row.source in part) for part in ("a", "bc")]
    expected = {key: tuple(count.get(key) for count in counts) for key in {*counts[0], *counts[1]}}
    assert final(records) == expected
    assert len(records) == len(expected)  # each is final


TUMBLING = f"window tumbling (size = {SIZE} ms, grace = {PAUSE} ms)"
AFTER: dict[str, tuple[str, Check]] = {
    "final": (f"table out = aggregate m group by k {TUMBLING} emit final select collect_list(id) as ids;", windows),
    "changes": (f"table out = aggregate m group by k {TUMBLING} select collect_list(id) as ids;", windows),
    "suppress": (
        f"table w = aggregate m group by k {TUMBLING} select collect_list(id) as ids;"
        "table out = suppress w until window closes;", windows
    ),
    "reorder": (
        f"stream r = reorder m within {PAUSE} ms;"
        f"table out = aggregate r group by k window tumbling (size = {SIZE} ms) emit final"
        " select collect_list(id) as ids;", windows
    ),
    "twice": (
        f"stream r = left join m with t grace {PAUSE} ms select id;"
        "stream o = map last select id; stream n = merge r, o;"
        f"table out = aggregate n group by k {TUMBLING} emit final select collect_list(id) as ids;", windows
    ),
    "join": (
        f"stream out = outer join x as l with y as r within 4 ms grace {PAUSE} ms select l.id as l, r.id as r;", joined
    ),
    "before": (
        f"stream out = left join x as l with y as r within (before = 6 ms) grace {PAUSE} ms"
        " select l.id as l, count(r.id) as n;", before
    ),
    "windows": (
        f"table wx = aggregate x group by k {TUMBLING} {{emit}} select count(*) as n;"
        f"table wy = aggregate y group by k {TUMBLING} {{emit}} select count(*) as n;"
        "table j = outer join wx with wy select wx.n as x, wy.n as y; table out = suppress j until window closes;"
        "stream changes = to_stream out; table d = aggregate changes group by k window tumbling (size = 20 ms)"
        " emit final select count(*) as n; sink d to memory ();",
        of_windows,
    ),
}  # fmt: skip


def sources(rng: random.Random, held: set[str]) -> Iterator[str]:
    """The statements of a, b and c, of which some are `held`, of their merges, and of a table that is never written."""
    yield f"stream last {COLUMNS}; table t (k string, n int, at bigint) from memory () key k timestamp at"
    yield " materialize versioned (retention = 1 hour);"
    for name in "abc":
        how = rng.choice(("source", "stream", "grace")) if name in held else ""
        yield f"stream {name} {COLUMNS}{f' reorder within {WITHIN} ms' if how == 'source' else ''};"
        yield {
            "stream": f"stream {name}0 = map {name} select id; stream {name}1 = reorder {name}0 within {WITHIN} ms;",
            "grace": f"stream {name}1 = left join {name} with t grace {WITHIN} ms select id;",
        }.get(how, f"stream {name}1 = map {name} select id;")
    yield "stream y = merge b1, c1; stream x = map a1 select id; stream m = merge x, y;"


def rows_behind(rng: random.Random, names: Sequence[str], held: set[str], count: int, most: int) -> list[Row]:
    """Rows at most so far behind the highest time before them; those of a held source at most `WITHIN` behind its."""
    rows: list[Row] = []
    highest: dict[str, int] = {}
    now = 100
    for id in range(count):
        now += rng.choice((0, 0, 1, 3, 12))
        source = rng.choice(names)
        least = max(now - most, highest.get(source, 0) - WITHIN if source in held else 0)
        at = rng.randint(least, max(now, least))
        highest[source] = max(highest.get(source, 0), at)
        now = max(now, *highest.values())
        rows.append(Row(source, id, rng.choice("kl"), at))
    return rows


def drawn(rng: random.Random, what: str, count: int, most: int) -> tuple[str, list[Row]]:
    """A topology, some of whose sources are held back, and rows for it: see `rows_behind`."""
    held = set(rng.sample("abc", rng.choice((1, 2, 3))))
    emit = rng.choice(("emit final", "emit changes"))
    text = "".join(sources(rng, held)) + AFTER[what][0].format(emit=emit) + "sink out to memory ();"
    return text, rows_behind(rng, ("a", "b", "c", *["last"] * (what == "twice")), held, count, most)


def agrees(what: str, seed: int, count: int) -> None:
    rng = random.Random(f"{what} {seed}")
    text, rows = drawn(rng, what, count, PAUSE)
    with played(text, rows, rng) as driver:
        driver.drain()
        AFTER[what][1](list(driver.read("out")), rows)
        assert not driver.metrics()["dropped_records"]


@pytest.mark.parametrize("what", AFTER)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.quick(4)
def test_what_came_in_time_is_there(what: str, seed: int) -> None:
    agrees(what, seed, 25)


@pytest.mark.slow
@pytest.mark.parametrize("what", AFTER)
@pytest.mark.parametrize("seed", seeds("VSC_HELD", 4))
def test_what_came_in_time_is_there_at_length(what: str, seed: int) -> None:
    agrees(what, 1000 + seed, 80)


@pytest.mark.parametrize("seed", seeds("VSC_HELD", 3))
@pytest.mark.quick(1)
@pytest.mark.parametrize("what", ["final", "changes", "suppress", "twice"])
def test_where_rows_are_late_those_in_time_are_there_and_the_others_counted(what: str, seed: int) -> None:
    rng = random.Random(f"late {what} {seed}")
    text, rows = drawn(rng, what, 40, 60)
    with played(text, rows, rng) as driver:
        driver.drain()
        there = {id for (ids,) in final(driver.read("out")).values() for id in ids}
        lost: Any = driver.metrics()["dropped_records"]
    highest = [max(row.at for row in rows[: n + 1]) for n in range(len(rows))]
    assert {row.id for row, now in zip(rows, highest, strict=True) if now - row.at <= PAUSE} <= there
    assert {why for reasons in lost.values() for why in reasons} <= {"window_closed"}
    assert len(there) + sum(sum(reasons.values()) for reasons in lost.values()) == len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("what", AFTER)
@pytest.mark.parametrize("seed", seeds("VSC_HELD", 2))
def test_partitions_cuts_and_restarts_do_not_show(what: str, seed: int) -> None:
    """Nor do steps of quiet sources; and one row at a time gives what the oracle says, in the same order."""
    rng = random.Random(f"cut {what} {seed}")
    text, rows = drawn(rng, what, 25, rng.choice((PAUSE, 30, 60)))
    epochs: list[list[EpochRow]] = [[]]
    for number, row in enumerate(rows):
        epochs[-1].append(EpochRow(row.source, "", number, {"id": row.id, "k": row.k, "at": row.at}, row.at))
        if rng.random() < 0.3:
            epochs.append([])
        if rng.random() < 0.05:
            epochs += [[EpochRow(QUIET, "", 0, {}, max(one.at for one in rows[: number + 1]) + 3)], []]
    many = len(epochs)
    partitions = [rng.randint(2, 6)] * (many // 2) + [rng.randint(1, 6)] * (many - many // 2)
    ends = [rng.random() < 0.05 for _ in epochs]
    assert not outcome(Case(text, epochs, partitions, [rng.random() < 0.4 for _ in epochs], ends))


BEHIND = f"""
stream a {COLUMNS};
stream b {COLUMNS};
table fa = aggregate a group by k window tumbling (size = 10 ms) emit final select count(*) as n;
table fb = aggregate b group by k window tumbling (size = 10 ms, grace = 3 ms) select count(*) as n;
table j = outer join fa with fb select fa.n as x, fb.n as y;
table s = suppress j until window closes;
stream c = to_stream s;
table d = aggregate c group by k window tumbling (size = 20 ms) emit final select count(*) as n;
sink d to memory ();
"""


def test_what_a_branch_has_passed_before_an_epoch_it_does_not_pass_again() -> None:
    """The suppressed row goes on at 243 of b, which a has passed long ago: what is behind takes it for in time."""
    with played(BEHIND, [Row("b", 1, "k", 230), Row("a", 2, "l", 275), Row("b", 3, "l", 277)]) as driver:
        driver.drain()
        assert final(driver.read("d"))["k", 220] == (1,)
        assert not driver.metrics()["dropped_records"]
