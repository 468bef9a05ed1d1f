"""Why Spark cannot read a record of a JSON file: it marks the record, and does not say which column it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vsc.plan.nodes import Column
from vsc.runtime.expressions.json_text import is_read

__all__ = ["json_problem"]

_SHOWN = 80


def json_problem(record: str, columns: Sequence[Column]) -> str:
    """What is wrong with a record that Spark could not read as `columns`."""
    try:
        found: Any = json.loads(record)
        members = found if isinstance(found, dict) else {}
        texts = {name: json.dumps(value, ensure_ascii=False) for name, value in members.items()}
    except (ValueError, RecursionError):
        return f"{_shown(record)} is not JSON"
    if not isinstance(found, dict):
        return f"{_shown(record)} is not a JSON object"
    for column in columns:
        text = texts.get(column.name, "null")
        if not is_read(text, column.type):
            value = found[column.name]
            held = _shown(value if isinstance(value, str) else text)
            return f"column '{column.name}' ({column.type}) cannot hold {held}"
    return f"{_shown(record)} does not fit the declared columns"


def _shown(text: str) -> str:
    """A text of the data in a message: quoted, and cut where it is long."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
