"""Code that several commands share: reading topologies, variables, writing output, colour."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress

from vsc.cli.errors import UsageError
from vsc.cli.problems import Problem, discard, tell
from vsc.compiler import files
from vsc.plan.parts import MODULE

__all__ = [
    "STDIN",
    "add_allow",
    "add_functions",
    "add_include_roots",
    "add_variables",
    "allowed_codes",
    "allowed_modules",
    "bounded",
    "print_payload",
    "read_stdin",
    "read_text",
    "read_texts",
    "topologies",
    "unknown_variables",
    "variables",
    "warn_unknown",
    "with_included",
    "write_file",
]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXAMPLE = "as in --var brokers=localhost:9092"

STDIN = "<stdin>"
"""The name of standard input in messages."""


def add_variables(parser: argparse.ArgumentParser) -> None:
    """Adds ``--var``."""
    parser.add_argument(
        "--var", metavar="NAME=VALUE", action="append", default=[], help="a value for ${NAME}; can be repeated"
    )


def variables(args: argparse.Namespace) -> Mapping[str, str]:
    """The variables that ``--var`` gives; the last value for a name wins. Raises `UsageError`."""
    found: dict[str, str] = {}
    for given in args.var:
        name, equals, value = given.partition("=")
        if not equals:
            raise UsageError("--var takes NAME=VALUE: a `=` is missing", _EXAMPLE)
        if not _NAME.fullmatch(name):
            raise UsageError(f"--var takes NAME=VALUE: `{name}` is not a name of letters, digits and `_`", _EXAMPLE)
        found[name] = value
    return found


def add_allow(parser: argparse.ArgumentParser) -> None:
    """Adds ``--allow``."""
    parser.add_argument(
        "--allow",
        metavar="CODES",
        action="append",
        default=[],
        help="warnings that are not shown and not denied, such as VSC313, separated by commas; can be repeated",
    )


def allowed_codes(args: argparse.Namespace) -> frozenset[str]:
    """The codes that ``--allow`` gives. Raises `UsageError` for one that is not a warning."""
    found = [code.strip() for given in args.allow for code in given.split(",")]
    if found:
        from vsc.compiler.allowances import cannot_allow

        for code in found:
            if (wrong := cannot_allow(code)) is not None:
                raise UsageError(f"--allow {code}: {wrong[0]}", wrong[1])
    return frozenset(found)


def add_include_roots(parser: argparse.ArgumentParser) -> None:
    """Adds ``--include-root``."""
    parser.add_argument(
        "--include-root",
        metavar="FOLDER",
        action="append",
        default=[],
        help="read files below this folder, too, such as those that topologies include (default: the working "
        "directory, and each PATH that lies elsewhere); can be repeated",
    )


def bounded(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Bounds the files that are read to the working directory, the paths that lie elsewhere, and ``--include-root``."""
    here = os.path.realpath(os.getcwd())
    found = [here, *args.include_root]
    for path in args.paths:
        is_pipe = os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
        place = path if is_pipe or os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
        if os.path.commonpath([os.path.realpath(place), here]) != here:
            found.append(place)
    return files.below(tuple(dict.fromkeys(found)))


def add_functions(parser: argparse.ArgumentParser) -> None:
    """Adds ``--functions``."""
    parser.add_argument(
        "--functions",
        metavar="MODULES",
        action="append",
        default=[],
        help="modules from which the topology may call functions, separated by commas; can be repeated",
    )


def allowed_modules(args: argparse.Namespace) -> tuple[str, ...]:
    """The modules that ``--functions`` gives, each once. Raises `UsageError`."""
    found = [name.strip() for given in args.functions for name in given.split(",")]
    for name in found:
        if not MODULE.fullmatch(name):
            raise UsageError(
                f"--functions takes names of modules: `{name}` is not one", "as in --functions scoring.rules"
            )
    return tuple(dict.fromkeys(found))


def unknown_variables(given: Mapping[str, str], texts: Iterable[str]) -> list[Problem]:
    """A warning for each of the variables `given` to which no topology refers."""
    if not given:
        return []
    from vsc.compiler.diagnostics.suggest import nearest
    from vsc.compiler.parser import variables_in

    known = frozenset[str]().union(*map(variables_in, texts))
    found = []
    for name in given:
        if name not in known:
            near = nearest(name, known)
            help = f"did you mean `--var {near}=...`?" if near else f"remove `--var {name}=...`"
            found.append(Problem(f"--var {name}: nothing refers to ${{{name}}}", help, severity="warning"))
    return found


def warn_unknown(given: Mapping[str, str], texts: Iterable[str]) -> bool:
    """Reports `unknown_variables`; returns whether there are any."""
    found = unknown_variables(given, texts)
    for problem in found:
        tell(problem)
    return bool(found)


def read_text(path: str) -> str:
    """The text of a file in UTF-8, with or without a byte order mark. Raises `UsageError`."""
    try:
        return files.read_text(path)
    except files.FileError as error:
        help = _near(path) if isinstance(error, files.MissingFileError) else error.help
        raise UsageError(error.message, help, error.code) from None


def _near(path: str) -> str | None:
    """The file beside a missing one that may be meant."""
    from vsc.compiler.diagnostics.suggest import nearest

    folder, name = os.path.split(path)
    try:
        found = nearest(name, os.listdir(folder or "."))
    except OSError:
        return None
    return None if found is None else f"did you mean `{os.path.join(folder, found)}`?"


def read_stdin() -> str:
    """The text on standard input, read as `read_text` reads a file."""
    try:
        return "" if sys.stdin is None else files.read_stream(sys.stdin.buffer, STDIN)
    except files.FileError as error:
        raise UsageError(error.message, error.help, error.code) from None


def read_texts(paths: Iterable[str]) -> tuple[dict[str, str], list[UsageError]]:
    """The texts of the readable files (``-`` is standard input), and an error for each of the others."""
    texts, unread = {}, []
    for path in dict.fromkeys(paths):
        try:
            if path == "-":
                texts[STDIN] = read_stdin()
            else:
                texts[path] = read_text(path)
        except UsageError as error:
            unread.append(error)
    return texts, unread


def with_included(paths: Iterable[str]) -> Iterator[str]:
    """Topologies, each with the files that it includes: what may change what the compiler says of it."""
    from vsc.compiler.driver import included_files

    for path in paths:
        yield path
        with suppress(UsageError):  # the command reports it
            yield from included_files(read_text(path), path)


def topologies(paths: Iterable[str]) -> Iterator[str]:
    """The files that `paths` mean, each once: a folder means all topologies in it, except those in hidden folders.

    Raises `UsageError` for a folder that has no topology, or cannot be read.
    """
    seen: set[str] = set()
    for path in paths:
        found = sorted(_inside(path)) if os.path.isdir(path) else [path]
        if not found:
            raise UsageError(f"{path} holds no topology", "name a topology (.vdsl) or a folder with topologies")
        yield from (one for one in found if one not in seen)
        seen.update(found)


def _inside(folder: str) -> Iterator[str]:
    for inside, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = os.path.join(inside, name)
            if name.endswith(".vdsl") and not (os.path.exists(path) and not os.path.isfile(path)):  # a pipe, say
                yield os.path.normpath(path)


def _unreadable(error: OSError) -> None:
    raise UsageError(f"{error.filename} cannot be read: {error.strerror}") from error


def print_payload(text: str) -> None:
    """Writes to standard output, always in UTF-8. Half of a surrogate pair, which the name of a file may have, is
    written as its code. It is not an error if the reader has closed the pipe.

    Raises `UsageError` if writing fails for another reason.
    """
    if sys.stdout is None:  # closed
        return
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as error:
        discard(sys.stdout)
        raise UsageError(f"standard output cannot be written: {_reason(error)}", "send it elsewhere") from None


def write_file(path: str, text: str) -> None:
    """Writes a file completely or not at all; an existing file keeps its permissions. Raises `UsageError`."""
    try:
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "w", encoding="utf-8") as file:  # a pipe, a terminal
                file.write(text)
            return
        target = os.path.realpath(path)
        beside = f"{target}.{os.getpid()}.tmp"
        try:
            with open(beside, "x", encoding="utf-8", newline="\n") as file:
                file.write(text)
            if os.path.exists(target):
                shutil.copymode(target, beside)
            os.replace(beside, target)
        finally:
            if os.path.exists(beside):
                os.unlink(beside)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be written: {_reason(error)}") from None


def _reason(error: OSError | ValueError) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
