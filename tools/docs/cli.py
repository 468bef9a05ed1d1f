"""Writes the page of the command line from its parser: ``python -m tools.docs.cli``.

A test says when that has been forgotten.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from pathlib import Path

from vsc.cli import whole_parser

__all__ = ["pages"]

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
INTRODUCTION = """\
# Command line

Every command takes `--help`. Exit status: 0 if all is well; 1 if something is wrong with a topology, a test or a file;
2 for wrong use. `vsc run` [has more](running.md).
"""


def pages() -> dict[Path, str]:
    """The page as it should be."""
    return {_PAGE: "\n".join([INTRODUCTION, *_commands(whole_parser(), "##")])}


def _commands(parser: argparse.ArgumentParser, level: str) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _command(inner, name if level == "##" else inner.prog.removeprefix("vsc "), level)


def _command(parser: argparse.ArgumentParser, name: str, level: str) -> Iterator[str]:
    yield f"{level} vsc {name}\n"
    if parser.description:
        yield textwrap.fill(parser.description, 118, break_on_hyphens=False) + "\n"
    for title, arguments in _groups(parser):
        yield f"{title}| argument | meaning |\n|---|---|"
        yield "\n".join(f"| {_form(action)} | {_meaning(action)} |" for action in arguments) + "\n"
    yield from _commands(parser, level + "#")


def _groups(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[argparse.Action]]]:
    """The arguments in groups, each with what stands above it; the parser's own two are one, without a title."""
    shown = [
        action
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
        and action.help != argparse.SUPPRESS
    ]
    titled = parser._action_groups[2:]
    apart = [action for group in titled for action in group._group_actions]
    own = [action for action in shown if action not in apart]
    if own:
        yield "", own
    for group in titled:
        inside = [action for action in shown if action in group._group_actions]
        if inside:
            yield f"{str(group.title)[:1].upper()}{str(group.title)[1:]}:\n\n", inside


def _form(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None:
        metavar = "{" + ", ".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return f"`{metavar}`" + {"*": " ...", "+": " ..."}.get(str(action.nargs), "")
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    return names if action.nargs == 0 else f"{names} `{metavar}`"


def _meaning(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%").replace("|", "\\|")


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
