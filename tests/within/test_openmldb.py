"""Published cases of OpenMLDB (4paradigm/OpenMLDB, Apache License 2.0) over windows of time, as joins of a stream with
itself: `openmldb.json` has their facts, and which are not ours and why. `translate` has made it.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from vsc.testing import TopologyTestDriver

CASES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("openmldb.json").read_text())["ours"]


def _topology(case: dict[str, Any]) -> str:
    columns = ", ".join(f"{name} {type}" for name, type in case["columns"].items())
    items = [f"l.{name} as p{i}" for i, name in enumerate(case["items"])]
    items += [f"{call} as c{i}" for i, call in enumerate(case["calls"])]
    return f"""
    stream s (row_key string, {columns}) from memory () key row_key timestamp {case["time"]};
    stream r = rekey s by {", ".join(f"{key} as k{i}" for i, key in enumerate(case["keys"]))};
    stream o = left join r as l with r as r within (before = {case["before"]} ms)
      {"strictly before" if case["strictly"] else ""} select {", ".join(items)};
    """


def _given(value: Any, type: str) -> Any:
    if value is not None and type == "date":
        return date.fromisoformat(value)
    return value


def _plain(value: Any) -> Any:
    """As the cases write it."""
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if isinstance(value, date):
        return value.isoformat()
    return round(value, 3) if isinstance(value, float) else value


def _sorted(rows: list[list[Any]]) -> list[list[Any]]:
    return sorted(
        ([_plain(value) for value in row] for row in rows), key=lambda row: [(v is None, str(v)) for v in row]
    )


@pytest.mark.quick(6)
@pytest.mark.parametrize("name", CASES)
def test_a_case_of_openmldb(name: str) -> None:
    case = CASES[name]
    with TopologyTestDriver(_topology(case)) as driver:
        for row in case["rows"]:
            values = {column: _given(row[column], type) for column, type in case["columns"].items()}
            driver.pipe("s", {"row_key": "", **values})
        found = [list((record.value or {}).values()) for record in driver.read("o")]
    assert _sorted(found) == _sorted(case["expected"])
