"""Classes of words that rows of mistakes name: ``@:type``, ``<:operation``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from vsc.compiler.diagnostics.durations import iso_duration
from vsc.compiler.diagnostics.suggest import misspelt
from vsc.compiler.parser.tables import load_tables
from vsc.compiler.parser.types import is_type_name
from vsc.grammar.forms import operations, words_before_durations
from vsc.plan.connectors import FACTS
from vsc.plan.functions import AGGREGATES, FUNCTIONS

__all__ = ["CLASSES", "MAIN_OPTION"]

MAIN_OPTION = {"topology": "clock", "tumbling": "size", "hopping": "size", "sliding": "difference", "session": "gap",
                "versioned": "retention", "unversioned": "expire",
                **{kind: facts.main for kind, facts in FACTS.items() if facts.main}}  # fmt: skip
"""The option that a value without a name most likely is, by what the options belong to."""
_NULLS = ("none", "nil", "unknown", "undefined", "na", "missing")
_BETWEEN_VALUES = ("||", "/", "%", "*", "=", "<>", "<", "<=", ">", ">=")


@cache
def _keywords() -> frozenset[str]:
    return frozenset(load_tables().words)


CLASSES: dict[str, Callable[[str], bool]] = {
    "word": lambda word: word[:1].isalpha() or word.startswith(("_", "`")),
    "name": str.isidentifier,
    "type": is_type_name,
    "operation": lambda word: word.lower() in operations(),
    "keyword": lambda word: word in _keywords(),
    "connector": lambda word: word in FACTS,
    "function": lambda word: word in FUNCTIONS or word in AGGREGATES,
    "digits": str.isdigit,
    "less": lambda word: word == "<",
    "by": lambda word: word.startswith("by"),
    "nothing": lambda word: not word,
    "string": lambda word: word.startswith("'"),
    "date_literal": lambda word: re.match("'[0-9]", word) is not None,
    "measured": lambda word: word in words_before_durations(),
    "has_options": lambda word: word in MAIN_OPTION,
    "iso_duration": lambda word: iso_duration(word) is not None,
    "joins": lambda word: word in ("||", "+", "*"),
    "between_values": lambda word: word in _BETWEEN_VALUES,
    "null": lambda word: word.lower() in _NULLS or misspelt(word, ("null",)) is not None,
}
