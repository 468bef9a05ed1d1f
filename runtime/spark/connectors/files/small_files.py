"""Which of a sink's published files are merged, and how files are named: pure functions.

A file holds a run of the rows that a sink has written: what one task wrote in one epoch, or, once merged, all from one
such file to another. So names tell which file holds what, and the same files merged again give the same name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["FEWEST", "MERGED", "PublishedFile", "runs"]

FEWEST = 10
"""So many neighbours that were merged equally often are merged: a row is rewritten once for each power of ten."""
_MOST = 1000
"""More are not merged at once."""
MERGED = re.compile(r"/part-[^/\s]+-\d{10,}-\d{5,}-to-\d{10,}-\d{5,}-\d+(?:\.[\w.]*)?")
"""A slash and the name of a merged file, in a list of paths."""
_NAME = re.compile(r"(\d{10,18})-(\d{5,})(?:-to-(\d{10,18})-(\d{5,})-(\d{1,3}))?(\..*)?")


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file by its path in the folder of the sink. `first` and `last`: epochs and numbers of the files whose rows it
    holds. `merged`: how often its rows were rewritten. `suffix`: from the first dot on."""

    name: str
    first: tuple[int, int]
    last: tuple[int, int]
    merged: int
    suffix: str

    @classmethod
    def of(cls, name: str, begin: str) -> PublishedFile | None:
        """The file of that path, of a sink whose files' names begin with `begin`; None if it is none of them."""
        last = name.rpartition("/")[2]
        found = _NAME.fullmatch(last.removeprefix(begin)) if last.startswith(begin) else None
        if found is None:
            return None
        epoch, number, to_epoch, to_number, merged, suffix = found.groups()
        first = int(epoch), int(number)
        to = (int(to_epoch), int(to_number)) if to_epoch is not None else first
        return cls(name, first, to, int(merged or 0), suffix or "")

    @property
    def folder(self) -> str:
        """The folder in the sink's; empty for that itself."""
        return self.name.rpartition("/")[0]


def runs(sizes: Iterable[tuple[PublishedFile, int]], target: int, form: str) -> Iterator[tuple[PublishedFile, ...]]:
    """The runs of files of a format to merge, each into one, by folder; in bytes, each file's size and the target.

    Neighbours only, so that rows stay in order, and a merged file holds all that its name says; equally often merged
    ones, so that each row is rewritten a few times; none that has the target size.
    """
    folders = defaultdict(list)
    for file, size in sorted(sizes, key=lambda one: one[0].first):
        folders[file.folder].append((file, size))
    for files in folders.values():
        run: list[PublishedFile] = []
        whole = 0
        for file, size in files:
            if form not in file.suffix.split("."):
                size = target
            if run and (size >= target or file.merged != run[0].merged or whole >= target or len(run) == _MOST):
                if _worth(run, whole, target):
                    yield tuple(run)
                run, whole = [], 0
            if size < target:
                run.append(file)
                whole += size
        if _worth(run, whole, target):
            yield tuple(run)


def _worth(run: list[PublishedFile], whole: int, target: int) -> bool:
    return len(run) >= FEWEST or (len(run) > 1 and whole >= target)
