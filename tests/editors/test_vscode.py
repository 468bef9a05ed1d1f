"""The extension for VS Code: what it says of itself is so."""

from __future__ import annotations

import json
from pathlib import Path

from vsc import __version__

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))


VERSION = __version__.partition("rc")[0]
"""A marketplace takes three numbers and nothing behind them."""


def test_the_extension_has_the_version_of_vsc_and_starts_its_server() -> None:
    assert PACKAGE["version"] == VERSION
    assert PACKAGE["contributes"]["configuration"]["properties"]["vsc.command"]["default"] == ["vsc", "lsp"]
    locked = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))
    assert locked["packages"][""]["version"] == VERSION


def test_the_files_that_it_names_are_there() -> None:
    named = [PACKAGE["main"]]
    named += [language["configuration"] for language in PACKAGE["contributes"]["languages"]]
    named += [grammar["path"] for grammar in PACKAGE["contributes"]["grammars"]]
    assert [name for name in named if not (FOLDER / name).is_file()] == []
    json.loads((FOLDER / "language-configuration.json").read_text(encoding="utf-8"))
