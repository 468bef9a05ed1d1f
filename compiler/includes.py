"""The files that a topology includes: found beside the file that includes them, and read once.

A file includes others at the beginning of any statement. What is included a second time is already there; a file that
includes itself, over others or not, is refused. So is one that is not a topology: no finding shows a line of it.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.files import FileError, read_text
from vsc.compiler.source import Included, SourceFile

__all__ = ["Includes"]

_MAX_DEPTH = 50
_SUFFIX = ".vdsl"


class _Open(NamedTuple):
    """A file that is being read, and the statement that includes it."""

    path: str
    by: syntax.Include | None


class Includes:
    """Opens included files. `source` is the topology with those that were opened so far."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self._open = [_Open(source.path, None)]

    def open(self, statement: syntax.Include) -> int | Finding | None:
        """Adds the file and returns where its text begins; None if it is there already. `close` it when it is read.

        Returns what is wrong if it cannot be read.
        """
        path = os.path.normpath(os.path.join(os.path.dirname(self._open[-1].path), statement.path))
        same = [one for one in self._open if _same(one.path, path)]
        if same:
            through = () if same[0].by is None else (Label(same[0].by.span, "it is included here, and not yet read"),)
            message = f"{path} includes itself" + ("" if same[0] is self._open[-1] else ", through other files")
            return Finding("VSC027", statement.path_span, message, through, "remove one of the `include`s")
        if any(_same(part.path, path) for part in self.source.included):
            return None
        if len(self._open) > _MAX_DEPTH:
            help = "include the files directly"
            return Finding("VSC015", statement.span, f"files are included more than {_MAX_DEPTH} levels deep", (), help)
        if not os.path.realpath(path).endswith(_SUFFIX) and not os.path.isdir(path):
            help = f"only files called *{_SUFFIX} are included"
            return Finding("VSC027", statement.path_span, f"{path} is not a topology", (), help)
        try:
            text = read_text(path, only_files=True)
        except FileError as error:
            help = error.help or "give a path that is right from the folder of this file"
            return Finding("VSC027", statement.path_span, error.message, (), help)
        whole = self.source.text + "\n"
        part = Included(path, len(whole), statement.span)
        self.source = SourceFile(self.source.path, whole + text, (*self.source.included, part))
        self._open.append(_Open(path, statement))
        return part.start

    def close(self) -> None:
        """Ends the file that was opened last."""
        self._open.pop()


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
