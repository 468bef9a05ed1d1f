"""Spark's files of settings (``--properties-file``, ``spark-defaults.conf``), in the format of Java's properties."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from vsc.cli.common import read_text
from vsc.cli.errors import UsageError
from vsc.extras import spec_of

__all__ = ["default_file", "properties"]

_SPACE = " \t\f"
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAME = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u(.{0,4})|.|$)", re.DOTALL)
_TRIMMED = "".join(map(chr, set(range(33)) - {10, 13}))
"""What Spark removes from the ends of a value; a line break there was written on purpose, as ``\\n``."""


def properties(path: str) -> dict[str, tuple[str, int]]:
    """The settings in a file, each with its line. Raises `UsageError` for what cannot be read."""
    found: dict[str, tuple[str, int]] = {}
    for number, line in _lines(read_text(path)):
        written = _NAME.match(line)[0]  # type: ignore[index]  # it matches the empty text
        rest = line[len(written) :]
        value = rest[_SEPARATOR.match(rest).end() :]  # type: ignore[union-attr]
        place = f"{path}:{number}"
        found[_unescaped(written, place)] = _unescaped(value, place).strip(_TRIMMED), number
    return found


def default_file() -> str | None:
    """Where Spark looks for ``spark-defaults.conf``, if it is there."""
    folder = os.environ.get("SPARK_CONF_DIR")
    if not folder:
        spec = spec_of("pyspark")
        home = os.environ.get("SPARK_HOME") or (spec and spec.origin and str(Path(spec.origin).parent))
        folder = os.path.join(home, "conf") if home else None
    path = os.path.join(folder, "spark-defaults.conf") if folder else ""
    return path if os.path.isfile(path) else None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that hold a setting, joined where they end in a backslash, each with the number of its first one."""
    joined, first = "", 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        part = line.lstrip(_SPACE)
        if not first:
            if not part or part[0] in "#!":
                continue
            first = number
        joined += part
        if (len(joined) - len(joined.rstrip("\\"))) % 2:
            joined = joined[:-1]
        else:
            yield first, joined
            joined, first = "", 0
    if first:
        yield first, joined


def _unescaped(text: str, place: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[2] is None:
            return _ESCAPED.get(match[1], match[1])
        if not re.fullmatch("[0-9A-Fa-f]{4}", match[2]):
            raise UsageError(f"{place}: \\u without four hexadecimal digits", "write a backslash as \\\\")
        return chr(int(match[2], 16))

    return _ESCAPE.sub(character, text)
