"""Runs the examples on the pages of the operators, of time and of recipes, and writes their tables: ``python -m
tools.docs.operators``.

An example is a topology and, below it, a comment with the records that it is fed::

    <!-- run NODE
    rates: EUR, 1.10, 10
    rates: delete EUR, 30
    drain
    -->

Each line has the values of a source's columns, as declared, or the key and the time of a row to delete. ``run both
NODE`` runs the topology a second time with its stores unversioned. The table goes between the comment and ``<!-- end
-->``: what each record made NODE emit, and what was counted. ``run NODE, NODE`` shows several nodes. A test says when a
table is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from vsc.plan.nodes import Source
from vsc.testing import Record, TopologyTestDriver

__all__ = ["DOCS", "EXAMPLE", "counted", "feed", "pages", "shown"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (*sorted((DOCS / "operators").glob("*.md")), *sorted((DOCS / "recipes").glob("*.md")), DOCS / "time.md")
_YEAR = 366 * 24 * 60 * 60 * 1000
"""Smaller numbers of milliseconds are shown as they are, later ones as a time in UTC."""
EXAMPLE = re.compile(
    r"^```vdsl\n(?P<topology>(?:(?!^```).)*)^```\n\n(?P<comment><!-- run (?P<both>both )?(?P<nodes>\w+(?:, \w+)*)\n"
    r"(?P<input>.*?)-->\n).*?^<!-- end -->\n",
    re.MULTILINE | re.DOTALL,
)


def pages() -> dict[Path, str]:
    """The pages as they should be."""
    return {path: EXAMPLE.sub(_run, path.read_text(encoding="utf-8")) for path in PAGES}


def _run(example: re.Match[str]) -> str:
    topology, nodes, given = example["topology"], example["nodes"].split(", "), example["input"].splitlines()
    runs = {f"`{node}`": (topology, node) for node in nodes}
    if example["both"]:
        unversioned = re.sub(r"versioned \([^)]*\)", "unversioned", topology)
        assert unversioned != topology, f"nothing is versioned:\n{topology}"
        stores = {"versioned": topology, "unversioned": unversioned}
        runs = {f"`{node}`, {kind}": (text, node) for node in nodes for kind, text in stores.items()}
    columns = [list(_answers(text, node, given)) for text, node in runs.values()]
    table = [f"| in | {' | '.join(runs)} |", "|---|" + "---|" * len(runs)]
    table += [
        f"| `{line}` |" + "".join(f" {cell} |" if cell else " |" for cell in cells)
        for line, *cells in zip(given, *columns, strict=True)
    ]
    return f"```vdsl\n{topology}```\n\n{example['comment']}\n" + "\n".join(table) + "\n\n<!-- end -->\n"


def _answers(topology: str, node: str, given: list[str]) -> Iterator[str]:
    with TopologyTestDriver(topology) as driver:
        before: dict[str, int] = {}
        for line in given:
            feed(driver, line)
            now = counted(driver)
            new = [reason for reason, n in now.items() for _ in range(n - before.get(reason, 0))]
            before = now
            found = [f"`{shown(record)}` at {_moment(record.timestamp)}" for record in driver.read(node)]
            yield "<br>".join([*found, *(f"*{reason}*" for reason in new)])


def feed(driver: TopologyTestDriver, line: str) -> None:
    """Feeds what a line of an example says."""
    if line == "drain":
        driver.drain()
        return
    source, _, text = line.partition(": ")
    deleted = text.startswith("delete ")
    values: list[Any] = yaml.safe_load(f"[{text.removeprefix('delete ')}]")
    if deleted:
        *key, time = values
        names = [column.name for column in driver.plan.node(source).schema.key]
        driver.delete(source, dict(zip(names, key, strict=True)), time)
        return
    operation = driver.plan.node(source).operation
    assert isinstance(operation, Source)
    driver.pipe(source, dict(zip((c.name for c in operation.columns), values, strict=True)))


def counted(driver: TopologyTestDriver) -> dict[str, int]:
    """What was dropped or not found until now, by reason."""
    metrics = driver.metrics()
    found: dict[str, int] = {}
    for group in ("dropped_records", "missed_lookups"):
        for counts in metrics.get(group, {}).values():
            assert isinstance(counts, dict)
            for reason, n in counts.items():
                found[reason] = found.get(reason, 0) + n
    return found


def shown(record: Record) -> str:
    """A record as ``(key) value``."""
    key = ", ".join(map(_text, record.key.values()))
    value = "removed" if record.value is None else ", ".join(map(_text, record.value.values()))
    return f"({key}) {value}".removeprefix("() ")


def _text(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, datetime):
        return _moment(round(value.timestamp() * 1000))
    return str(value)


def _moment(ms: int) -> str:
    if ms < _YEAR:
        return str(ms)
    return datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None).isoformat(" ").removesuffix(":00")


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
