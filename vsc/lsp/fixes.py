"""Fixes as editors offer them: the edit of a finding that surely does what its help says.

An edit is only offered if the finding is gone after it and no new error has come, so an offered fix always works.
"""

from __future__ import annotations

from dataclasses import replace

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.source import Span
from vsc.lsp.document import Document
from vsc.plan.record import record

__all__ = ["Offer", "offers"]

_SYNTAX = "VSC0"
_LONGEST_TITLE = 100


@record
class Offer:
    """The edit `fix` resolves `finding`; `title` is what an editor shows for it."""

    finding: Finding
    title: str
    fix: Fix


def offers(document: Document, place: Span) -> list[Offer]:
    """The fixes for the findings that touch `place`, at most one for each finding."""
    touched = (f for f in document.known.findings if f.span.start <= place.end and place.start <= f.span.end)
    fixed = [(finding, finding.fix) for finding in touched if finding.fix is not None]
    return [Offer(finding, _title(document, fix), fix) for finding, fix in fixed if _sure(document, finding, fix)]


def _sure(document: Document, finding: Finding, fix: Fix) -> bool:
    if fix.rival is not None and _works(document, finding, replace(fix, new=fix.rival), hid=False):
        return False
    return _works(document, finding, fix, hid=finding.code.startswith(_SYNTAX))


def _works(before: Document, finding: Finding, fix: Fix, *, hid: bool) -> bool:
    """Whether the text has, after the fix, fewer findings of the finding's code, and no errors with new codes.

    A syntax error may have `hid` others: new errors that are none of syntax are then allowed.
    """
    old = [one.code for one in before.known.findings]
    new = [one.code for one in before.changed([(fix.span, fix.new)]).known.findings]
    worse = [
        code
        for code in new
        if code not in old and CODES[code].severity == "error" and (code.startswith(_SYNTAX) or not hid)
    ]
    return not worse and new.count(finding.code) < old.count(finding.code)


def _title(document: Document, fix: Fix) -> str:
    old, new = document.text[fix.span.start : fix.span.end].strip(), fix.new.strip()
    title = f"Replace `{old}` with `{new}`" if old and new else f"Add `{new}`" if new else f"Remove `{old}`"
    return title if "\n" not in title and len(title) < _LONGEST_TITLE else "Do what the help says"
