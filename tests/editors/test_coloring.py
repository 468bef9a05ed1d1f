"""Colours: of Pygments, of the extension's grammar, and that both come from the language's own words."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String, _TokenType

from tools.textmate import PATH, grammar
from vsc.compiler.coloring import coloring
from vsc.compiler.parser.tables import load_tables
from vsc.highlight import VdslLexer

ROOT = Path(__file__).parents[2]
TOPOLOGIES = sorted([*ROOT.glob("examples/*/*.vdsl"), *ROOT.glob("tests/golden/*.vdsl")])


def colored(text: str) -> list[tuple[_TokenType, str]]:
    return [(kind, part) for kind, part in VdslLexer().get_tokens(text) if part.strip()]


def test_the_grammar_is_what_the_generator_writes() -> None:
    assert PATH.read_text(encoding="utf-8") == grammar()


def test_the_kinds_of_words() -> None:
    found = dict(
        (part, kind)
        for kind, part in colored(
            "-- text\ntable rates (at timestamp, `a b` decimal(12, 2)) from files (path = '${x}''y') timestamp at\n"
            "materialize versioned (retention = 7 days);\n"
            "table t = aggregate rates group by a select round(sum(n) * 1.5, 2) as usd, ${smallest} is not null;"
        )
    )
    for part, kind in {
        "-- text": Comment.Single, "table": Keyword.Declaration, "rates": Name, "at": Name, "`a b`": Name,
        "decimal": Keyword.Type, "'${x}''y'": String.Single, "materialize": Keyword, "retention": Name,
        "days": Keyword.Type, "7": Number.Integer, "t": Name.Class, "sum": Name.Builtin, "1.5": Number.Float,
        "*": Operator, "${smallest}": Name.Variable, "not": Operator.Word, "null": Keyword.Constant,
    }.items():  # fmt: skip
        assert (part, found[part]) == (part, kind)


def test_a_word_is_a_type_or_a_clause_by_what_follows() -> None:
    kinds = [
        kind for kind, part in colored("stream s (at timestamp,\n b timestamp\n)\ntimestamp at;") if part == "timestamp"
    ]
    assert kinds == [Keyword.Type, Keyword.Type, Keyword]


def test_every_keyword_is_coloured_and_no_other_word() -> None:
    for word in load_tables().words:
        [(kind, _), *_] = colored(f"{word} x")  # at the end of a line, `timestamp` is a type
        assert kind in (Keyword, Keyword.Constant, Operator.Word), word
    assert colored("keys")[0][0] is Name


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_nothing_in_a_topology_is_without_a_colour(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = list(VdslLexer().get_tokens(text))
    assert "".join(part for _, part in found).strip() == text.strip()
    assert [part for kind, part in found if kind is Error] == []


def test_pygments_finds_the_lexer_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pygments.lexers"] == {"vdsl": "vsc.highlight:VdslLexer"}


def test_the_grammar_matches_line_by_line_what_the_rules_match() -> None:
    patterns = json.loads(PATH.read_text(encoding="utf-8"))["patterns"]
    matches = [p.get("match") for p in patterns]
    assert [m for m in matches if m is not None] == [r.pattern for r in coloring() if r.kinds != ("string",)]
    assert all(re.compile(m) for m in matches if m is not None)
    [string] = [p for p in patterns if "begin" in p]
    assert (string["begin"], string["end"]) == ("'", "'(?!')")
