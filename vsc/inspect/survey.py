"""Looks at the files of a source and finds out what its statement needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from vsc.inspect.change_events import ChangeEvents, are_changes
from vsc.inspect.clock import Clock, clocks, unlikely
from vsc.inspect.delimited import Delimited
from vsc.inspect.documents import Documents
from vsc.inspect.files import find_files
from vsc.inspect.model import DataColumn, DataFile, Found, Headers, InspectError, Sample, Wanted
from vsc.inspect.profile import Profile, profile
from vsc.inspect.structured import Structured
from vsc.inspect.texts import Texts
from vsc.inspect.wording import can_be_written
from vsc.inspect.written import with_formats
from vsc.plan.connectors.debezium import DEBEZIUM
from vsc.plan.types import STRING
from vsc.runtime.expressions.casts import caster
from vsc.runtime.values import to_array

__all__ = ["Survey", "survey"]

_FEWEST = 1_000
"""The fewest rows to sample from each file that is read, if it has them."""
_PROBED_FILES, _PROBED_ROWS = 8, 2_000


class _Reader(Protocol):
    def rows(self, file: DataFile, limit: int) -> int: ...
    def headers(self, sample: Sample) -> Headers: ...
    def batches(self, sample: Sample, headers: Headers) -> Iterator[tuple[DataFile, dict[str, pa.Array]]]: ...


@dataclass(frozen=True, slots=True)
class Survey:
    """All findings about a source. `clocks` are the columns that could be its event time, the chosen one first."""

    found: Found
    sample: Sample
    headers: Headers
    clocks: tuple[Clock, ...]
    profile: Profile

    @property
    def of_changes(self) -> bool:
        """Whether the files hold changes of the rows of a table."""
        return self.found.format == DEBEZIUM

    @property
    def columns(self) -> tuple[DataColumn, ...]:
        """The columns of the statement."""
        return self.headers.columns


def survey(path: str, wanted: Wanted) -> Survey:
    """Surveys the files at `path`. Raises InspectError."""
    found = _found(path, wanted)
    reader = _reader(found.format)
    sample = _sample(found, reader, wanted.rows)
    folders, partitions = _folders(found)
    headers = with_formats(_writable(reader.headers(sample), folders))
    if not headers.columns:
        why = next((f"{name}: {reason}" for name, reason in headers.left_out), headers.first_unreadable)
        raise InspectError(f"{path} has no column that vsc can read", why or None)
    probed = Sample(_spread(sample.files, _PROBED_FILES), _PROBED_ROWS, False)
    probe = _joined(_rows(reader, probed, headers, partitions))
    likely = [] if found.format == DEBEZIUM else clocks(headers.columns, probe, wanted.now)  # changes have their own
    times = _chosen(likely, wanted.timestamp, headers)
    rows = _rows(reader, sample, headers, partitions)
    seen = profile(headers.columns, rows, times[0] if times else None, wanted.now)
    return Survey(found, sample, headers, times, seen)


def _found(path: str, wanted: Wanted) -> Found:
    """The files. JSON that holds change events is of that format, unless the user wants something else."""
    if wanted.format == DEBEZIUM:
        return replace(find_files(path, "json"), format=DEBEZIUM)
    found = find_files(path, wanted.format)
    open_ = found.format == "json" and wanted.format is None and wanted.kind != "stream"
    return replace(found, format=DEBEZIUM) if open_ and are_changes(found.files[0]) else found


def _reader(format: str) -> _Reader:
    match format:
        case "csv":
            return Delimited()
        case "json":
            return Documents()
        case "debezium":
            return ChangeEvents()
        case _:
            return Structured(orc=format == "orc")


def _sample(found: Found, reader: _Reader, rows: int | None) -> Sample:
    """All rows if there are at most `rows`; else the first rows of files evenly spread over all files."""
    if rows is None or _fits(found, reader, rows):
        return Sample(found.files, None, True)
    files = _spread(found.files, max(1, rows // _FEWEST))
    return Sample(files, max(1, rows // len(files)), False)


def _fits(found: Found, reader: _Reader, rows: int) -> bool:
    for file in found.files:
        rows -= reader.rows(file, rows)
        if rows < 0:
            return False
    return True


def _spread(files: tuple[DataFile, ...], most: int) -> tuple[DataFile, ...]:
    if len(files) <= most:
        return files
    last = len(files) - 1
    return tuple(files[round(i * last / max(1, most - 1))] for i in range(most))


def _folders(found: Found) -> tuple[list[DataColumn], dict[str, dict[str, pa.Array]]]:
    """The columns that Hive partition folders give, and for each file one value of each column."""
    texts: dict[str, Texts] = {}
    for file in found.files:
        for name, text in file.parts:
            seen = texts.setdefault(name, Texts())
            if text is not None:
                seen.see(pa.array([text]))
    columns = [seen.column(name, cells=True) for name, seen in texts.items()]
    columns = [replace(column, from_path=True) for column in columns]
    return columns, {file.path: _values(file, columns) for file in found.files}


def _values(file: DataFile, columns: list[DataColumn]) -> dict[str, pa.Array]:
    texts = dict(file.parts)
    found = {}
    for column in columns:
        text = texts.get(column.name)
        value = None if text is None else caster(STRING, column.type)(text)
        found[column.name] = to_array([value], column.type)
    return found


def _rows(
    reader: _Reader, sample: Sample, headers: Headers, partitions: Mapping[str, dict[str, pa.Array]]
) -> Iterator[tuple[DataFile, dict[str, pa.Array]]]:
    """The rows with the columns that their paths give. A path's column hides a file's column of the same name."""
    own = replace(headers, columns=tuple(c for c in headers.columns if not c.from_path))
    for file, batch in reader.batches(sample, own):
        count = len(next(iter(batch.values()))) if batch else 0
        yield file, {**batch, **{name: pa.repeat(one[0], count) for name, one in partitions[file.path].items()}}


def _joined(rows: Iterator[tuple[DataFile, dict[str, pa.Array]]]) -> dict[str, pa.Array]:
    pieces: dict[str, list[pa.Array]] = {}
    for _, batch in rows:
        for name, column in batch.items():
            pieces.setdefault(name, []).append(column)
    return {
        name: pa.concat_arrays([piece for piece in parts if piece.type == parts[0].type])
        for name, parts in pieces.items()
    }


def _writable(headers: Headers, folders: list[DataColumn]) -> Headers:
    """The columns that one schema can have: their names can be written, and differ in more than case."""
    taken: dict[str, str] = {}
    columns, left_out = [], list(headers.left_out)
    from_path = {column.name.lower() for column in folders}
    for column in (*(c for c in headers.columns if c.name.lower() not in from_path), *folders):
        other = taken.get(column.name.lower())
        if not can_be_written(column.name):
            left_out.append((column.name, "vsc does not allow this column name"))
        elif other is not None:
            left_out.append((column.name, f"differs from {other} in case only"))
        else:
            taken[column.name.lower()] = column.name
            columns.append(column)
    return replace(headers, columns=tuple(columns), left_out=tuple(left_out))


def _chosen(found: list[Clock], name: str | None, headers: Headers) -> tuple[Clock, ...]:
    """The candidates with the user's choice first."""
    if name is None:
        return tuple(found)
    column = headers.column(name)
    clock = next((clock for clock in found if clock.column.name == name), None) or unlikely(column)
    return (clock, *(other for other in found if other.column.name != name))
