"""Short ways to write topologies and to say what came out."""

from __future__ import annotations

from typing import Any

from vsc.testing import TopologyTestDriver

RECORDS = "topology t (clock = 'records');"
STREAM = "stream s (k string, v string) from memory () key k;"
VERSIONED = "table t (k string, v string) from memory () key k materialize versioned (retention = 5 minutes);"
UNVERSIONED = "table t (k string, v string) from memory () key k materialize unversioned;"


def values(driver: TopologyTestDriver, node: str) -> list[Any]:
    """What came out of `node`: (value of the only column or the whole row or None, time)."""
    found: list[Any] = []
    for record in driver.read(node):
        row = record.value
        if row is not None and len(row) == 1:
            (row,) = row.values()
        found.append((row, record.timestamp))
    return found


def rows(driver: TopologyTestDriver, node: str) -> list[tuple[dict[str, Any], dict[str, Any], int]]:
    """The key, the value and the time of all records of `node`, none of which may be a tombstone."""
    found = []
    for record in driver.read(node):
        assert record.value is not None, record
        found.append((record.key, record.value, record.timestamp))
    return found


def put(driver: TopologyTestDriver, source: str, key: str, value: str | None, time: int) -> None:
    """A row, or a record without value."""
    if value is None:
        driver.delete(source, {"k": key}, timestamp=time)
    else:
        driver.pipe(source, {"k": key, "v": value}, timestamp=time)


def dropped(driver: TopologyTestDriver) -> Any:
    return driver.metrics()["dropped_records"]


def missed(driver: TopologyTestDriver) -> Any:
    return driver.metrics()["missed_lookups"]
