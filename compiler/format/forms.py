"""A topology as the formatter sees it: statements as trees of grammar rules over tokens, with comments between tokens.

Nothing is interpreted: a form is the name of a rule, the tokens it covers, and the forms inside it. Two things are
normalized here for every layout: trailing commas and stray ``;`` are dropped, and a comment before a ``,`` or ``;``
moves after it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.parser import read_statements
from vsc.compiler.parser.lexer import EVERY_NAME, Tokens
from vsc.compiler.parser.tables import load_tables
from vsc.compiler.source import Span

__all__ = ["Comment", "Form", "Forms", "Piece", "read_forms"]

_COMMENT = re.compile(r"--[^\n]*")
_CLOSING = (")", "]", ">", ";")


@dataclass(frozen=True, slots=True)
class Form:
    """What a grammar rule matched: the tokens from `start` to `end` (exclusive), and the forms inside."""

    rule: str
    start: int
    end: int
    inside: tuple[Form, ...]


Piece = int | Form
"""Part of a form: one of its own tokens, or a form inside it."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment; `inline` if it follows a token on the same line, `blank` if an empty line comes before it."""

    text: str
    inline: bool
    blank: bool


@dataclass(slots=True)
class Forms:
    """A file. The lists have one entry per token; the last token is the end of the text.

    `words` is the text of each token. `comments` has the comments before it. `blank` says whether an empty line comes
    right before it. `rules` is the rule of the innermost form around it. `keywords`, `numbers` and `dropped` are sets
    of tokens; dropped tokens are not written.
    """

    words: list[str]
    statements: tuple[Form, ...]
    keywords: set[int]
    numbers: set[int]
    comments: list[list[Comment]] = field(default_factory=list)
    blank: list[bool] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)

    def pieces(self, form: Form) -> list[Piece]:
        """The form's own tokens and its inner forms, in order, without dropped tokens."""
        pieces: list[Piece] = []
        at = form.start
        for inside in form.inside:
            pieces += range(at, inside.start)
            pieces.append(inside)
            at = inside.end
        pieces += range(at, form.end)
        return [piece for piece in pieces if isinstance(piece, Form) or piece not in self.dropped]

    def same_as(self, other: Forms) -> bool:
        """Whether both have the same statements and the same comments."""
        return self._said() == other._said()

    def _said(self) -> tuple[list[str], list[str], list[str]]:
        words = [word for index, word in enumerate(self.words) if index not in self.dropped]
        rules = [rule for index, rule in enumerate(self.rules) if index not in self.dropped]
        return words, rules, [comment.text for comments in self.comments for comment in comments]


def read_forms(text: str) -> tuple[Forms, tuple[Finding, ...]]:
    """The file and its syntax errors. If it has any, the forms must not be used."""
    read = read_statements(text, _Recorder)
    tokens, tables = read.tokens, load_tables()
    count = len(tokens.kinds)
    number = {tables.number[name] for name in ("INTEGER", "DECIMAL", "DOUBLE", "DURATION", "CALENDAR_LENGTH")}
    forms = Forms(
        [tokens.word(index) for index in range(count)],
        read.statements,
        {
            index
            for index in range(count)
            if tokens.kinds[index] in tables.reserved or tokens.kinds[index] == tables.name
        },
        {index for index in range(count) if tokens.kinds[index] in number},
    )
    if read.findings:
        return forms, read.findings
    _read_gaps(forms, tokens)
    forms.rules = [""] * count
    forms.dropped = {index for index in range(count) if forms.words[index] == ";"}
    for statement in forms.statements:
        _assign(forms, statement)
        forms.dropped.discard(statement.end - 1)
    _settle(forms)
    return forms, ()


class _Recorder:
    """Builds forms."""

    def __init__(self, tokens: Tokens) -> None:
        tokens.constants = EVERY_NAME
        self.findings: list[Finding] = []
        self.flawed = False
        self._first = {start: index for index, start in enumerate(tokens.starts)}
        self._last = {end: index for index, end in enumerate(tokens.ends[:-1])}

    def build(self, action: str, span: Span, children: list[Any]) -> Form:
        inside = tuple(child for child in children if isinstance(child, Form))
        return Form(action, self._first[span.start], self._last[span.end] + 1, inside)


def _assign(forms: Forms, form: Form) -> None:
    """Records the rule of each token, which words are names, and which commas are trailing."""
    pieces = forms.pieces(form)
    for place, piece in enumerate(pieces):
        if isinstance(piece, Form):
            _assign(forms, piece)
            continue
        forms.rules[piece] = form.rule
        if form.rule == "plain_name":
            forms.keywords.discard(piece)
        elif forms.words[piece] == ",":
            after = pieces[place + 1] if place + 1 < len(pieces) else None
            if after is None or (isinstance(after, int) and forms.words[after] in _CLOSING):
                forms.dropped.add(piece)


def _read_gaps(forms: Forms, tokens: Tokens) -> None:
    """Collects the comments, and writes durations with single spaces. A comment inside a duration moves after it."""
    numbers = load_tables().number
    lengths = {numbers["DURATION"], numbers["CALENDAR_LENGTH"]}
    end, inside = 0, ""
    for index, start in enumerate(tokens.starts):
        comments, blank = _comments(tokens.text[end:start])
        if inside:
            before, _ = _comments(inside)
            comments = _joined(before, comments)
        forms.comments.append(comments)
        forms.blank.append(blank)
        end, inside = tokens.ends[index], ""
        word = forms.words[index]
        if tokens.kinds[index] in lengths:
            forms.words[index] = " ".join(re.findall(r"[0-9]+|[a-z]+", _COMMENT.sub(" ", word)))
            inside = word if "--" in word else ""


def _comments(between: str) -> tuple[list[Comment], bool]:
    """The comments in the text between two tokens, and whether that text ends with an empty line."""
    comments: list[Comment] = []
    at = 0
    for match in _COMMENT.finditer(between):
        lines = between.count("\n", at, match.start())
        comments.append(Comment(match.group().rstrip(), not (lines or comments), lines > 1))
        at = match.end()
    return comments, between.count("\n", at) > 1


def _joined(before: list[Comment], after: list[Comment]) -> list[Comment]:
    """Joins comments that end up between the same two tokens. Only the first can stay on the line of a token."""
    if not before:
        return after
    return before + [Comment(comment.text, False, comment.blank) for comment in after]


def _settle(forms: Forms) -> None:
    """Moves comments before dropped tokens, and before ``,`` and ``;``, after them."""
    comments, words = forms.comments, forms.words
    for index in range(len(words) - 1):
        before = comments[index]
        dropped = index in forms.dropped
        if dropped:
            forms.blank[index + 1] |= forms.blank[index]
        if dropped or words[index] == "," or (words[index] == ";" and len(before) == 1 and before[0].inline):
            comments[index + 1] = _joined(before, comments[index + 1])
            comments[index] = []
    first = forms.statements[0].start if forms.statements else len(words) - 1
    comments[first] = [Comment(comment.text, False, comment.blank) for comment in comments[first]]
