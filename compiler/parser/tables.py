"""The LALR tables that the parser uses, loaded once from ``tables.json`` in `vsc.grammar`."""

from __future__ import annotations

import json
from functools import cache

from vsc.grammar import read_tables

__all__ = ["Rule", "Tables", "load_tables"]

Rule = tuple[int, int, str, list[int]]
"""Nonterminal, length, action, children, as described in `vsc.grammar.build`."""


class Tables:
    """The parse tables of the grammar. Symbols and states are numbers.

    `names` holds the names of the terminals, `texts` the text of words and signs, `patterns` the regular expressions of
    all other terminals. `words` maps each keyword to its terminal; `reserved` holds the keywords that are never names.
    """

    def __init__(self, text: str) -> None:
        data = json.loads(text)
        terminals = data["terminals"]
        self.names: list[str] = [row[0] for row in terminals]
        self.number: dict[str, int] = {name: n for n, name in enumerate(self.names)}
        self.texts: dict[int, str] = {n: row[2] for n, row in enumerate(terminals) if row[1] != "pattern"}
        self.patterns: dict[str, str] = {row[0]: row[2] for row in terminals if row[1] == "pattern"}
        self.words: dict[str, int] = {row[2]: n for n, row in enumerate(terminals) if row[1] == "word"}
        self.signs: dict[str, int] = {row[2]: n for n, row in enumerate(terminals) if row[1] == "sign" and row[2]}
        self.reserved: frozenset[int] = frozenset(n for n, row in enumerate(terminals) if row[3])
        self.rules: list[Rule] = [(row[0], row[1], row[2], row[3]) for row in data["rules"]]
        self.start: dict[str, int] = data["start"]
        self.states: list[dict[int, int]] = [dict(zip(row[::2], row[1::2], strict=True)) for row in data["states"]]
        self.end = self.number["$END"]
        self.name = self.number["NAME"]
        self.constant = self.number["CONSTANT"]


@cache
def load_tables() -> Tables:
    """The tables of the language."""
    return Tables(read_tables())
