"""Plays recordings of the real Kafka Streams into the test driver and compares step by step."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from vsc.testing import TopologyTestDriver


@dataclass(frozen=True)
class Recording:
    """One file: a topology, the nodes that were watched, and cases, each of them a list of steps."""

    name: str
    topology: str
    observe: tuple[str, ...]
    cases: tuple[dict[str, Any], ...]


def load(path: Path) -> Recording:
    data = json.loads(path.read_text(encoding="utf-8"))
    return Recording(data["name"], data["topology"], tuple(data["observe"]), tuple(data["cases"]))


def play(recording: Recording, case: dict[str, Any], partitions: int = 1) -> None:
    """Fails at the first step that gives other records than the recorded ones, or the first store that answers so."""
    with TopologyTestDriver(recording.topology, partitions=partitions) as driver:
        for number, step in enumerate(case["steps"]):
            _feed(driver, step)
            for node in recording.observe:
                found = [
                    {"key": _recorded(r.key), "value": _recorded(r.value), "timestamp": r.timestamp}
                    for r in driver.read(node)
                ]
                assert found == step["expect"].get(node, []), f"{recording.name}, step {number} ({step}), node {node}"
        for question in case.get("stores", ()):
            answer = driver.store(question["store"]).get(question["key"], as_of=question["as_of"])
            found_row = None
            if answer is not None:
                found_row = {"value": answer.value, "valid_from": answer.valid_from, "valid_to": answer.valid_to}
            assert found_row == question["expect"], f"{recording.name}, {question}"


def _recorded(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """A row as the recordings have it: the bounds of windows in milliseconds."""
    if row is None:
        return None
    return {name: _milliseconds(v) if isinstance(v, datetime) else v for name, v in row.items()}


def _milliseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _feed(driver: TopologyTestDriver, step: dict[str, Any]) -> None:
    if step["value"] is None:
        driver.delete(step["source"], step["key"], timestamp=step["timestamp"])
    else:
        driver.pipe(step["source"], {**step["key"], **step["value"]}, timestamp=step["timestamp"])
