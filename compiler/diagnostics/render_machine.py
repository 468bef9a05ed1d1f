"""Renders diagnostics for programs: one line each, JSON, SARIF 2.1.0, or GitHub's workflow commands."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.diagnostics.model import Diagnostic, Related
from vsc.compiler.diagnostics.render import visible

__all__ = ["RENDERERS", "render_concise", "render_github", "render_json", "render_sarif"]

_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render_concise(diagnostics: Sequence[Diagnostic]) -> str:
    """One line per diagnostic: ``path:line:column: code severity: message``."""
    return "".join(
        f"{visible(d.path)}:{d.line}:{d.column}: {d.code} {d.severity}: {visible(d.message)}\n" for d in diagnostics
    )


def render_json(diagnostics: Sequence[Diagnostic]) -> str:
    """A JSON array of objects. Lines and columns are 1-based, ends are exclusive.

    A related place has a path where it is in another file.
    """
    return json.dumps([_as_object(diagnostic) for diagnostic in diagnostics], indent=2) + "\n"


def _as_object(d: Diagnostic) -> dict[str, Any]:
    return {
        "code": d.code,
        "severity": d.severity,
        "message": d.message,
        "path": d.path,
        "line": d.line,
        "column": d.column,
        "end_line": d.end_line,
        "end_column": d.end_column,
        "related": [
            {
                "message": r.message,
                **({} if r.path == d.path else {"path": r.path}),
                "line": r.line,
                "column": r.column,
                "end_line": r.end_line,
                "end_column": r.end_column,
            }
            for r in d.related
        ],
        "help": d.help,
    }


def render_sarif(diagnostics: Sequence[Diagnostic]) -> str:
    """A SARIF 2.1.0 log with one run. It lists a rule for each code that occurs."""
    from vsc import __version__

    codes = sorted({d.code for d in diagnostics})
    rules = [
        {
            "id": code,
            "shortDescription": {"text": CODES[code].title},
            "help": {"text": f"vsc explain {code}"},
            "defaultConfiguration": {"level": CODES[code].severity},
        }
        for code in codes
    ]
    log = {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "vsc", "version": __version__, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(d, codes.index(d.code)) for d in diagnostics],
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def _result(d: Diagnostic, rule: int) -> dict[str, Any]:
    text = d.message if d.help is None else f"{d.message}\nhelp: {d.help}"
    result: dict[str, Any] = {
        "ruleId": d.code,
        "ruleIndex": rule,
        "level": d.severity,
        "message": {"text": text},
        "locations": [{"physicalLocation": _physical(d.path, d)}],
    }
    if d.related:
        result["relatedLocations"] = [
            {"id": n, "physicalLocation": _physical(r.path, r), "message": {"text": r.message}}
            for n, r in enumerate(d.related)
        ]
    return result


def _physical(path: str, place: Diagnostic | Related) -> dict[str, Any]:
    region = {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }
    return {"artifactLocation": {"uri": _uri(path)}, "region": region}


def _uri(path: str) -> str:
    from urllib.parse import quote

    quoted = quote(os.fsencode(path.replace("\\", "/")))
    return f"file://{quoted}" if path.startswith("/") else quoted


def render_github(diagnostics: Sequence[Diagnostic]) -> str:
    """GitHub's workflow commands, with which each finding is shown at its line in a pull request."""
    return "".join(_command(diagnostic) for diagnostic in diagnostics)


def _command(d: Diagnostic) -> str:
    properties = {
        "file": d.path,
        "line": d.line,
        "col": d.column,
        "endLine": d.end_line,
        "endColumn": d.end_column,
        "title": f"{d.code}: {CODES[d.code].title}",
    }
    written = ",".join(f"{name}={_escaped_property(str(value))}" for name, value in properties.items())
    text = d.message if d.help is None else f"{d.message}\nhelp: {d.help}"
    return f"::{d.severity} {written}::{_escaped(text)}\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


RENDERERS: dict[str, Callable[[Sequence[Diagnostic]], str]] = {
    "concise": render_concise,
    "json": render_json,
    "sarif": render_sarif,
    "github": render_github,
}
"""The renderers, by the name of the format."""
