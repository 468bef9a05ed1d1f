"""JSON, one object a line: the names and types of the members, and the rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from vsc.inspect.files import count_lines, open_file
from vsc.inspect.json_shapes import Fraction, Shape
from vsc.inspect.model import DataColumn, DataFile, Headers, InspectError, Sample
from vsc.inspect.texts import instants
from vsc.runtime.values import arrow_type

__all__ = ["Documents"]

_BATCH = 8_192
_BLOCK = 1 << 20
_DECODER = json.JSONDecoder(parse_float=Fraction, parse_constant=Fraction)


class Documents:
    """Reads JSON files. A line that is not an object is an unreadable row."""

    def __init__(self) -> None:
        self.unreadable, self.first_unreadable = 0, ""

    def rows(self, file: DataFile, limit: int) -> int:
        """An upper bound of a file's rows. Stops counting just past `limit`."""
        return count_lines(file.path, limit) + 1

    def headers(self, sample: Sample) -> Headers:
        """The members of all objects, each with a type that can read all its values."""
        whole = Shape()
        files: dict[str, set[str]] = {}
        self.unreadable, self.first_unreadable = 0, ""
        for file, rows in self.documents(sample):
            whole.see(rows)
            for name in {name for row in rows for name in row}:
                files.setdefault(name, set()).add(file.path)
        columns = [
            replace(shape.column(name), absent=len(sample.files) - len(files[name]))
            for name, shape in whole.fields.items()
        ]
        return Headers(tuple(columns), (), (), (), self.unreadable, self.first_unreadable)

    def batches(self, sample: Sample, headers: Headers) -> Iterator[tuple[DataFile, dict[str, pa.Array]]]:
        """The rows, file by file, as columns of the declared types."""
        for file, rows in self.documents(sample):
            yield file, {c.name: self._column([row.get(c.name) for row in rows], c) for c in headers.columns}

    def _column(self, values: list[Any], column: DataColumn) -> pa.Array:
        """Values as the column's type. For nested values, only which rows are null matters here."""
        return _typed(values, column)

    def documents(self, sample: Sample) -> Iterator[tuple[DataFile, list[dict[str, Any]]]]:
        """The objects, file by file."""
        for file in sample.files:
            rows: list[dict[str, Any]] = []
            count = 0
            for number, line in enumerate(_lines(file.path), 1):
                if sample.limit is not None and count >= sample.limit:
                    break
                if not line.strip():
                    continue
                count += 1
                row = self.row(file.path, number, line)
                if row is not None:
                    rows.append(row)
                if len(rows) == _BATCH:
                    yield file, rows
                    rows = []
            if rows:
                yield file, rows

    def row(self, path: str, number: int, line: bytes) -> dict[str, Any] | None:
        """The object of a line; None for an unreadable one."""
        try:
            row = _DECODER.decode(line.decode("utf-8-sig" if number == 1 else "utf-8").strip())
        except (ValueError, RecursionError) as error:
            row, why = None, _why(error)
        else:
            why = f"{type(row).__name__}, not an object"
        if isinstance(row, dict):
            if b"\\u" not in line or _is_text(row):
                return row
            why = "half of a surrogate pair"
        if (number == 1 and line.strip() in (b"[", b"{")) or isinstance(row, list):
            raise InspectError(
                f"{path} is one JSON document over many lines; vsc reads one object a line",
                f"convert it, as in `jq -c '{'.[]' if line.lstrip().startswith(b'[') else '.'}' IN > OUT`",
            )
        self.unreadable += 1
        self.first_unreadable = self.first_unreadable or f"{path}:{number}: {why}"
        return None


def _why(error: Exception) -> str:
    """Why a line cannot be read, in words."""
    match error:
        case UnicodeDecodeError():
            return "not UTF-8"
        case json.JSONDecodeError():
            return str(error)
        case RecursionError():
            return "nested too deeply"
        case _:
            return "a number with too many digits"


def _is_text(row: dict[str, Any]) -> bool:
    """Whether all texts in a row can be encoded as UTF-8."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _lines(path: str) -> Iterator[bytes]:
    with open_file(path) as stream:
        rest = b""
        while block := stream.read(_BLOCK):
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            yield from lines
        if rest:
            yield rest


def _typed(values: list[Any], column: DataColumn) -> pa.Array:
    match str(column.type):
        case "string":
            return pa.array([None if v is None else v if isinstance(v, str) else json.dumps(v) for v in values])
        case "timestamp":
            return instants(pa.array(values, pa.string()), *column.patterns[:1])
        case "date" if column.patterns:
            return instants(pa.array(values, pa.string()), column.patterns[0]).cast(pa.date32())
        case "date":
            return pa.array(values, pa.string()).cast(pa.date32())
        case "double":
            return pa.array([None if v is None else float(v) for v in values], pa.float64())
        case "boolean" | "bigint":
            return pa.array(values, arrow_type(column.type))
        case _:
            return pa.array([None if v is None else True for v in values], pa.bool_())
