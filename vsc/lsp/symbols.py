"""What names stand for, and which of them stand for the same thing; `names` builds these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal as Choice

from vsc.compiler.source import Span
from vsc.plan.record import record

__all__ = ["Names", "Occurrence", "Symbol"]


@record
class Symbol:
    """What a name stands for. `node` is the node to which an alias or a column belongs."""

    kind: Choice["node", "alias", "column", "constant", "function"]
    node: str
    name: str


@record
class Occurrence:
    """A name in the text. `definition`: it is declared here."""

    span: Span
    symbol: Symbol
    definition: bool


class Names:
    """The names of a text. A column that is handed on under its name is the same column: a rename renames all of them.

    `calls` are the names of functions.
    """

    def __init__(
        self,
        occurrences: Iterable[Occurrence],
        links: Iterable[tuple[Symbol, Symbol]],
        calls: Iterable[tuple[Span, str]],
    ) -> None:
        self.occurrences = tuple(sorted(set(occurrences), key=lambda one: (one.span, not one.definition)))
        self.calls = tuple(calls)
        self._first: dict[Symbol, Symbol] = {}
        for one, other in links:
            self._first[self._root(one)] = self._root(other)

    def at(self, offset: int) -> Occurrence | None:
        """The name at an offset, which may be just after it."""
        return next((one for one in self.occurrences if one.span.start <= offset <= one.span.end), None)

    def call_at(self, offset: int) -> tuple[Span, str] | None:
        """The name of a function at an offset."""
        return next(((span, name) for span, name in self.calls if span.start <= offset <= span.end), None)

    def same(self, symbol: Symbol) -> tuple[Occurrence, ...]:
        """All occurrences of what a symbol stands for."""
        root = self._root(symbol)
        return tuple(one for one in self.occurrences if self._root(one.symbol) == root)

    def _root(self, symbol: Symbol) -> Symbol:
        while (before := self._first.get(symbol, symbol)) != symbol:
            symbol = before
        return symbol
