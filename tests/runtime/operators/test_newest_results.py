"""The newest row of a versioned result is the result of the newest rows (D33), in whatever order these came."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.runtime.operators.driving import RECORDS
from vsc.testing import TopologyTestDriver

VERSIONED = "versioned (retention = 1 hour)"
KEYS = "pqrst"
PAIR = "select a.v as x, b.v as y"

Rows = Mapping[str, Mapping[str, Any]]
"""The newest row of each key."""
Made = dict[str, tuple[Any, ...]]
"""The result's newest rows."""


def _paired(mode: str) -> Callable[[Rows, Rows], Made]:
    def made(a: Rows, b: Rows) -> Made:
        keys = {"": a.keys() & b.keys(), "left ": a.keys(), "outer ": a.keys() | b.keys()}[mode]
        return {k: (a[k]["v"] if k in a else None, b[k]["v"] if k in b else None) for k in keys}

    return made


def _referring(mode: str) -> Callable[[Rows, Rows], Made]:
    def made(a: Rows, b: Rows) -> Made:
        return {
            k: (row["v"], b[row["g"]]["v"] if row["g"] in b else None) for k, row in a.items() if mode or row["g"] in b
        }

    return made


def _grouped(a: Rows, b: Rows) -> Made:
    groups: dict[str, list[int]] = defaultdict(list)
    for row in a.values():
        groups[row["g"]].append(row["v"])
    return {g: (len(vs), sum(vs)) for g, vs in groups.items()}


SHAPES: dict[str, tuple[str, Callable[[Rows, Rows], Made]]] = {
    **{f"{mode}join": (f"{mode}join a with b {PAIR}", _paired(mode)) for mode in ("", "left ", "outer ")},
    **{f"{mode}foreign": (f"{mode}join a with b on g {PAIR}", _referring(mode)) for mode in ("", "left ")},
    "aggregate": ("aggregate a group by g select count(*) as x, sum(v) as y", _grouped),
}  # fmt: skip
PLACES = {
    "own": "table r = {made} materialize {versioned};",
    "behind": "table j = {made}; table r = materialize j {versioned};",
    "mapped": "table j = {made}; table f = filter j where true; table r = map f select x, y materialize {versioned};",
}


def _rows(chance: random.Random, in_order: bool) -> Iterator[tuple[str, str, dict[str, Any] | None, int]]:
    """Source, key, row (None: deleted) and time. In order: of each key, while keys are apart."""
    clock: dict[tuple[str, str], int] = defaultdict(int)
    for number in range(50):
        source, key = chance.choice("ab"), chance.choice(KEYS)
        clock[source, key] += chance.randint(1, 20)
        at = clock[source, key] if in_order else chance.randint(1, 100)
        gone = chance.random() < 0.2
        yield source, key, None if gone else {"g": chance.choice(KEYS), "v": number}, at


def _newest(rows: list[tuple[str, str, dict[str, Any] | None, int]], source: str, by_time: bool) -> Rows:
    found: dict[str, tuple[int, dict[str, Any] | None]] = {}
    for of, key, row, at in rows:
        if of == source and (not by_time or at >= found.get(key, (-1, None))[0]):
            found[key] = at, row
    return {key: row for key, (_, row) in found.items() if row is not None}


@pytest.mark.parametrize(
    ("shape", "place", "seed"),
    [
        pytest.param(shape, place, seed, marks=[pytest.mark.slow] if seed or place != "own" else [])
        for shape in SHAPES for place in PLACES for seed in range(3)
    ],
)  # fmt: skip
def test_the_newest_row_is_the_result_of_the_newest_rows(shape: str, place: str, seed: int) -> None:
    chance = random.Random(f"{shape} {place} {seed}")
    text, expected = SHAPES[shape]
    by_records = "foreign" not in shape and chance.random() < 0.3
    versioned = {source: chance.random() < 0.7 for source in "ab"}
    tables = [
        f"table {source} (k string, g string, v bigint, at bigint) from memory () key k timestamp at "
        f"{f'materialize {VERSIONED}' if by_time else ''};"
        for source, by_time in versioned.items()
    ]
    key = "g" if shape == "aggregate" else "k"
    asking = f"stream s ({key} string, at bigint) from memory () key {key} timestamp at;"
    made = PLACES[place].format(made=text, versioned=VERSIONED)
    rows = list(_rows(chance, chance.random() < 0.5))
    with TopologyTestDriver(
        f"{RECORDS if by_records else ''}{' '.join(tables)} {made} {asking} stream n = join s with r select x, y;",
        partitions=chance.choice((1, 3)),
    ) as driver:
        for source, name, row, at in rows:
            if row is None:
                driver.delete(source, {"k": name}, timestamp=at)
            else:
                driver.pipe(source, {"k": name, **row, "at": at})
        stored = {name: found for name in KEYS if (found := driver.store("r").get({key: name})) is not None}
        for name in KEYS:
            driver.pipe("s", {key: name, "at": 1000})
        asked = {r.key[key]: (r.value["x"], r.value["y"]) for r in driver.read("n") if r.value is not None}
        sent = {r.key[key]: r.value and (r.value["x"], r.value["y"]) for r in driver.read("r")}
    right = expected(_newest(rows, "a", versioned["a"]), _newest(rows, "b", versioned["b"]))
    assert {name: (row.value["x"], row.value["y"]) for name, row in stored.items()} == right
    assert asked == right
    assert {name: row for name, row in sent.items() if row is not None} == right


MIXED = """
topology mixed (clock = '{clock}');
table a (k string, x int, at bigint) from memory () key k timestamp at materialize versioned (retention = 1 hour);
table b (k string, y int, at bigint) from memory () key k timestamp at;
table r = join a with b select x, y materialize versioned (retention = {retention} ms);
"""


@pytest.mark.parametrize(
    ("clock", "retention", "sent", "dropped"),
    [
        ("input", 20, [(1, 10), (2, 30), (3, 30)], {}),
        ("records", 30, [(1, 10), (2, 30), (3, 7)], {}),
        ("records", 20, [(1, 10), (2, 30)], {"expired": 1}),
    ],
)
def test_the_time_that_is_sent_is_as_recorded_by_the_clock_of_records(
    clock: str, retention: int, sent: list[tuple[int, int]], dropped: dict[str, int]
) -> None:
    """The store alone takes the result of a late row of an unversioned table as its key's newest."""
    with TopologyTestDriver(MIXED.format(clock=clock, retention=retention)) as driver:
        driver.pipe("a", {"k": "k", "x": 0, "at": 1})
        for y, at in ((1, 10), (2, 30), (3, 7)):
            driver.pipe("b", {"k": "k", "y": y, "at": at})
        found = driver.read("r")
        assert [(None if one.value is None else one.value["y"], one.timestamp) for one in found] == sent
        newest = driver.store("r").get({"k": "k"})
        assert newest is not None and newest.value["y"] == sent[-1][0]
        assert driver.metrics()["dropped_records"].get("r", {}) == dropped
