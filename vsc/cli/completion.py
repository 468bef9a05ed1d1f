"""``vsc completion``: the completion script for a shell.

The scripts are package data. ``python -m tools.completions`` generates them from the commands' own arguments; a
test compares the two.
"""

from __future__ import annotations

import argparse
from importlib.resources import files

from vsc.cli.common import print_payload

__all__ = ["SHELLS", "add_arguments", "execute"]

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "to have it in every shell:\n"
        '  bash  add to ~/.bashrc: eval "$(vsc completion bash)"\n'
        "  zsh   vsc completion zsh > FOLDER/_vsc, with FOLDER in $fpath before compinit\n"
        "  fish  vsc completion fish > ~/.config/fish/completions/vsc.fish"
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def execute(args: argparse.Namespace) -> int:
    """Prints the script."""
    print_payload((files("vsc") / "completions" / f"vsc.{args.shell}").read_text(encoding="utf-8"))
    return 0
