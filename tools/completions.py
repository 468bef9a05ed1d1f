"""The completion scripts, made from the parser by shtab: ``python -m tools.completions`` writes them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import shtab

from vsc.cli import whole_parser
from vsc.cli.completion import SHELLS

FOLDER = Path(__file__).parents[1] / "vsc" / "completions"
_FILES = {"FILE", "PATH", "OUT"}
_FOLDERS = {"DIR"}


def script(shell: str) -> str:
    """The script for a shell."""
    parser = whole_parser()
    for action in _actions(parser):
        if action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell)).rstrip("\n") + "\n"


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for shell in SHELLS:
        (FOLDER / f"vsc.{shell}").write_text(script(shell))
