"""Where a topology is: in a file, or in a string.

Guarantees: one rule decides everywhere which of them a string is (`source_file`), and files are read in one way
(`read_text`). Meanwhile `below` bounds which ones: who checks other people's topologies shows no lines of other files.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import BinaryIO

from vsc.compiler.source import SourceFile
from vsc.plan.words import bytes_text

__all__ = ["FileError", "MissingFileError", "below", "bound", "holds_plan", "read_stream", "read_text", "source_file"]

_MAX_BYTES = 64 << 20  # of a topology or a plan: far more than anyone writes, far less than a machine's memory

_UNNAMED = "topology.vdsl"
"""The path that messages show for a topology that is not in a file."""


_below: ContextVar[tuple[str, ...] | None] = ContextVar("below", default=None)


class FileError(OSError):
    """The file cannot be read as text. `message` says why; `help` says what to do; `code` is a code, or is None."""

    def __init__(self, message: str, help: str | None = None, code: str | None = None) -> None:
        super().__init__(message if help is None else f"{message}; {help}")
        self.message, self.help, self.code = message, help, code


class MissingFileError(FileError, FileNotFoundError):
    """The file does not exist."""


@contextmanager
def below(places: Sequence[str]) -> Iterator[None]:
    """Meanwhile, a file that is read has to lie in one of these folders, wherever it is a link to."""
    token = _below.set(tuple(os.path.realpath(place) for place in places))
    try:
        yield
    finally:
        _below.reset(token)


def bound(path: str) -> None:
    """Raises `FileError` if a file lies outside of what `below` allows."""
    real, places = os.path.realpath(path), _below.get()
    if places is not None and not any(os.path.commonpath([real, place]) == place for place in places):
        link = ", where it is a link to" if os.path.islink(path) else ""
        message = f"{path} does not lie below {' or '.join(places)}{link}"
        raise FileError(message, "move it there, or allow more with `--include-root FOLDER`")


def source_file(given: str | os.PathLike[str]) -> SourceFile:
    """The topology that `given` names or is.

    A path object is a path. A string with a line break or a ``;`` is the text itself, as is one that begins with ``{``
    (a plan). Any other string is a path if it ends in ``.vdsl`` or ``.json`` or names an existing file, else text.
    Raises `FileError` for a file that cannot be read, ValueError for anything but a string or a path.
    """
    path: object = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(path, str):
        raise ValueError(f"a topology is its text or a path, not {repr(given)[:100]}")
    if isinstance(given, str) and not _is_path(given):
        return SourceFile(_UNNAMED, given)
    return SourceFile(path, read_text(path))


def holds_plan(path: str, text: str) -> bool:
    """Whether a file is a plan made by ``vsc compile``. No topology begins with a brace."""
    return path.endswith(".json") or text.startswith("{")


def read_text(path: str, only_files: bool = False) -> str:
    """The text of a file in UTF-8, with or without a byte order mark. Raises `FileError`.

    `only_files`: a pipe or a device, of which a read may not end, is none.
    """
    try:
        bound(path)
        mode = os.stat(path).st_mode if only_files else 0
        if only_files and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise FileError(f"{path} is a pipe or a device, not a file", "name a file")
        with open(path, "rb") as file:
            return read_stream(file, path)
    except FileError:
        raise
    except FileNotFoundError:
        raise MissingFileError(f"there is no file {path}") from None
    except IsADirectoryError:
        example = os.path.join(path, _UNNAMED)
        raise FileError(f"{path} is a directory", f"name the file in it, as in {example}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileError(f"{path} cannot be read: {reason}") from None


def read_stream(stream: BinaryIO, path: str) -> str:
    """The text of a stream in UTF-8, with or without a byte order mark; `path` is its name. Raises `FileError`."""
    data = stream.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        message = f"{path} is too large: more than {bytes_text(_MAX_BYTES)} are not read"
        raise FileError(message, "name a topology (.vdsl), or split it into several files", "VSC015")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if b"\0" in data and data[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise FileError(f"{path} is not a text file", "name a topology (.vdsl)") from None
        line = data.count(b"\n", 0, error.start) + 1
        place = f"byte 0x{data[error.start]:02X} on line {line}"
        raise FileError(f"{path} is not UTF-8 text: {place}", "save the file as UTF-8") from None


def _is_path(given: str) -> bool:
    if "\n" in given or ";" in given or given.startswith("{"):
        return False
    return given.endswith((".vdsl", ".json")) or os.path.exists(given)
