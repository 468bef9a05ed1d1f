"""How operations and statements look, and the order of their clauses: what ``forms.json`` says, made from the grammar.

Messages, the formatter, completion, the listings of a plan and the tests of the documents ask here, so that a new
clause stands in the grammar alone.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import NamedTuple

from vsc.grammar import read_forms

__all__ = ["Clause", "Form", "clause_words", "clauses_of", "forms", "operations", "words_before_durations"]

_STATEMENTS = frozenset(("source", "sink", "topology", "include"))


class Clause(NamedTuple):
    """A clause: its `words` (``strictly before``) and how it looks (`form`: ``grace DURATION``).

    `rule` is the grammar's name for it, empty if it has none of its own.
    """

    rule: str
    words: str
    form: str
    optional: bool

    @property
    def word(self) -> str:
        """The word that it begins with."""
        return self.words.split()[0]


class Form(NamedTuple):
    """An operation or a statement: the `words` that it can begin with, how it looks, its clauses in their order."""

    words: tuple[str, ...]
    form: str
    clauses: tuple[Clause, ...]


@cache
def forms() -> dict[str, Form]:
    """All forms, by the name of their rule, which is the word of an operation."""
    return {
        name: Form(tuple(row["words"]), row["form"], tuple(Clause(*clause) for clause in row["clauses"]))
        for name, row in json.loads(read_forms()).items()
    }


@cache
def operations() -> dict[str, str]:
    """The operation that a word begins: ``left`` and ``join`` begin a ``join``."""
    found = forms().items()
    return {word.split()[0]: name for name, form in found if name not in _STATEMENTS for word in form.words}


def clauses_of(word: str) -> tuple[Clause, ...]:
    """The clauses of the operation that begins with `word`, in their order."""
    name = operations().get(word)
    return () if name is None else forms()[name].clauses


@cache
def clause_words() -> frozenset[str]:
    """The words that begin clauses of operations and sources."""
    return frozenset(clause.word for name, form in forms().items() if name != "sink" for clause in form.clauses)


@cache
def words_before_durations() -> frozenset[str]:
    """The words that a duration follows: ``grace``, ``limit``."""
    return frozenset(word for form in forms().values() for word in re.findall(r"(\w+) DURATION", form.form))
