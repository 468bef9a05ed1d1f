"""Renames a node, a column or an alias everywhere, unless that would cause errors in the topology."""

from __future__ import annotations

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.diagnostics.wording import named
from vsc.compiler.source import Span
from vsc.lsp.document import Document

__all__ = ["RenameRefused", "rename", "renamed"]


class RenameRefused(Exception):
    """The new name would cause an error in the topology; the message says which."""


def renamed(document: Document, offset: int) -> tuple[Span, str] | None:
    """The name at an offset, if it can be renamed, and its span."""
    found = document.names.at(offset)
    if found is None or not any(one.definition for one in document.names.same(found.symbol)):
        return None
    return found.span, document.text[found.span.start : found.span.end].strip("`")


def rename(document: Document, offset: int, new: str) -> list[tuple[Span, str]]:
    """The replacements that rename the name at an offset to `new`. Raises `RenameRefused`."""
    found = document.names.at(offset)
    if found is None or renamed(document, offset) is None:
        raise RenameRefused("there is no name here that the topology declares")
    if not new.strip() or "\n" in new:
        raise RenameRefused("a name must be one non-empty line")
    if not all(document.is_own(one.span) for one in document.names.same(found.symbol)):
        raise RenameRefused("the name also stands in an included file: rename it there first")
    edits = [(one.span, named(new)) for one in document.names.same(found.symbol)]
    before, after = _errors(document), _errors(document.changed(edits))
    added = [message for code, message in after if code not in [one for one, _ in before]]
    if added or len(after) > len(before):
        reason = added[0] if added else after[0][1]
        raise RenameRefused(f"with the name `{new}`, {reason}")
    return edits


def _errors(document: Document) -> list[tuple[str, str]]:
    return [(f.code, f.message) for f in document.known.findings if CODES[f.code].severity == "error"]
