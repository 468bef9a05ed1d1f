"""``--watch``: runs a command again whenever one of its files changes, until Ctrl-C.

Guarantees: no change is missed. The folders are watched before the files are read, so a change while a command runs
causes another run. Hidden folders are not watched.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, NoReturn

from vsc.cli.errors import UsageError
from vsc.cli.problems import tell
from vsc.extras import required

__all__ = ["add_watch", "watched"]

_POLL_MS = 50
_Stamps = dict[str, tuple[int, ...] | None]
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def add_watch(parser: argparse.ArgumentParser) -> None:
    """Adds ``--watch``."""
    parser.add_argument("--watch", action="store_true", help="run again whenever a file changes, until Ctrl-C")


def watched(command: str, paths: Sequence[str], files: Callable[[], Iterable[str]], run: Callable[[], int]) -> NoReturn:
    """Calls `run` now and after every change of `files`, which are in the folders of `paths` or next to their files.

    Ends with KeyboardInterrupt. Raises the `UsageError` of the first run; those of later runs are only reported.
    """
    if "-" in paths:
        raise UsageError(f"{command}: --watch does not take standard input", "name a file or a folder")
    changed: str | None = None
    while True:
        with closing(_changes(command, {*_folders(paths), *map(os.path.dirname, _stamps(files))})) as changes:
            before = _stamps(files)
            if changed is not None:
                _separate(f"changed: {os.path.relpath(changed)}")
            _tolerant(run, first=changed is None)
            tell("watching for changes; Ctrl-C ends")
            changed = next(path for batch in changes if batch for path in _changed(batch, before, _stamps(files)))


def _tolerant(run: Callable[[], int], first: bool) -> None:
    try:
        run()
    except UsageError as error:
        if first:
            raise
        tell(error)


def _changes(command: str, folders: Iterable[str]) -> Generator[list[str], None, None]:
    """The paths that change in `folders`, batch by batch. Watching starts with the call."""
    with required(f"{command} --watch"):
        from watchfiles import watch
    found = watch(*sorted(folders), watch_filter=None, recursive=False, yield_on_timeout=True, rust_timeout=_POLL_MS)
    try:
        next(found)  # starts watching; what it yields predates the first run
    except OSError as error:
        raise UsageError(f"{command}: --watch cannot watch the folders: {error}") from None
    return ([path for _, path in sorted(batch)] for batch in found)


def _changed(batch: Iterable[str], before: _Stamps, now: _Stamps) -> Iterator[str]:
    """The paths that call for another run: files that differ from before, folders that may be new."""
    yield from sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
    yield from filter(_visible_folder, batch)


def _stamps(files: Callable[[], Iterable[str]]) -> _Stamps:
    """The files, each with a stamp that differs after a change; None for a file that does not exist."""
    try:
        return {path: _stamp(path) for path in map(os.path.realpath, files())}
    except UsageError:  # the run reports it
        return {}


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _visible_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.basename(path).startswith(".")


def _folders(paths: Iterable[str]) -> Iterator[str]:
    """The folders to watch: the named ones, with all visible subfolders, and the folders of named files."""
    for path in map(os.path.realpath, paths):
        if os.path.isdir(path):
            for folder, inside, _ in os.walk(path):
                inside[:] = [name for name in inside if not name.startswith(".")]
                yield folder
        else:
            while not os.path.isdir(path):
                path = os.path.dirname(path)
            yield path


def _separate(title: str) -> None:
    """Begins another run: on a cleared screen, or after an empty line if the screen cannot be cleared."""
    screen: Any = sys.stderr
    clears = screen is not None and screen.isatty() and os.environ.get("TERM") != "dumb"
    tell(f"{_CLEAR}{title}" if clears else f"\n{title}")
