"""What the sinks of a job hold: each key's rows in order, and anything that a crash has left behind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from soak.job import Job

__all__ = ["Content", "content", "differences", "leftovers"]

Content = Mapping[str, pa.Table]
"""The rows of each sink: sorted by key, and within a key in the order in which they were written."""

_NAME = re.compile(r"part-[0-9a-f]+-(\d+)-(\d{10})-(\d{5})\.[a-z.]+")
_LIST = re.compile(r"(\d+)\._commit|\._?(\d+)\._commit\.crc")


def content(job: Job) -> Content:
    """The rows that the job's sinks hold."""
    return {sink: _by_key(job.folder / "out" / sink, keys) for sink, keys in job.subject.sinks.items()}


def _by_key(folder: Path, keys: Sequence[str]) -> pa.Table:
    files = sorted(folder.glob("part-*"))
    if not files:
        return pa.table({})
    table = pa.concat_tables(pq.read_table(file) for file in files)
    table = table.append_column("", pa.array(range(table.num_rows), pa.int64()))
    ordered = table.sort_by([*((key, "ascending") for key in keys), ("", "ascending")])
    return ordered.drop_columns([""]).combine_chunks()


def differences(subject_keys: Mapping[str, Sequence[str]], expected: Content, seen: Content) -> Iterator[str]:
    """How two contents differ: a line for each sink that differs, with the first different row."""
    for sink, wanted in expected.items():
        found = seen[sink]
        if wanted.equals(found):
            continue
        rows = min(wanted.num_rows, found.num_rows)
        place = next((i for i in range(rows) if wanted.slice(i, 1) != found.slice(i, 1)), rows)
        shown = [_row(table, place, subject_keys[sink]) for table in (wanted, found)]
        yield (
            f"sink {sink}: {wanted.num_rows} rows expected, {found.num_rows} seen; "
            f"first difference, at row {place} by key: expected {shown[0]}, seen {shown[1]}"
        )


def _row(table: pa.Table, place: int, keys: Sequence[str]) -> str:
    if place >= table.num_rows:
        return "no row"
    row: dict[str, Any] = table.slice(place, 1).to_pylist()[0]
    return f"{dict((key, row[key]) for key in keys)}: {row}"


def leftovers(job: Job) -> Iterator[str]:
    """What should not be in the sinks' folders once a job has ended: a phrase for each item."""
    for sink in job.subject.sinks:
        folder = job.folder / "out" / sink
        lists = 0
        seen: Counter[tuple[str, str]] = Counter()
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            name = path.relative_to(folder).as_posix()
            match = _NAME.fullmatch(name)
            if match is not None:
                seen[match.group(2), match.group(3)] += 1
            elif name.startswith("_vsc-") and _LIST.fullmatch(path.name):
                lists += path.name.endswith("_commit")
            elif not (name.startswith(".part-") and (folder / name.removeprefix(".").removesuffix(".crc")).exists()):
                yield f"sink {sink}: {name} is left over"
        if lists > 2:
            yield f"sink {sink}: {lists} lists of epochs are kept, not two"
        for (epoch, number), times in seen.items():
            if times > 1:
                yield f"sink {sink}: file {number} of epoch {epoch} is there {times} times"
