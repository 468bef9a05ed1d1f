"""What `make test` shows on this machine: each seam once. The other slow tests are left to `make full`.

A seam is where vsc meets what it does not control, or where its own parts meet only on Spark. The test that shows it
says so: ``@pytest.mark.seam("kafka source")``, or ``seam( first=2)`` for two cases of many. Each other test
that needs a JVM or seconds (`spark`, `slow`) gets the marker `full` by itself, so a new test needs nothing: it makes
`make test` no longer. `tests/architecture/test_seams.py` holds the list against the markers, and against the
connectors. ``python -m tests.seams`` prints which test shows what.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.supported import SEAMS as SUPPORTED
from vsc.plan.connectors import FACTS

__all__ = ["SEAMS", "mark_full", "shown"]

_TESTS = Path(__file__).parent
_ONLY_IN_TESTS = "memory"
SEAMS = (
    *(f"{kind} {role}" for kind, facts in FACTS.items() if kind != _ONLY_IN_TESTS for role in facts.roles),
    "formats of Kafka", "a schema registry",
    "steps without state", "joins of tables, global tables, merge, explode", "a join of streams",
    "a corrected join", "distinct", "a stream in order", "what came before", "rows that expire", "records without key",
    "sources in step", "quiet sources", "own functions",
    "bad records", "dropped records", "failures", "a terminal", "stores",
    "a restart", "a kill", "an upgrade while records wait", "another number of partitions", "a standalone cluster",
    "the README", "vsc init", "recordings of Kafka Streams", "any cut into epochs",
)  # fmt: skip
"""In the order of the table. A connector has two seams, or the one that it can be."""


def mark_full(items: Iterable[pytest.Item]) -> None:
    """Marks what is slow or on Spark, but the cases that show a seam; and those that show what each Spark has to do.

    `make test` leaves out what only each Spark has to show: that is in `tests/supported.py` alone.
    """
    supported = {seam for seams in SUPPORTED.values() for seam in seams}
    cases: Counter[str] = Counter()
    for item in items:
        if item.get_closest_marker("spark") is None and item.get_closest_marker("slow") is None:
            continue
        seam = item.get_closest_marker("seam")
        test = item.nodeid.partition("[")[0]
        cases[test] += 1
        shows = () if seam is None or cases[test] > seam.kwargs.get("first", cases[test]) else seam.args
        if not set(SEAMS).intersection(shows):
            item.add_marker(pytest.mark.full)
        if supported.intersection(shows):
            item.add_marker(pytest.mark.support)


def shown() -> Iterator[tuple[str, str]]:
    """Each seam with a test that shows it, as pytest names it; with its file alone, if the file's cases are marked."""
    for path in sorted(_TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "pytest.mark.seam(" not in text:
            continue
        name = str(path.relative_to(_TESTS.parent))
        for statement in ast.parse(text).body:
            test = getattr(statement, "name", "")
            place = f"{name}::{test}" if test.startswith("test_") else name
            yield from ((seam, place) for seam in _seams(statement))


def _seams(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.seam":
            yield from (ast.literal_eval(argument) for argument in node.args)


if __name__ == "__main__":
    tests = sorted((pair for pair in shown() if pair[0] in SEAMS), key=lambda pair: SEAMS.index(pair[0]))
    width = max(map(len, SEAMS))
    print("\n".join(f"{seam:{width}}  {test}" for seam, test in tests))
