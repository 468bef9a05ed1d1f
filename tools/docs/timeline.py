"""Draws the first example of docs/time.md as it runs: ``python -m tools.docs.timeline``.

One character is one millisecond of event time, one line is one row of input, in order. The picture goes between the
comments ``timeline`` and ``end``. A test says when it is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tools.docs.operators import DOCS, EXAMPLE, feed
from vsc.plan import Aggregate, Plan, StreamTableJoin, Window
from vsc.plan.clocks import node_clocks
from vsc.testing import Record, TopologyTestDriver

__all__ = ["pages"]

PAGE = DOCS / "time.md"
_PLACE = re.compile(r"^<!-- timeline -->\n.*?^<!-- end -->\n", re.MULTILINE | re.DOTALL)
_LABEL, _WIDTH = 25, 54


def pages() -> dict[Path, str]:
    """The page as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    example = EXAMPLE.search(text)
    assert example is not None
    lines = [line for line in example["input"].splitlines() if line != "drain"]
    picture = "\n".join(line.rstrip() for line in _drawn(example["topology"], example["nodes"].split(", "), lines))
    written = f"<!-- timeline -->\n\n```\n{picture}\n```\n\n<!-- end -->\n"
    return {PAGE: _PLACE.sub(lambda _: written, text)}


def _drawn(topology: str, nodes: list[str], lines: list[str]) -> Iterator[str]:
    """The axis, what the topology says of time, and a line for each row of input with what comes out."""
    with TopologyTestDriver(topology) as driver:
        join, windows = nodes
        grace, hold = _grace(driver.plan, join), node_clocks(driver.plan)[windows].hold
        (stream,) = node_clocks(driver.plan)[join].sources
        window, clock = _window(driver.plan, windows), -1
        yield _line("event time in ms", "".join(f"{time:<10}" for time in range(0, _WIDTH, 10)), "")
        first = "[" + "=" * (window.size - 1) + ")" + "-" * (window.grace - 1) + "x"
        yield _line(f"window of {windows}", first, f"closes at {window.size} + grace {window.grace} of its clock")
        for line in lines:
            feed(driver, line)
            time, taken = int(line.rpartition(", ")[2]), line.startswith(f"{stream}:")
            clock = max(clock, time) if taken else clock
            marks = {clock: "|", clock - hold: ":", **{time + ms: "-" for ms in range(1, grace + 1) if taken}}
            marks |= {time + grace: ">"} if taken else {}
            marks |= {clock - hold: ":"} | {time: "o" if taken else "+"}
            found = [_told(node, record) for node in nodes for record in driver.read(node)]
            yield _line(line, "".join(marks.get(ms, " ") for ms in range(_WIDTH)), ", ".join(found))
        kept = driver.plan.node("prices").store
        assert kept is not None and kept.retention is not None
        seen = " " * (clock - kept.retention) + "<" + "-" * (kept.retention - 1) + "|"
        yield _line("seen by the last row", seen, "retention of prices")


def _line(label: str, drawn: str, told: str) -> str:
    return f"{label:<{_LABEL}}{drawn:<{_WIDTH}} {told}"


def _told(node: str, record: Record) -> str:
    """What has come out: the node, the key, and the time or the start of the window."""
    key, *bounds = record.key.values()
    return f"{node} {key} at {record.timestamp}" if not bounds else f"{node} {key}"


def _grace(plan: Plan, name: str) -> int:
    operation = plan.node(name).operation
    assert isinstance(operation, StreamTableJoin) and operation.grace is not None
    return operation.grace


def _window(plan: Plan, name: str) -> Window:
    operation = plan.node(name).operation
    assert isinstance(operation, Aggregate) and operation.window is not None
    return operation.window


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
