"""Where a connector reads or writes, as far as its options tell. Two variables are two places."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from typing import NamedTuple

__all__ = ["Place", "folder"]


class Place(NamedTuple):
    """Where a connector reads or writes: `within` is the kind of the system and its names, of which one is enough to
    reach it, `path` the place in it, which `option` gives.

    `file` is what a file there is called, if the place is a folder.
    """

    within: tuple[str, ...]
    path: str
    option: str
    file: str = ""

    def holds(self, other: Place) -> bool:
        """Whether what is at `other` is here, too. The path may be a glob."""
        (kind, *names), (other_kind, *others) = self.within, other.within
        if kind != other_kind or (names != others and set(names).isdisjoint(others)):
            return False
        if not self.file:
            return self.path == other.path
        pattern, written = self.path.split("/"), f"{other.path}/{other.file}".split("/")
        return len(pattern) <= len(written) and all(map(fnmatchcase, written, pattern))

    def meets(self, other: Place) -> bool:
        """Whether what is at one of them is at the other, too."""
        return self.holds(other) or other.holds(self)


def folder(path: str, file: str) -> Place:
    """A folder, whoever writes its files."""
    return Place(("folder",), posixpath.normpath(path.removeprefix("file:")), "path", file)
