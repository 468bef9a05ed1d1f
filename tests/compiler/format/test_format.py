"""The formatter: the same topology, the same comments, the same text when it is formatted again."""

from __future__ import annotations

import dataclasses
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_topologies.topology import generate
from vsc.compiler.diagnostics.model import TopologyError
from vsc.compiler.format import format_topology
from vsc.compiler.parser import parse
from vsc.compiler.parser.lexer import tokenize
from vsc.compiler.source import Span

TESTS = Path(__file__).parents[2]
STYLE = Path(__file__).parent
COMMENT = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)+`|(--[^\n]*)")


def texts() -> list[str]:
    """Topologies that can be read: written by hand, for the most part in good style, and generated ones."""
    files = [
        *TESTS.glob("golden/*.vdsl"),
        *TESTS.glob("compiler/passes/fixtures/*.vdsl"),
        *TESTS.parent.glob("examples/*/*.vdsl"),
    ]
    found = [path.read_text() for path in sorted(files) if path.name != "resolve.vdsl"]  # that has a syntax error
    found += [generate(random.Random(seed)).text() for seed in range(25)]
    return [(STYLE / "untidy.vdsl").read_text(), *found]


TEXTS = texts()


def meaning(tree: Any) -> Any:
    """A tree without its places."""
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        values = {field.name: getattr(tree, field.name) for field in dataclasses.fields(tree)}
        return type(tree).__name__, {k: meaning(v) for k, v in values.items() if not isinstance(v, Span)}
    return [meaning(one) for one in tree] if isinstance(tree, tuple | list) else (type(tree), tree)


def comments(text: str) -> list[str]:
    return [found.rstrip() for found in COMMENT.findall(text) if found]


def check(text: str) -> str:
    """Formats the text; what has to hold of every text does."""
    formatted = format_topology(text)
    assert meaning(parse(formatted, {"late": "1 day"}).file) == meaning(parse(text, {"late": "1 day"}).file)
    assert comments(formatted) == comments(text)
    assert format_topology(formatted) == formatted
    return formatted


@pytest.mark.quick(4)
@pytest.mark.parametrize("text", TEXTS)
def test_a_topology_stays_what_it_is(text: str) -> None:
    assert "\n\n\n" not in check(text)
    tokens, _ = tokenize(text)
    words = [tokens.word(index) for index in range(len(tokens.kinds))]
    assert check(" ".join(words)) == check("\n".join(words))


@pytest.mark.slow
@pytest.mark.long
@settings(max_examples=int(os.environ.get("VSC_COMMENTS", "100")), deadline=None)
@given(st.data())
def test_comments_and_blanks_anywhere_stay_in_place(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    tokens, _ = tokenize(text)
    spaces = [match.start() for match in re.finditer(r"(?<=[0-9]) +(?=[a-z])", text) if "'" not in text]
    spans = list(zip(tokens.starts, tokens.ends, strict=True))  # a comment has such a space, too
    inside = [place for place in spaces if any(start < place < end for start, end in spans)]
    borders = sorted({*tokens.starts, *tokens.ends, *inside})
    chosen = data.draw(st.lists(st.sampled_from(borders), max_size=6, unique=True))
    blanks = st.sampled_from(
        ["\n", "\n\n", "\n\n\n", " ", "  -- a comment\n", "\n-- a line\n", "\n\n-- apart \n\n", " --x\n --y\n"]
    )
    for place in sorted(chosen, reverse=True):
        text = text[:place] + data.draw(blanks) + text[place:]
    check(text)


def test_the_style_in_one_file() -> None:
    tidy = (STYLE / "tidy.vdsl").read_text()
    assert format_topology((STYLE / "untidy.vdsl").read_text()) == tidy
    assert max(map(len, tidy.splitlines())) <= 100


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("", ""),
        ("\n\n", ""),
        (";;", ""),
        ("\n\n-- only\n\n\n-- comments\n\n", "-- only\n\n-- comments\n"),
        ("\nsink a to b();\n\n\n\nsink c to d();", "sink a to b ();\n\nsink c to d ();\n"),
        ("sink a to b();sink c to d();", "sink a to b ();\nsink c to d ();\n"),
        ("sink a to b(); -- x\n-- y\n\nsink c to d();", "sink a to b (); -- x\n-- y\n\nsink c to d ();\n"),
        ("\ufeffsink a to b();\r\n-- x\t \r\nsink c to d();\r\n", "sink a to b ();\n-- x\nsink c to d ();\n"),
        ("sink a to b ('c' = 'd\r\ne');", "sink a to b (\n  'c' = 'd\r\ne'\n);\n"),
    ],
)
def test_what_is_between_statements(text: str, formatted: str) -> None:
    assert format_topology(text) == formatted
    assert format_topology(formatted) == formatted


@pytest.mark.parametrize("columns", [100, 101])
def test_a_statement_breaks_behind_100_columns(columns: int) -> None:
    statement = f"stream a = filter b where c = {'d' * (columns - 31)};"
    assert len(statement) == columns
    broken = f"stream a =\n  filter b\n  where c = {'d' * (columns - 31)};"
    assert format_topology(statement) == (statement if columns == 100 else broken) + "\n"


@pytest.mark.parametrize("text", ["stream a", "stream a (b int) from memory () key b", "sink a to b (c == 1);", "{}"])
def test_a_syntax_error_is_that_of_check(text: str) -> None:
    with pytest.raises(TopologyError) as refused:
        format_topology(text, "a.vdsl")
    assert [(d.path, d.code, d.message) for d in refused.value.diagnostics] == [
        ("a.vdsl", finding.code, finding.message) for finding in parse(text).findings if finding.code != "VSC013"
    ]


def test_what_is_wrong_beyond_the_syntax_does_not_matter() -> None:
    text = "stream a (b strin) key b key c;\nstream d = filter e where f = ${unknown};\n"
    assert [finding.code for finding in parse(text).findings] == ["VSC012", "VSC016", "VSC011", "VSC014"]
    assert format_topology(text) == text


@pytest.mark.parametrize("call", ["abs({})", "({})", "case when {} then 1 end", "a[{}]", "a + ({})", "f(a, {})"])
def test_deep_nesting_takes_no_longer_than_it_is_deep(call: str) -> None:
    expression = "a"
    for _ in range(40):
        expression = call.format(expression)
    check(f"stream b = map c select {expression} as d;")
