"""Formats the text in the standard style (``vsc fmt``). A text with a syntax error is left alone."""

from __future__ import annotations

from lsprotocol.types import TextEdit

from vsc.compiler.diagnostics.model import TopologyError
from vsc.compiler.format import format_topology
from vsc.lsp.document import Document

__all__ = ["formatted"]


def formatted(document: Document) -> list[TextEdit]:
    """The edit that formats a document; none if it is already formatted or cannot be."""
    try:
        text = format_topology(document.text)
    except TopologyError:
        return []
    return [] if text == document.text else [TextEdit(document.positions.whole(), text)]
