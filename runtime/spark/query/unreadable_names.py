"""A file whose name Spark's JVM cannot read: which, and what to do. It would leave such a file out."""

from __future__ import annotations

import os
import re

from vsc.runtime.errors import SourceError
from vsc.runtime.spark.session.local_files_java import UNREADABLE_NAME
from vsc.runtime.spark.session.names import LOCALE, UTF8

__all__ = ["unreadable_name"]

_SAID = re.compile(rf"{re.escape(UNREADABLE_NAME)}(\S+): \[([^\n]+?)\](?=\s|\Z)")
_UNKNOWN = "\ufffd"
"""What Java has in the place of a letter that it cannot read."""


def unreadable_name(text: str) -> SourceError | None:
    """The error that Spark's exception with that `text` amounts to; None if it says something else."""
    found = _SAID.search(text)
    if found is None:
        return None
    encoding, path = found.groups()
    if encoding.upper() != "UTF-8":
        return SourceError(
            f"Spark's JVM reads names of files as {encoding}, and cannot read that of {_shown(path)}",
            f"start it in a UTF-8 locale: {LOCALE}={UTF8} in the environment of spark-submit, or of the program that "
            "makes the session",
        )
    return SourceError(
        f"Spark cannot read {_shown(path)}: its name is not UTF-8",
        "rename it, or move it out of the source's folder: `convmv -f latin1 -t utf8 --notest -r FOLDER` renames all "
        "files below a folder",
    )


def _shown(path: str) -> str:
    """The path with the bytes of its name that are not ASCII, if this process sees it."""
    folder, name = os.path.split(path)
    known = re.compile(re.sub(f"{_UNKNOWN}+", ".+", re.escape(name)), re.DOTALL)
    try:
        there = sorted(one for one in os.listdir(folder) if not one.isascii() and known.fullmatch(one))
    except OSError:
        there = []
    if not there:
        return path
    return os.path.join(folder, os.fsencode(there[0]).decode("utf-8", "backslashreplace"))
