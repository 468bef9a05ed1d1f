"""Fixes that do what the help of a finding says: write, add or remove what it names.

A help is a sentence, so its words may go to several places. Each place is tried. The first one that removes the finding
without causing a new error is offered, so an offered fix always works.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.source import Span
from vsc.lsp.document import Document
from vsc.plan.record import record

__all__ = ["Fix", "fixes"]

_QUOTED = r"`((?:[^`]|``)+)`|('(?:[^']|'')*')"
_WRITE = re.compile(rf"(?:write|did you mean|use)(?: it with)? (?:{_QUOTED})")
_STATEMENT = re.compile(r"write it: `([^`]+;)`")
_ADD = re.compile(rf"add (?:the )?(?:{_QUOTED})")
_SYNTAX = "VSC0"
_BLANK = re.compile(r"\s*")
_HOLES = re.compile(r"\b[A-Z]{2,}\b|\.\.\.")
"""The parts of a help that the user has to fill in: ``NAME``, ``EXPR``, ``...``."""


@record
class Fix:
    """Replacing `span` with `new` resolves `finding`."""

    finding: Finding
    title: str
    span: Span
    new: str


def fixes(document: Document, place: Span) -> list[Fix]:
    """The fixes for the findings that touch `place`, at most one for each finding."""
    touched = (f for f in document.known.findings if f.span.start <= place.end and place.start <= f.span.end)
    return [fix for finding in touched if (fix := _fix(document, finding)) is not None]


def _fix(document: Document, finding: Finding) -> Fix | None:
    for span, new in _candidates(document.text, finding):
        if _helps(document, document.changed([(span, new)]), finding):
            old = document.text[span.start : span.end]
            title = (
                f"Replace `{old}` with `{new}`" if old and new else f"Add `{new.strip()}`" if new else f"Remove `{old}`"
            )
            return Fix(finding, title if "\n" not in title and len(title) < 100 else "Do what the help says", span, new)
    return None


def _helps(before: Document, after: Document, finding: Finding) -> bool:
    """Whether `after` has fewer findings of the finding's code, and no errors with new codes.

    If `finding` is a syntax error, new errors of other kinds are allowed: it may have hidden them.
    """
    old = [one.code for one in before.known.findings]
    new = [one.code for one in after.known.findings]
    hid = finding.code.startswith(_SYNTAX)
    worse = [
        code
        for code in new
        if code not in old and CODES[code].severity == "error" and (code.startswith(_SYNTAX) or not hid)
    ]
    return not worse and new.count(finding.code) < old.count(finding.code)


def _candidates(text: str, finding: Finding) -> Iterator[tuple[Span, str]]:
    """The edits that the help may mean, likeliest first."""
    help = finding.help or ""
    for match in _WRITE.finditer(help):
        new = match[1] or match[2]
        if not _HOLES.search(new):
            yield finding.span, new
            yield from _of_option(text, finding.span, new)
            yield from ((label.span, new) for label in finding.labels)
            yield from _with_the_word_before(text, finding.span, new)
    for match in _STATEMENT.finditer(help):
        end = len(text.rstrip())
        yield Span(end, end), f"\n{match[1]}"
    for match in _ADD.finditer(help):
        new = match[1] or match[2]
        if not _HOLES.search(new):
            yield from _added(text, finding.span, new)
    if help.startswith("remove"):
        yield from _removed(text, finding.span)


def _of_option(text: str, span: Span, new: str) -> Iterator[tuple[Span, str]]:
    """For `name = value`, replaces only the value."""
    name, equals, value = new.partition(" = ")
    if equals and re.search(rf"{re.escape(name)}\s*=\s*\Z", text[: span.start]):
        yield span, value


def _with_the_word_before(text: str, span: Span, new: str) -> Iterator[tuple[Span, str]]:
    """Replaces the word before the place as well, as ``n as m`` does for ``n m``."""
    before = text[: span.start].rstrip()
    first = new.split(" ")[0]
    if first and before.endswith(first):
        yield Span(len(before) - len(first), span.end), new


def _added(text: str, span: Span, new: str) -> Iterator[tuple[Span, str]]:
    """Inserts before a closing parenthesis, after the place, or at the end of the statement."""
    if text[span.start : span.end].endswith(")"):
        inside = text[span.start : span.end - 1].rstrip()
        comma = "" if inside.endswith(("(", ",")) else ", "
        yield Span(span.start + len(inside), span.start + len(inside)), comma + new
    yield Span(span.end, span.end), new
    yield Span(span.end, span.end), f" {new}"
    end = text.find(";", span.end)
    if end >= 0:
        yield Span(end, end), f" {new}"


def _removed(text: str, span: Span) -> Iterator[tuple[Span, str]]:
    """Removes the place, with the comma that belongs to it."""
    blank = _BLANK.match(text, span.end)
    end = blank.end() if blank else span.end
    if text[end : end + 1] == ",":
        after = _BLANK.match(text, end + 1)
        yield Span(span.start, after.end() if after else end + 1), ""
    before = text[: span.start].rstrip()
    if before.endswith(","):
        yield Span(len(before) - 1, span.end), ""
    yield Span(len(before), span.end), ""
