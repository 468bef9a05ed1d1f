"""Diagnostics in the forms in which they are shown."""

from __future__ import annotations

import json

import jsonschema

from vsc.compiler.diagnostics.model import Diagnostic, Related
from vsc.compiler.diagnostics.render import render_problem, render_text, summary
from vsc.compiler.diagnostics.render_machine import render_concise, render_github, render_json, render_sarif
from vsc.compiler.source import SourceFile

TEXT = "table rates = a;\n\n\nstream priced =\n\tgrace 5 minutes;\n漢字 = x\x1b[31m y\n"
SOURCE = SourceFile("a/b, c.vdsl", TEXT)
GRACE = Diagnostic(
    "VSC303", "error", "`grace` needs 100% of\nit", SOURCE.path, 5, 2, 5, 17,
    (Related("`rates` is unversioned", SOURCE.path, 1, 7, 1, 12), Related("here", SOURCE.path, 5, 8, 5, 9)),
    "write `materialize`",
)  # fmt: skip
WIDE = Diagnostic("VSC123", "warning", "w", SOURCE.path, 6, 4, 6, 5, (), None)
LONG = Diagnostic("VSC305", "error", "long", SOURCE.path, 4, 8, 5, 3, (), None)
END = Diagnostic("VSC006", "error", "missing", SOURCE.path, 1, 17, 1, 17, (), None)

# What SARIF 2.1.0's schema asks of the parts that are written here.
_REGION = {
    "type": "object",
    "required": ["startLine", "startColumn", "endLine", "endColumn"],
    "properties": {
        place: {"type": "integer", "minimum": 1} for place in ("startLine", "startColumn", "endLine", "endColumn")
    },
    "additionalProperties": False,
}  # fmt: skip
_MESSAGE = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string"}},
    "additionalProperties": False,
}
_PHYSICAL = {
    "type": "object",
    "required": ["artifactLocation", "region"],
    "properties": {
        "artifactLocation": {
            "type": "object",
            "required": ["uri"],
            "properties": {"uri": {"type": "string", "pattern": "^[^ ]+$"}},
            "additionalProperties": False,
        },
        "region": _REGION,
    },
    "additionalProperties": False,
}
_LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {"id": {"type": "integer", "minimum": -1}, "physicalLocation": _PHYSICAL, "message": _MESSAGE},
    "additionalProperties": False,
}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "additionalProperties": False,
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "additionalProperties": False,
                                            "properties": {
                                                "id": {"type": "string"},
                                                "shortDescription": _MESSAGE,
                                                "help": _MESSAGE,
                                                "defaultConfiguration": {
                                                    "type": "object",
                                                    "properties": {"level": _LEVEL},
                                                    "additionalProperties": False,
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "level": _LEVEL,
                                "message": _MESSAGE,
                                "locations": {"type": "array", "items": _LOCATION},
                                "relatedLocations": {"type": "array", "uniqueItems": True, "items": _LOCATION},
                            },
                        },
                    },
                },
            },
        },
    },
}


def test_text() -> None:
    assert render_text([GRACE], {SOURCE.path: SOURCE}) == (
        "error[VSC303]: `grace` needs 100% of<U+000A>it\n"
        " --> a/b, c.vdsl:5:2\n"
        "  |\n"
        "1 | table rates = a;\n"
        "  |       ----- `rates` is unversioned\n"
        "...\n"
        "5 |     grace 5 minutes;\n"
        "  |     ^^^^^^^^^^^^^^^\n"
        "  |           - here\n"
        "  |\n"
        "  = help: write `materialize`\n"
        "\n"
    )


def test_marks_stand_under_wide_characters_and_nothing_reaches_the_terminal_from_the_source() -> None:
    text = render_text([WIDE], {SOURCE.path: SOURCE})
    assert "6 | 漢字 = x<U+001B>[31m y\n  |      ^\n" in text
    assert "\x1b" not in text


def test_a_place_over_several_lines_is_shown_by_its_first_and_an_empty_one_by_one_mark() -> None:
    assert "4 | stream priced =\n  |        ^^^^^^^^\n" in render_text([LONG], {SOURCE.path: SOURCE})
    assert "1 | table rates = a;\n  |                 ^\n" in render_text([END], {SOURCE.path: SOURCE})


def test_of_a_long_line_the_part_around_the_mark_is_shown() -> None:
    line = "-" * 300 + "漢x" + "=" * 300
    source = SourceFile("l", line)
    first = Diagnostic("VSC001", "error", "m", "l", 1, 2, 1, 4, (Related("there", "l", 1, 302, 1, 900),), None)
    assert render_text([first], {"l": source}) == (
        "error[VSC001]: m\n"
        " --> l:1:2\n"
        "  |\n"
        f"1 | {'-' * 160}...\n"
        "  |  ^^\n"
        f"1 | ...{'-' * 39}漢x{'=' * 119}...\n"
        f"  | {' ' * 44}{'-' * 120} there\n\n"
    )


def test_colour_is_asked_for() -> None:
    assert render_text([WIDE], {}, color=True).startswith("\x1b[1;33mwarning[VSC123]\x1b[0m\x1b[1m: w\x1b[0m\n")
    assert "\x1b" not in render_text([GRACE], {SOURCE.path: SOURCE})


def test_summary() -> None:
    assert summary([GRACE, WIDE, END]) == "2 errors, 1 warning"
    assert summary([]) == "no findings"


def test_concise() -> None:
    assert render_concise([GRACE, WIDE]) == (
        "a/b, c.vdsl:5:2: VSC303 error: `grace` needs 100% of<U+000A>it\na/b, c.vdsl:6:4: VSC123 warning: w\n"
    )


def test_json() -> None:
    assert json.loads(render_json([GRACE])) == [
        {
            "code": "VSC303", "severity": "error", "message": "`grace` needs 100% of\nit", "path": "a/b, c.vdsl",
            "line": 5, "column": 2, "end_line": 5, "end_column": 17,
            "related": [
                {"message": "`rates` is unversioned", "line": 1, "column": 7, "end_line": 1, "end_column": 12},
                {"message": "here", "line": 5, "column": 8, "end_line": 5, "end_column": 9},
            ],
            "help": "write `materialize`",
        }
    ]  # fmt: skip
    assert json.loads(render_json([])) == []


def test_github() -> None:
    assert render_github([GRACE]) == (
        "::error file=a/b%2C c.vdsl,line=5,col=2,endLine=5,endColumn=17,"
        "title=VSC303%3A `grace` on a join with an unversioned table::"
        "`grace` needs 100%25 of%0Ait%0Ahelp: write `materialize`\n"
    )


def test_sarif() -> None:
    log = json.loads(render_sarif([GRACE, WIDE, GRACE]))
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["VSC123", "VSC303"]
    assert [(result["ruleId"], result["ruleIndex"]) for result in run["results"]] == [
        ("VSC303", 1), ("VSC123", 0), ("VSC303", 1),
    ]  # fmt: skip
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "a/b%2C%20c.vdsl"},
        "region": {"startLine": 5, "startColumn": 2, "endLine": 5, "endColumn": 17},
    }
    jsonschema.validate(json.loads(render_sarif([])), SARIF)


def test_what_has_no_place_is_shown_in_the_same_form() -> None:
    shown = render_problem("error", "VSC905", "no such file\n\x1bx", "look elsewhere")
    assert shown == "error[VSC905]: no such file\n<U+001B>x\n = help: look elsewhere"
    assert render_problem("warning", None, "w", None) == "warning: w"
    colored = render_problem("error", "VSC905", "m", "h", color=True)
    assert colored == "\x1b[1;31merror[VSC905]\x1b[0m\x1b[1m: m\x1b[0m\n \x1b[34m=\x1b[0m \x1b[1;36mhelp\x1b[0m: h"
    (head, _, *_, help) = render_text([GRACE], {SOURCE.path: SOURCE}, color=True).splitlines()[:-1]
    assert head.startswith("\x1b[1;31merror[VSC303]\x1b[0m\x1b[1m: ")
    assert help.endswith(" \x1b[34m=\x1b[0m \x1b[1;36mhelp\x1b[0m: write `materialize`")
