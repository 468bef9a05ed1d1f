"""``vsc lsp``: answers an editor on standard input and output. Never starts a JVM."""

from __future__ import annotations

import argparse

from vsc.extras import required

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.description = (
        "Serve an editor over the Language Server Protocol, on standard input and output. "
        "Editors start this command themselves; docs/editors says how to set them up."
    )


def execute(args: argparse.Namespace) -> int:
    """Serves until the editor ends the connection."""
    with required("vsc lsp", "lsp"):
        from vsc.lsp.server import serve
    serve()
    return 0
