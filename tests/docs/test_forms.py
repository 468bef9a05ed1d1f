"""The forms in the documents have the clauses that the grammar has, in its order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vsc.grammar.forms import Form, forms, operations

DOCS = Path(__file__).parents[2] / "docs"
_FORM = re.compile(r"`(?:\[[a-z|\\]+\] )?([a-z_]+) [A-Z][^`]*`")
_SHORT = {"MATERIALIZE": "materialize", "WINDOW": "window", "WHERE": "where"}


def written() -> list[tuple[str, str]]:
    """Operations with their forms: in the table of the language, and at the head of each operator's page."""
    pages = [page.read_text().split("```")[0] for page in sorted((DOCS / "operators").glob("*.md"))]
    [table] = re.findall(r"\| operation \| on \| gives \|\n((?:\|.*\n)+)", (DOCS / "language.md").read_text())
    cells = [line.split(" | ")[0] for line in table.splitlines()]
    found = [(match[1], " ".join(match[0].split())) for text in (*cells, *pages) for match in _FORM.finditer(text)]
    return [(word, form) for word, form in found if word in operations()]


def clauses(form: str, known: Form) -> list[str]:
    """The first words of the clauses in a form of a document, but those inside others: ``correct ... within``."""
    words = [_SHORT.get(word, word) for word in re.findall(r"[A-Za-z_]+", form)]
    own = {clause.word: set(re.findall(r"[a-z_]+", clause.form)) for clause in known.clauses}
    found: list[str] = []
    for word in words[1:]:
        if word in own and not (found and word in own[found[-1]]):
            found.append(word)
    return found


@pytest.mark.parametrize(("word", "form"), written())
def test_the_clauses_of_a_form_stand_in_the_order_of_the_grammar(word: str, form: str) -> None:
    known = forms()[operations()[word]]
    found = clauses(form, known)
    assert found == [clause.word for clause in known.clauses if clause.word in found]
    assert {clause.word for clause in known.clauses if not clause.optional} <= set(found)


def test_every_clause_of_every_operation_is_in_the_table_of_the_language() -> None:
    found: dict[str, set[str]] = {}
    for word, form in written():
        name = operations()[word]
        found.setdefault(name, set()).update(clauses(form, forms()[name]))
    assert found == {name: {c.word for c in forms()[name].clauses} for name in set(operations().values())}
