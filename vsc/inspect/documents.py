"""JSON, objects and arrays of them, a line or a file each: the names and types of the members, and the rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar

import pyarrow as pa

from vsc.inspect.files import count_lines, open_file
from vsc.inspect.json_shapes import Fraction, Shape
from vsc.inspect.model import DataColumn, DataFile, Headers, InspectError, Sample
from vsc.inspect.texts import instants
from vsc.plan.words import bytes_text
from vsc.runtime.values import arrow_type

__all__ = ["Documents"]

_BATCH = 8_192
_BLOCK = 1 << 20
_MOST = 256 << 20
"""The most bytes of a file that is read whole."""
_DECODER = json.JSONDecoder(parse_float=Fraction, parse_constant=Fraction)
_SPACE = re.compile(r"[ \t\r\n]*")


class Documents:
    """Reads JSON files with the same rows as `vsc run`. A file whose objects go over lines is read whole, and so are
    all others then."""

    has_tombstones: ClassVar[bool] = False
    """Whether null is a value."""

    def __init__(self) -> None:
        self.unreadable, self.first_unreadable = 0, ""
        self._whole: dict[str, bool] = {}

    def rows(self, file: DataFile, limit: int) -> int:
        """An upper bound of a file's rows. Stops counting just past `limit`."""
        with open_file(file.path) as stream:
            objects = stream.read(_BLOCK) if file.size < _BLOCK else b""
        return max(count_lines(file.path, limit) + 1, objects.count(b"{") if objects.lstrip().startswith(b"[") else 0)

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
        options = (("multiLine", "true"),) if any(map(self._is_whole, sample.files)) else ()
        return Headers(tuple(columns), (), (), options, self.unreadable, self.first_unreadable)

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
            values = self._values(file)
            limited = values if sample.limit is None else islice(values, sample.limit)
            rows = (row for value in limited if (row := self.row(value)) is not None)
            while batch := list(islice(rows, _BATCH)):
                yield file, batch

    def row(self, value: Any) -> dict[str, Any] | None:
        """The row that a value is; None if it is none."""
        return value if isinstance(value, dict) else None

    def _values(self, file: DataFile) -> Iterator[Any]:
        """The values of a file, those of arrays one by one; None for one that cannot be read."""
        whole = self._is_whole(file)
        for number, text in enumerate([_content(file.path)] if whole else _lines(file.path), 1):
            try:
                found = _parsed(text.decode("utf-8-sig" if number == 1 else "utf-8"))
            except (ValueError, RecursionError) as error:
                self._unread(file, number, _why(error))
                yield None
                continue
            for value in (row for one in found for row in (one if isinstance(one, list) else [one])):
                if not isinstance(value, dict) and not (value is None and self.has_tombstones):
                    self._unread(file, number, f"{type(value).__name__}, not an object")
                elif b"\\u" in text and not _is_text(value):
                    self._unread(file, number, "half of a surrogate pair")
                    value = None
                yield value

    def _unread(self, file: DataFile, number: int, why: str) -> None:
        self.unreadable += 1
        self.first_unreadable = self.first_unreadable or f"{file.path}:{number}: {why}"

    def _is_whole(self, file: DataFile) -> bool:
        """Whether objects of the file go over lines."""
        if file.path not in self._whole:
            first = next((line for line in _lines(file.path) if line.strip()), b"")
            self._whole[file.path] = first.lstrip(b"\xef\xbb\xbf \t\r").startswith((b"{", b"[")) and (
                not _is_json(first) and _is_json(_content(file.path))
            )
        return self._whole[file.path]


def _parsed(text: str) -> list[Any]:
    """The values in a text, one after the other. ValueError for anything else."""
    found, at = [], _end(text, 0)
    while at < len(text):
        value, at = _DECODER.raw_decode(text, at)
        found.append(value)
        at = _end(text, at)
    return found


def _end(text: str, at: int) -> int:
    """Where the white space ends that begins there."""
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _is_json(data: bytes) -> bool:
    try:
        return bool(_parsed(data.decode("utf-8-sig")))
    except (ValueError, RecursionError):
        return False


def _content(path: str) -> bytes:
    with open_file(path) as stream:
        data: bytes = stream.read(_MOST + 1)
    if len(data) > _MOST:
        raise InspectError(
            f"{path} is one JSON document of more than {bytes_text(_MOST)}",
            "write one object a line, as in `jq -c '.[]' IN > OUT`",
        )
    return data


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


def _is_text(row: Any) -> bool:
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
