"""Comments that allow a warning, ``-- vsc: allow VSC313``: in the statement on whose lines they stand, or above which.

An allowance that has no effect is a warning itself (VSC029), as linters have it: one of a code that is unknown, or an
error, or of a warning that is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.parser.lexer import Tokens, tokenize
from vsc.compiler.source import SourceFile, Span
from vsc.plan.record import record

__all__ = ["allowed", "cannot_allow"]

_COMMENT = re.compile(r"--[^\n]*")
_ALLOW = re.compile(r"--+\s*vsc:\s*allow\b[\s:]*(?P<codes>\w*(?:\s*,\s*\w+)*)")
_WORD = re.compile(r"\w+")


@record
class _Allowance:
    """A code that a comment names, where, and the statements that it is about."""

    code: str
    span: Span
    statements: tuple[Span, ...]


def allowed(findings: tuple[Finding, ...], source: SourceFile) -> tuple[Finding, ...]:
    """The findings without the warnings that comments allow, and what is wrong with such comments.

    Whether one allows nothing is not told while there are errors: what they hide may be what it is for.
    """
    if "vsc:" not in source.text:
        return findings
    given = list(_allowances(source))
    left, used = [], set()
    for finding in findings:
        mine = {one for one in given if one.code == finding.code and _within(finding.span, one.statements)}
        if mine and CODES[finding.code].severity == "warning":
            used |= mine
        else:
            left.append(finding)
    complete = all(CODES[finding.code].severity == "warning" for finding in findings)
    idle = (_idle(one, complete) for one in given if one not in used)
    return (*left, *(finding for finding in idle if finding is not None))


def cannot_allow(code: str) -> tuple[str, str] | None:
    """Why a code cannot be allowed, and what to do; None if it can."""
    if code not in CODES:
        near = code.upper()
        return f"`{code}` is not a code", f"write `{near}`" if near in CODES else "write one, as in `VSC313`"
    if CODES[code].severity == "error":
        return f"{code} is an error, which cannot be allowed", "correct what it tells of"
    return None


def _idle(one: _Allowance, complete: bool) -> Finding | None:
    if not one.code:
        return Finding(
            "VSC029", one.span, "this comment allows nothing", (), "name a code, as in `-- vsc: allow VSC313`"
        )
    if (wrong := cannot_allow(one.code)) is not None:
        message, help = wrong
        return Finding("VSC029", one.span, message, (), help)
    if not complete:
        return None
    return Finding("VSC029", one.span, f"{one.code} is allowed, but nothing here is one", (), "remove it")


def _within(span: Span, statements: tuple[Span, ...]) -> bool:
    return any(one.start <= span.start < one.end for one in statements)


def _allowances(source: SourceFile) -> Iterator[_Allowance]:
    tokens, _ = tokenize(source.text)
    statements = list(_statements(tokens))
    for at, comment in _comments(tokens):
        allow = _ALLOW.match(comment)
        if allow is None:
            continue
        about = _about(source.text, at, statements)
        names = list(_WORD.finditer(allow["codes"]))
        begin = at + allow.start("codes")
        if not names:
            yield _Allowance("", Span(at, at + len(comment.rstrip())), about)
        for name in names:
            yield _Allowance(name.group(), Span(begin + name.start(), begin + name.end()), about)


def _statements(tokens: Tokens) -> Iterator[Span]:
    """Where the statements are, each with its ``;``."""
    begun: int | None = None
    for number in range(len(tokens.starts)):
        span = tokens.span(number)
        begun = span.start if begun is None else begun
        if tokens.text[span.start : span.end] == ";":
            yield Span(begun, span.end)
            begun = None


def _comments(tokens: Tokens) -> Iterator[tuple[int, str]]:
    """The comments, with their offsets: they stand between tokens."""
    end = 0
    for start, after in zip([*tokens.starts, len(tokens.text)], [*tokens.ends, 0], strict=True):
        for match in _COMMENT.finditer(tokens.text, end, max(start, end)):
            yield match.start(), match.group()
        end = after


def _about(text: str, at: int, statements: list[Span]) -> tuple[Span, ...]:
    """The statements that a comment is about: on its line, or else the one that it stands in or above."""
    line = Span(text.rfind("\n", 0, at) + 1, at)
    of_line = tuple(one for one in statements if one.start < line.end and one.end > line.start)
    return of_line or tuple(one for one in statements if one.end > at)[:1]
