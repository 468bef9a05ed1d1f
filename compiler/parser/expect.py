"""For completion in an unfinished text: which keywords can stand at a place, and what a name would mean there.

It reads only the text before the place, with the parser's tables, so it knows exactly what the grammar knows.
"""

from __future__ import annotations

from vsc.compiler.parser.lexer import Tokens, tokenize
from vsc.compiler.parser.machine import Machine
from vsc.compiler.parser.tables import Tables, load_tables
from vsc.plan.record import record

__all__ = ["Expected", "expected_at"]

_MARK = "x"


@record
class Expected:
    """`before` holds the statement's tokens before the place, `keywords` the keywords that can stand there.

    `names` says what a name could be there, as the grammar rules that it would complete: ``column_name``, ``node``,
    ``input``, ``plain_type``, ``option_name``, or ``*`` for a list of names. It is empty where the name would be a new
    one, or where a name cannot stand.
    """

    before: tuple[str, ...]
    keywords: tuple[str, ...]
    names: frozenset[str]


def expected_at(text: str, offset: int) -> Expected | None:
    """What can stand at `offset`; None inside strings, comments and numbers."""
    tokens, _ = tokenize(text[:offset] + _MARK)
    tables, mark = load_tables(), len(tokens.kinds) - 2
    if mark < 0 or tokens.starts[mark] != offset or tokens.kinds[mark] != tables.name or mark in tokens.damaged:
        return None
    machine, first, failed = _read(tables, tokens, mark)
    before = tuple(tokens.word(index) for index in range(first, mark))
    if failed:
        return Expected(before, (), frozenset())
    expected = set(machine.expected())
    keywords = tuple(sorted(word for word, terminal in tables.words.items() if terminal in expected))
    return Expected(before, keywords, _roles(tables, machine) if tables.name in expected else frozenset())


def _read(tables: Tables, tokens: Tokens, mark: int) -> tuple[Machine, int, bool]:
    """The machine just before the mark, the first token of its statement, and whether it got stuck earlier."""
    from vsc.compiler.parser.missing import starts_statement

    semicolon = tables.number["SEMICOLON"]
    machine, first, failed = _machine(tables, tokens), 0, False
    for index in range(mark):
        if tokens.kinds[index] == semicolon:
            machine, first, failed = _machine(tables, tokens), index + 1, False
            continue
        if failed and index > first and starts_statement(tokens, index):
            machine, first, failed = _machine(tables, tokens), index, False
        failed = failed or machine.take(machine.terminal(index), index) is not None
    return machine, first, failed


def _machine(tables: Tables, tokens: Tokens) -> Machine:
    return Machine(tables, tokens, "statement", lambda action, span, children: None)


def _roles(tables: Tables, machine: Machine) -> frozenset[str]:
    """The rules that a name would complete here, over all terminals that could follow it."""
    return frozenset(
        role for terminal in range(len(tables.names)) if (role := machine.completed_by(tables.name, terminal))
    )
