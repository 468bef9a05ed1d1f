"""Merges published files of one sink into one: it takes their place once, whatever crashes between any two steps.

The new file is written aside, in a folder ``merge-UUID``. Then a list appears, in one rename: which file takes the
place of which. Before there is a list, the merge is discarded; after, it is only ever rolled forward: the new file is
renamed, then the old ones are removed, then the list. So rows are never missing; a reader that lists the folder
between rename and removal sees both, and can tell by their names. On a local disk each step is durable before the next
one: a file that is removed was there for long, and must not be outlived by a power cut that takes the new one.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vsc.runtime.errors import SinkError
from vsc.runtime.spark.base.folders import is_hidden
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.connectors.files.small_files import PublishedFile

__all__ = ["Merges", "Rewriter"]

_FORMAT = 1
_LIST = "merge._commit"

Rewriter = Callable[[Sequence[str], str], None]
"""Writes the rows of files, in the order of the paths, into one file in the folder of that path."""


@dataclass(frozen=True, slots=True)
class _Merge:
    """A list. `staged`: the new file in the sink's folder aside; `size`: its bytes; `old`: whose place it takes."""

    staged: str
    name: str
    size: int
    old: tuple[str, ...]

    def dump(self) -> str:
        data = {"format": _FORMAT, "staged": self.staged, "name": self.name, "size": self.size, "old": list(self.old)}
        return json.dumps(data) + "\n"

    @classmethod
    def load(cls, text: str) -> _Merge:
        """Raises ValueError, KeyError or TypeError for anything that `dump` did not write."""
        data = json.loads(text)
        if data["format"] != _FORMAT:
            raise ValueError(f"format version {data['format']}, this vsc reads {_FORMAT}")
        merge = cls(str(data["staged"]), str(data["name"]), int(data["size"]), tuple(map(str, data["old"])))
        if any(part in ("", ".", "..") for name in (merge.staged, merge.name, *merge.old) for part in name.split("/")):
            raise ValueError("a name leads out of the folder")
        if merge.name in merge.old:
            raise ValueError("a file takes its own place")
        return merge


class Merges:
    """The merges of one sink in `folder`, which keeps in `aside` what readers skip. `begin` begins the names of its
    files; `place` names it in messages."""

    def __init__(self, folder: Files, aside: str, begin: str, place: str) -> None:
        self._folder = folder
        self._aside = aside
        self._begin = begin
        self._place = place

    def finish(self) -> None:
        """Rolls a merge forward that has its list. SinkError if the list is damaged, or its file is gone."""
        path = f"{self._aside}/{_LIST}"
        if not self._folder.exists(path):
            return
        try:
            merge = _Merge.load(self._folder.read(path))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise SinkError(
                f"{self._place}: {self._folder.path(path)} is damaged: {error}",
                "restore it: it says which file takes the place of which",
            ) from error
        published = self._folder.size(merge.name)
        of_readers = merge.name.rpartition("/")[0]
        if published is None and self._folder.exists(f"{self._aside}/{merge.staged}"):
            self._folder.rename(f"{self._aside}/{merge.staged}", merge.name)
        elif published != merge.size:
            has = "is gone" if published is None else f"has {published:,} bytes, but was written with {merge.size:,}"
            raise SinkError(
                f"{self._place}: {self._folder.path(merge.name)} {has}, and its merge is not complete",
                f"put back what was there; or, if it was taken away on purpose, remove {self._folder.path(path)}",
            )
        self._folder.sync(of_readers)
        for name in merge.old:
            self._folder.delete(name)
            if self._folder.exists(name):
                raise SinkError(
                    f"{self._place}: {self._folder.path(name)} cannot be removed, and {merge.name} has its rows",
                    "make it writable for the user that runs this, or remove it, then run again",
                )
        self._folder.sync(of_readers)
        self._folder.delete(f"{self._aside}/{merge.staged.rpartition('/')[0]}")
        self._folder.delete(path)

    def stage(self, run: Sequence[PublishedFile], form: str, rewrite: Rewriter) -> None:
        """Merges a run of files of one folder, in a format, as far as its list, which `finish` has to follow. Whatever
        it raises, the files are as they were."""
        folder = f"merge-{uuid.uuid4().hex}"
        aside = f"{self._aside}/{folder}"
        try:
            rewrite([self._folder.path(file.name) for file in run], self._folder.path(aside))
            sizes = {name: size for name, size in self._folder.sizes(aside).items() if not is_hidden(name)}
            if len(sizes) != 1:
                raise SinkError(
                    f"{self._place}: {len(run)} files were merged into {len(sizes)}, as the driver sees "
                    f"{self._folder.path(aside)}",
                    "give a path that the driver and all executors share: hdfs://..., s3a://..., or a shared disk",
                )
        except Exception:
            self._folder.delete(aside)
            raise
        [(staged, size)] = sizes.items()
        new = _Merge(f"{folder}/{staged}", self._name(run, form, staged), size, tuple(file.name for file in run))
        self._folder.sync(f"{aside}/{staged}")
        self._folder.write(f"{self._aside}/{_LIST}", new.dump())
        self._folder.sync(f"{self._aside}/{_LIST}")
        self._folder.sync(self._aside)

    def _name(self, run: Sequence[PublishedFile], form: str, staged: str) -> str:
        (epoch, number), (last, to) = run[0].first, run[-1].last
        merged = max(file.merged for file in run) + 1
        name = f"{self._begin}{epoch:010d}-{number:05d}-to-{last:010d}-{to:05d}-{merged}"
        suffix = staged[staged.index(".") :].replace(".txt", f".{form}", 1)
        return "/".join(filter(None, (run[0].folder, name + suffix)))
