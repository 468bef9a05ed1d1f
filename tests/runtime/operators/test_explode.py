"""`explode`: a record for each element of an array, or for each entry of a map, in its order."""

from __future__ import annotations

import pytest

from vsc.testing import TopologyTestDriver

TEXT = """stream s (k string, counts map<string, int>) from memory () key k;
stream entries = explode s by counts as entry;
stream words = map entries select entry.key as word, entry.value as many;"""


def test_the_entries_of_a_map() -> None:
    with TopologyTestDriver(TEXT) as driver:
        driver.pipe("s", {"k": "a", "counts": {"x": 1, "b": None}}, timestamp=5)
        driver.pipe("s", {"k": "b", "counts": {}}, timestamp=6)
        driver.pipe("s", {"k": "c", "counts": None}, timestamp=7)
        driver.pipe("s", {"k": "d", "counts": {"": 2}}, timestamp=8)
        found = [(r.key["k"], r.value["word"], r.value["many"], r.timestamp) for r in driver.read("words") if r.value]
    assert found == [("a", "x", 1, 5), ("a", "b", None, 5), ("d", "", 2, 8)]


@pytest.mark.parametrize(
    ("names", "values"),
    [
        ("(nth, line)", [{"n": 7, "nth": 0, "line": "x"}, {"n": 7, "nth": 1, "line": "y"}]),
        ("(n, items)", [{"n": 0, "items": "x"}, {"n": 1, "items": "y"}]),
        ("(line, n)", [{"n": "x", "line": 0}, {"n": "y", "line": 1}]),
    ],
)
def test_the_positions_of_an_array(names: str, values: list[dict[str, object]]) -> None:
    text = f"""stream s (k string, n bigint, items array<string>) from memory () key k;
    stream lines = explode s by items as {names};"""
    with TopologyTestDriver(text) as driver:
        for at, items in enumerate((["x", "y"], [], None, [None])):
            driver.pipe("s", {"k": "a", "n": 7, "items": items}, timestamp=at)
        found = [(record.timestamp, record.value or {}) for record in driver.read("lines")]
    assert [(at, {name: row[name] for name in values[0]}) for at, row in found[:2]] == [(0, row) for row in values]
    ((at, last),) = found[2:]
    position, element = names.strip("()").split(", ")
    assert (at, last[position], last[element]) == (3, 0, None)
