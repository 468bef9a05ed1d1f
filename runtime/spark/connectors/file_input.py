"""The backlog of a source that reads files: those of a folder, or those of a snapshot in the checkpoint.

Files without a byte do not count, as nothing comes of them, not even a task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from vsc.runtime.spark.connectors.spark_source import (
    Backlog,
    Input,
    SparkSource,
    private_field,
    private_reader,
    unknown_spark,
)

__all__ = ["FILE_SOURCE", "FileInput"]

FILE_SOURCE = "FileStreamSource"
"""Spark's class for a source of files."""
_ENTRY = re.compile(r"NewFileEntry\((.*),(\d+),\d+\)")


class FileInput(Input):
    """One `FileStreamSource`."""

    def __init__(self, source: SparkSource) -> None:
        self._source, self._lists = source.instance, source.lists
        # Whether Spark may have taken the running epoch's files without looking into the folder: from its list, or,
        # in the first epoch of a run, from its log.
        self._unlisted = True
        self._left: _Left | None = None

    def backlog(self) -> Backlog:
        """See `Input`."""
        try:
            parts = list(self._parts())
            position, size = int(self._source.currentLogOffset()), sum(size for _, size in parts)
            left = {"files": len(parts), "bytes": size}
            return Backlog(min((part for part, _ in parts), default=None), position, left)
        except (Py4JError, TypeError, AttributeError) as error:
            raise unknown_spark() from error

    @cached_property
    def _unread(self) -> Callable[[], Any]:
        return private_reader(self._source, "unreadFiles")

    @cached_property
    def _listed(self) -> Callable[[], Any]:
        return private_reader(self._source, "allFilesForTriggerAvailableNow")

    def _parts(self) -> Iterator[tuple[str, int]]:
        """The names of the files that are left, as source partitions, and their bytes."""
        unread = self._unread()
        if unread is not None and not unread.isEmpty():
            self._unlisted = True
            return ((part, size) for _, _, part, size in _entries(unread))
        listed = self._listed()
        if listed is not None:  # one list for the whole run
            if self._left is None:
                self._left = _Left(listed, self._source.seenFiles())
            return self._left.parts()
        if self._lists and self._unlisted:
            self._unlisted = False
            return _Left(
                _method(self._source, "fetchAllFiles").invoke(self._source, None), self._source.seenFiles()
            ).parts()
        return iter(())


class _Left:
    """The files of a list that have not been handed out. They are, in the order of the list."""

    def __init__(self, listed: Any, seen: Any) -> None:
        self._listed, self._seen = listed, seen
        known = set(str(private_field(seen, "map").keySet().toString())[1:-1].split(", "))
        self._files = [(place, part, size) for place, url, part, size in _entries(listed) if url not in known]
        self._at = 0

    def parts(self) -> Iterator[tuple[str, int]]:
        """The names of these files as source partitions, and their bytes."""
        while self._at < len(self._files) and not self._is_new(self._files[self._at][0]):
            self._at += 1
        return ((part, size) for _, part, size in self._files[self._at :])

    def _is_new(self, place: int) -> bool:
        entry = self._listed.apply(place)
        return bool(self._seen.isNewFile(entry.path(), entry.timestamp()))


def _entries(files: Any) -> list[tuple[int, str, str, int]]:
    """Place in the list, URL, source partition and bytes of each file that is not empty.

    They are read as one text: a look at a single entry takes as long as one at all of them.
    """
    entries = []
    for place, line in enumerate(str(files.mkString("\n")).splitlines()):
        match = _ENTRY.fullmatch(line)
        if match is None:
            raise TypeError(f"an entry {line!r} in a list of files")
        url, size = match.groups()
        if int(size):
            # As Spark's column for the file's path has it: without the two slashes of an authority that is not there.
            entries.append((place, url, unquote(re.sub(r"^([a-z]+):///", r"\1:/", url)), int(size)))
    return entries


def _method(instance: Any, name: str) -> Any:
    method: Any = next((m for m in instance.getClass().getDeclaredMethods() if m.getName() == name), None)
    method.setAccessible(True)
    return method
