"""``vsc init``: creates a small project that runs: topology, sample data, scenarios, workflow, pre-commit.

It writes nothing if one of its files already exists.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from vsc.cli.common import write_file
from vsc.cli.errors import UsageError
from vsc.cli.problems import tell

__all__ = ["add_arguments", "execute"]

_PLACEHOLDER = "PROJECT"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "folder", metavar="NAME", nargs="?", default=".", help="the project's folder (default: this folder)"
    )


def execute(args: argparse.Namespace) -> int:
    """Creates the project."""
    name = _name(args.folder)
    made = {os.path.join(args.folder, path): text for path, text in _template(files("vsc") / "template", "")}
    taken = sorted(path for path in made if os.path.lexists(path))
    if taken:
        raise UsageError(f"{os.path.normpath(taken[0])} already exists", "choose another folder: vsc init NAME")
    for path, text in made.items():
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        except OSError as error:
            raise UsageError(f"{os.path.dirname(path)} cannot be created: {error.strerror}") from error
        write_file(path, text.replace(_PLACEHOLDER, name))
    inside = "" if args.folder == "." else f"cd {args.folder} && "
    tell(f"{len(made)} files created in {args.folder}; next: {inside}vsc test .")
    return 0


def _name(folder: str) -> str:
    """The topology's name: the folder's name, with `_` for characters that a name cannot have."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", os.path.basename(os.path.abspath(folder))).strip("_")
    if not name:
        raise UsageError(f"`{folder}` gives no name for a topology", "name the folder with letters: vsc init NAME")
    from vsc.compiler.parser.tables import load_tables

    tables = load_tables()
    if tables.words.get(name) in tables.reserved:
        return f"{name}_"
    return f"_{name}" if name[0].isdigit() else name


def _template(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
    """The files of the template: each one's path in the project, and its text."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        inside = os.path.join(path, re.sub(r"^dot-", ".", entry.name))
        if entry.is_dir():
            yield from _template(entry, inside)
        else:
            yield inside, entry.read_text(encoding="utf-8")
