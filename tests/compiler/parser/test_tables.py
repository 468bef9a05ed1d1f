"""The parse tables in the package are those of the grammar beside them."""

from __future__ import annotations

import logging

import lark
import pytest

from vsc.compiler.parser.tables import load_tables
from vsc.grammar import read, read_tables
from vsc.grammar.build import START, build_tables


def test_the_tables_are_those_of_the_grammar_byte_for_byte() -> None:
    assert read_tables() == build_tables(read()), "run python -m vsc.grammar"


def test_the_grammar_has_no_conflict(caplog: pytest.LogCaptureFixture) -> None:
    """Lark settles a conflict of shift and reduce silently, but for a line in its log."""
    lark.logger.setLevel(logging.DEBUG)
    try:
        with caplog.at_level(logging.DEBUG, logger=lark.logger.name):
            lark.logger.addHandler(caplog.handler)
            lark.Lark(read(), parser="lalr", start=list(START), debug=True)
    finally:
        lark.logger.removeHandler(caplog.handler)
        lark.logger.setLevel(logging.CRITICAL)
    assert [record.message for record in caplog.records if "conflict" in record.message.lower()] == []


def test_the_reserved_words_are_those_of_the_language() -> None:
    tables = load_tables()
    words = "and or not in is like between case when then else end cast null true false as select where"
    assert {tables.texts[terminal] for terminal in tables.reserved} == set(words.split())
