"""Writes names, types and durations as a topology does."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from vsc.compiler.parser.tables import load_tables
from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, StructType

__all__ = ["can_be_written", "moment", "roomy", "share", "string", "type_text", "written"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_ROOMY = sorted(
    [n * _SECOND for n in (1, 2, 5, 10, 15, 30)]
    + [n * _MINUTE for n in (1, 2, 5, 10, 15, 20, 30, 45)]
    + [n * _HOUR for n in (1, 2, 3, 4, 6, 8, 12, 18)]
    + [n * _DAY for n in (1, 2, 3, 4, 5, 7, 10, 14, 21, 30, 45, 60, 90, 120, 180, 270, 365)]
)


def can_be_written(name: str) -> bool:
    """Whether a topology can have a column of this name."""
    return bool(name) and not re.search(r"[\n\r]", name) and not name.lower().startswith("_vsc_")


def written(name: str) -> str:
    """A name, in backticks if it needs them or could be taken for a keyword."""
    if _NAME.match(name) and name not in load_tables().words:
        return name
    return "`" + name.replace("`", "``") + "`"


def string(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def type_text(type: DataType) -> str:
    """A type, with the names of its fields as `written` gives them."""
    match type:
        case DecimalType(precision, scale):
            return f"decimal({precision}, {scale})"
        case ArrayType(element):
            return f"array<{type_text(element)}>"
        case MapType(key, value):
            return f"map<{type_text(key)}, {type_text(value)}>"
        case StructType(fields):
            return "struct<" + ", ".join(f"{written(f.name)}: {type_text(f.type)}" for f in fields) + ">"
        case _:
            return str(type)


def moment(millis: int) -> str:
    """A time as ISO text in UTC, with a fraction of a second only if it has one."""
    try:
        found = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return f"{millis} ms since 1970"
    precision = "milliseconds" if millis % 1000 else "seconds"
    return found.isoformat(timespec=precision).replace("+00:00", "Z")


def roomy(millis: int) -> int:
    """The next round duration that is at least as long."""
    for candidate in _ROOMY:
        if candidate >= millis:
            return candidate
    return -(-millis // _DAY) * _DAY


def share(part: int, whole: int) -> str:
    """A share in per cent. It is 0 only for no part, and 100 only for the whole."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "under 0.1 %"
    if 99.9 < percent < 100:
        return "over 99.9 %"
    return f"{percent:.1f} %".replace(".0 %", " %")
