"""The files that a source would read, found and ordered as by a run, and their format."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import pyarrow as pa

from vsc.inspect.model import DataFile, Found, InspectError

__all__ = ["FORMATS", "count_lines", "find_files", "open_file"]

FORMATS = ("parquet", "json", "csv", "orc")
_SUFFIXES = {
    ".parquet": "parquet", ".pq": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".csv": "csv", ".tsv": "csv", ".psv": "csv", ".orc": "orc",
}  # fmt: skip
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_PEEK = 4096
_BLOCK = 1 << 20
_Parts = tuple[tuple[str, str | None], ...]
"""The names and texts of Hive partition folders."""


def find_files(path: str, format: str | None) -> Found:
    """The files at `path` (a folder, a file or a glob) that have one format. Raises InspectError."""
    files = sorted(_listed(path), key=lambda file: (file.modified, os.fsencode(file.path)))
    for file in files:
        if not _is_text(file.path):
            shown = os.fsencode(file.path).decode("utf-8", "backslashreplace")
            raise InspectError(f"the name of {shown} is not UTF-8, and no run can read it", "rename it")
    if not files:
        raise InspectError(f"there is no file with data in {path}", "names that begin with `_` or `.` are skipped")
    if len(files) == 1:
        return Found(path, format or _only(path, files[0]), tuple(files))
    kinds = {file.path: _format_of(file.path) for file in files}
    chosen = format or _common(path, kinds)
    ours = tuple(file for file in files if kinds[file.path] == chosen)
    if format is not None and not ours:  # only the user knows: names and contents do not say
        return Found(path, format, tuple(files))
    others = tuple(file.path for file in files if kinds[file.path] != chosen)
    return Found(path, chosen, ours, _filter(ours, others) if others else (), others)


@contextmanager
def open_file(path: str) -> Iterator[pa.NativeFile]:
    """The bytes of a text file, decompressed if its name says that it is compressed. Raises InspectError."""
    try:
        with pa.input_stream(path, compression="detect") as stream:
            yield stream
    except OSError as error:
        raise unreadable(path, error) from error


def count_lines(path: str, limit: int) -> int:
    """How many line ends a text file has. Stops counting just past `limit`."""
    count = 0
    with open_file(path) as stream:
        while count <= limit and (block := stream.read(_BLOCK)):
            count += block.count(b"\n")
    return count


def unreadable(path: str, error: Exception) -> InspectError:
    """The InspectError for a file that cannot be read."""
    return InspectError(f"{path} cannot be read: {str(error).splitlines()[0]}")


def _listed(path: str) -> Iterator[DataFile]:
    local = path.removeprefix("file://").removeprefix("file:")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", local):
        raise InspectError(f"{path} is not on this machine", "copy some of its files here and inspect these")
    roots = [local] if os.path.lexists(local) else sorted(glob.glob(local))
    if not roots:
        raise InspectError(f"there is no file or folder {path}")
    for root in roots:
        if os.path.isdir(root):
            yield from _below(root, _parts(_fixed(local), root))
        else:
            found = _file(root, _parts(_fixed(local), os.path.dirname(root)))
            if found.size:
                yield found


def _fixed(path: str) -> str:
    """The folders of a path before its first wildcard."""
    if os.path.lexists(path):
        return path
    head = re.split(r"[*?\[{]", path, maxsplit=1)[0]
    return os.path.dirname(head)


def _below(folder: str, parts: _Parts) -> Iterator[DataFile]:
    """The files of a folder and of those in it, each once: those to which links lead are files, too, unless they have
    been found already."""
    real: set[str] = set()
    links: list[tuple[str, _Parts]] = []
    waiting = [(folder, parts)]
    while waiting or links:
        path, around = waiting.pop() if waiting else links.pop()
        at = os.path.realpath(path)
        if at in real:
            continue
        real.add(at)
        if not os.path.isdir(path):
            if os.path.exists(path) and os.stat(path).st_size:
                yield _file(path, around)
            continue
        inside = around if path == folder else (*around, *_part(os.path.basename(path)))
        for name in _names(path):
            (links if os.path.islink(os.path.join(path, name)) else waiting).append((os.path.join(path, name), inside))
        links.sort(reverse=True)


def _names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not _hidden(name)]
    except OSError as error:
        raise InspectError(f"{folder} cannot be read: {error.strerror}") from error


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _hidden(name: str) -> bool:
    """Whether Spark's file source skips it."""
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")


def _file(path: str, parts: tuple[tuple[str, str | None], ...]) -> DataFile:
    found = os.stat(path)
    return DataFile(path, found.st_size, found.st_mtime_ns // 1_000_000, parts)


def _parts(root: str, folder: str) -> tuple[tuple[str, str | None], ...]:
    below = os.path.relpath(folder or ".", root or ".")
    return tuple(part for name in below.split(os.sep) for part in _part(name))


def _part(name: str) -> tuple[tuple[str, str | None], ...]:
    column, equals, value = name.partition("=")
    if not equals or not column:
        return ()
    return ((unquote(column), None if value == _NO_VALUE else unquote(value)),)


def _only(path: str, file: DataFile) -> str:
    found = _format_of(file.path)
    if found is None:
        raise InspectError(f"{path}: neither its name nor its content says what its format is", _formats())
    return found


def _common(path: str, kinds: dict[str, str | None]) -> str:
    counted = Counter(kind for kind in kinds.values() if kind is not None)
    if not counted:
        raise InspectError(f"{path} holds no file whose name or content says what its format is", _formats())
    if len(counted) > 1:
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(counted.items()))
        example = next(file for file, kind in kinds.items() if kind is not None)
        raise InspectError(
            f"{path} holds files of several formats ({listed}); a source reads one",
            f"name the files of one source, as in `vsc inspect {example}`, or give --format",
        )
    return next(iter(counted))


def _formats() -> str:
    return "give --format: " + ", ".join(FORMATS)


def _filter(ours: tuple[DataFile, ...], others: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The option that keeps Spark from reading files of an unknown or another format."""
    suffixes = {_suffix(file.path) for file in ours}
    if len(suffixes) == 1 and not any(other.endswith(next(iter(suffixes))) for other in others):
        return (("pathGlobFilter", f"*{next(iter(suffixes))}"),)
    listed = sorted(suffixes)
    return (("pathGlobFilter", "*{" + ",".join(listed) + "}"),)


def _suffix(path: str) -> str:
    name = os.path.basename(path)
    plain = name
    for packed in _COMPRESSED:
        plain = plain.removesuffix(packed)
    return os.path.splitext(plain)[1] + name[len(plain) :]


def _format_of(path: str) -> str | None:
    suffix = _suffix(path).lower()
    for packed in _COMPRESSED:
        suffix = suffix.removesuffix(packed)
    return _SUFFIXES.get(suffix) or _by_content(path)


def _by_content(path: str) -> str | None:
    try:
        with open_file(path) as file:
            start: bytes = file.read(_PEEK)
    except InspectError:
        return None
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"ORC"):
        return "orc"
    if b"\0" in start:
        return None
    if start.lstrip().startswith((b"{", b"[{")):
        return "json"
    lines = start.splitlines()[:2]
    if len(lines) == 2 and any(0 < lines[0].count(sign) == lines[1].count(sign) for sign in (b",", b";", b"\t", b"|")):
        return "csv"
    return None
