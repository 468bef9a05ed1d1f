"""Values as a scenario file writes them: in reports, and where an expectation is written into a file.

Guarantees: what `written` gives is read back as the same value of the same column.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from vsc.scenario.values import Partial

__all__ = ["fields_written", "record_written", "written"]

_SPECIAL = re.compile(r"[\s,:{}\[\]'\"#&*!|>%@`?=]|^$|^[-+.0-9~<]|^(?:null|true|false)$", re.IGNORECASE)


def fields_written(fields: Mapping[str, Any]) -> str:
    """The entries of a mapping, without the braces."""
    entries = [f"{written(name)}: {written(value)}" for name, value in fields.items()]
    return ", ".join([*entries, "..."] if isinstance(fields, Partial) else entries)


def record_written(fields: Mapping[str, Any], line: str, width: int) -> str:
    """A record on one line, or if that is wider, its fields on lines that begin with `line`."""
    whole = f"{{{fields_written(fields)}}}"
    if len(line) + len(whole) <= width:
        return whole
    return line.join(f"{name}: {written(value)}" for name, value in fields.items())


def written(value: Any) -> str:
    """A value as a scenario file writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value if value.isprintable() and not _SPECIAL.search(value) else _quoted(value)
        case bytes():
            return f"!!binary '{base64.b64encode(value).decode()}'"
        case float() if value != value:
            return ".nan"
        case float() if value in (float("inf"), float("-inf")):
            return ".inf" if value > 0 else "-.inf"
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Mapping():
            return f"{{{fields_written(value)}}}"
        case list():
            return "[" + ", ".join(map(written, value)) + "]"
    return str(value)


def _quoted(value: str) -> str:
    if value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, value)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"
