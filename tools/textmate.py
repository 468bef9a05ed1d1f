"""The grammar of the extension for VS Code: ``python -m tools.textmate`` writes it."""

from __future__ import annotations

import json
from pathlib import Path

from vsc.compiler.coloring import Kind, coloring

PATH = Path(__file__).parents[1] / "editors" / "vscode" / "syntaxes" / "vdsl.tmLanguage.json"
_SCOPES: dict[Kind, str] = {
    "comment": "comment.line.double-dash",
    "string": "string.quoted.single",
    "variable": "variable.other.readwrite",
    "declaration": "storage.type",
    "node": "entity.name.type",
    "name": "variable.other",
    "float": "constant.numeric.decimal",
    "integer": "constant.numeric.integer",
    "unit": "keyword.other.unit",
    "function": "support.function",
    "operator": "keyword.operator",
    "word operator": "keyword.operator.word",
    "constant": "constant.language",
    "type": "support.type",
    "keyword": "keyword.other",
    "punctuation": "punctuation",
}


def grammar() -> str:
    """The text of the grammar."""
    document = {
        "$comment": "Written by `python -m tools.textmate` from the compiler's words: do not edit.",
        "name": "vsc topology",
        "scopeName": "source.vdsl",
        "patterns": [_pattern(rule.pattern, rule.kinds) for rule in coloring()],
    }
    return json.dumps(document, indent=2) + "\n"


def _pattern(pattern: str, kinds: tuple[Kind, ...]) -> dict[str, object]:
    scopes = [f"{_SCOPES[kind]}.vdsl" for kind in kinds]
    if kinds == ("string",):  # it may go over several lines, and a grammar matches line by line
        escaped = {"match": "''", "name": "constant.character.escape.vdsl"}
        return {"name": scopes[0], "begin": "'", "end": "'(?!')", "patterns": [escaped]}
    if len(scopes) == 1:
        return {"name": scopes[0], "match": pattern}
    return {"match": pattern, "captures": {str(number): {"name": name} for number, name in enumerate(scopes, 1)}}


if __name__ == "__main__":
    PATH.write_text(grammar())
