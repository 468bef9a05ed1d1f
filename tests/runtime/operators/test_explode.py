"""`explode` of a map: a record for each entry, in the map's order."""

from __future__ import annotations

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
