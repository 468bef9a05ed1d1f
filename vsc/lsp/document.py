"""A topology as an editor holds it: its text, and everything that the compiler knows about it, computed once."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlparse

from lsprotocol import types

from vsc.compiler.driver import Surveyed, survey_topology
from vsc.compiler.source import Span
from vsc.lsp.names import names_of
from vsc.lsp.positions import Positions
from vsc.lsp.symbols import Names

__all__ = ["Document"]


class Document:
    """One state of a text. `uri` is the editor's name for it; `encoding` is how the editor counts characters."""

    def __init__(self, uri: str, text: str, encoding: str = "utf-16") -> None:
        self.uri, self.text, self.encoding = uri, text, encoding

    @cached_property
    def known(self) -> Surveyed:
        """What the compiler knows about it."""
        return survey_topology(self.text, unquote(urlparse(self.uri).path) or "topology.vdsl")

    @cached_property
    def names(self) -> Names:
        """Its names, and which of them mean the same."""
        return names_of(self.known)

    @cached_property
    def positions(self) -> Positions:
        """Converts between offsets and the editor's positions."""
        return Positions(self.text, self.encoding)

    def is_own(self, span: Span) -> bool:
        """Whether `span` is in this text, not in a file that it includes."""
        return self.known.source.own(span) == span

    def location(self, span: Span) -> types.Location:
        """Where `span` is, in this text or in a file that it includes."""
        if self.is_own(span):
            return types.Location(self.uri, self.positions.range(span))
        source = self.known.source
        path = source.path_of(span.start)
        start, end = source.position(span.start), source.position(span.end)
        text = source.files()[path].text
        lines = [0, *(at + 1 for at, sign in enumerate(text) if sign == "\n")]
        own = Span(lines[start.line - 1] + start.column - 1, lines[end.line - 1] + end.column - 1)
        return types.Location(Path(path).absolute().as_uri(), Positions(text, self.encoding).range(own))

    def changed(self, edits: list[tuple[Span, str]]) -> Document:
        """The document with these replacements. They must not overlap."""
        text = self.text
        for span, new in sorted(edits, key=lambda edit: edit[0], reverse=True):
            text = text[: span.start] + new + text[span.end :]
        return Document(self.uri, text, self.encoding)
