"""What a keyword begins: the form of its operation or of its clause."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vsc.compiler.parser.expect import Expected, expected_at
from vsc.compiler.parser.wording import form_of
from vsc.compiler.source import Span
from vsc.grammar.forms import forms, operations
from vsc.lsp.unfinished import Unfinished, read_unfinished

__all__ = ["form_at", "form_of_keyword"]

_WORD_BEFORE = re.compile(r"[a-z_]*\Z")
_WORD = re.compile(r"[a-z_]+")


def form_of_keyword(word: str, before: Sequence[str], unfinished: Unfinished) -> str | None:
    """How what `word` begins looks after the tokens `before` it; None if it begins nothing there."""
    if word in operations() and before[-1:] in (("=",), ("left",), ("outer",)):
        return form_of(word)
    form = forms().get(unfinished.word or "source")
    return next((clause.form for clause in form.clauses if clause.word == word), None) if form else None


def form_at(text: str, offset: int) -> tuple[Span, str] | None:
    """The place and the form of the keyword at `offset`; None if there is none."""
    before = _WORD_BEFORE.search(text, 0, offset)
    start = offset if before is None else before.start()
    word = _WORD.match(text, start)
    expected: Expected | None = expected_at(text, start) if word else None
    if word is None or expected is None or word[0] not in expected.keywords:
        return None
    form = form_of_keyword(word[0], expected.before, read_unfinished(expected.before, {}))
    return None if form is None else (Span(word.start(), word.end()), form)
