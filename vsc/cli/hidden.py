"""The command line without the values in it (``--var NAME=VALUE``, ``--conf KEY=VALUE``), which may be secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from vsc.cli.errors import UsageError
from vsc.cli.properties import properties
from vsc.plan.connectors.facts import VARIABLE
from vsc.plan.secrets import HIDDEN, instead_of_secret, is_secret, masked

__all__ = ["cover_values", "without_secrets", "without_values"]

_PAIR = re.compile(r"\A(--[^=]*=[^=]*=|(?!--)[^=]*=)(.*)", re.DOTALL)
_FILE = "--properties-file"
_STAT_START, _STAT_END = 45, 46
"""Where ``/proc/PID/stat`` says, behind the name, at which addresses the command line begins and ends."""


def without_values(arguments: Iterable[str]) -> str:
    """The arguments as one line."""
    return " ".join(_PAIR.sub(rf"\1{HIDDEN}", argument) for argument in arguments)


def without_secrets(text: str, arguments: Iterable[str]) -> str:
    """A text without the values on the command line, those of variables that its files use, the secrets in its file of
    settings, and what looks secret."""
    given = [*arguments]
    for value in sorted({*_values(given), *_environment(given), *_settings(given)}, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return masked(text)


def cover_values() -> None:
    """Writes over the values on this process's command line, where Linux shows it to all users (``ps``)."""
    try:
        line = Path("/proc/self/cmdline").read_bytes()
        stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(stat[_STAT_START]), int(stat[_STAT_END])
    except (OSError, ValueError, IndexError):
        return
    spans: list[tuple[int, int]] = []
    at = 0
    for argument in line.split(b"\0"):
        found = _PAIR.fullmatch(argument.decode("latin-1"))
        if found is not None and found[2]:
            spans.append((at + found.start(2), len(found[2])))
        at += len(argument) + 1
    if not spans:
        return
    import ctypes

    if 0 < start < end and ctypes.string_at(start, end - start) == line:
        for offset, length in spans:
            ctypes.memset(start + offset, ord("*"), length)


def _values(arguments: Iterable[str]) -> Iterator[str]:
    """The values that `without_values` leaves out, except empty ones."""
    return (match[2] for argument in arguments if (match := _PAIR.fullmatch(argument)) is not None and match[2])


def _settings(arguments: Sequence[str]) -> Iterator[str]:
    """The values that are secret, or hold one, in the file of ``--properties-file``."""
    for option, argument in zip(["", *arguments], arguments, strict=False):
        name, _, path = argument.partition("=")
        if option == _FILE or name == _FILE:
            with suppress(UsageError):  # of a file that cannot be read, nothing can be shown
                for setting, (value, _) in properties(argument if option == _FILE else path).items():
                    if value and (is_secret(setting) or instead_of_secret(value) is not None):
                        yield value


def _with_included(arguments: Iterable[str]) -> Iterator[str]:
    """The files on the command line, and those that they include."""
    for path in filter(os.path.isfile, arguments):
        yield path
        if path.endswith(".vdsl"):
            from vsc.compiler.driver import included_files
            from vsc.compiler.files import read_text

            with suppress(Exception):  # what is reported may be that the compiler fails on it
                yield from included_files(read_text(path), path)


def _environment(arguments: Iterable[str]) -> Iterator[str]:
    """The values of variables of the environment that are secret by name, or that a file on the command line uses."""
    used = {name for name in os.environ if is_secret(name)}
    for path in _with_included(arguments):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                used |= set(VARIABLE.findall(file.read(1 << 20)))
        except (OSError, ValueError):
            continue
    return (os.environ[name] for name in used if os.environ.get(name))
