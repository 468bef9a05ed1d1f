"""The clauses of a join in a plan, as the language writes them, in the grammar's order."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.grammar.forms import clauses_of
from vsc.plan import Correct, Grace, StreamGlobalJoin, StreamTableJoin
from vsc.plan.words import duration

__all__ = ["clauses"]


def clauses(join: Correct | Grace | StreamTableJoin | StreamGlobalJoin) -> Iterator[str]:
    """``grace 5 minutes``, ``strictly before``: a member of the plan has the name of its clause's rule."""
    for clause in clauses_of("join"):
        value = getattr(join, clause.rule, None) if clause.rule else None
        if value is True:
            yield clause.words
        elif type(value) is int:
            yield f"{clause.words} {duration(value)}"
