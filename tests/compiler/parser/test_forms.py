"""The forms of operations in the package are those of the grammar beside them."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.parser.wording import form_of
from vsc.grammar import read, read_forms
from vsc.grammar.build_forms import build_forms
from vsc.grammar.forms import clause_words, clauses_of, forms, operations, words_before_durations


def test_the_forms_are_those_of_the_grammar_byte_for_byte() -> None:
    assert read_forms() == build_forms(read()), "run python -m vsc.grammar"


def test_an_operation_looks_as_its_rule_says() -> None:
    assert form_of("filter") == "filter INPUT where EXPRESSION [materialize ...]"
    assert form_of("map") == ("map INPUT select EXPRESSION [as NAME], ... [timestamp EXPRESSION] [materialize ...]")
    assert form_of("suppress") == "suppress TABLE until window closes|time limit DURATION [(...)]"
    assert form_of("merge") == "merge STREAM, ..."
    assert form_of("left").startswith("[left|outer] join INPUT with INPUT [on EXPRESSION [as NAME], ...] [within ")
    assert form_of("sink") == "sink NAME [of NAME] to CONNECTOR (...)"


def test_a_new_clause_in_the_grammar_is_in_the_forms() -> None:
    grammar = read().replace("[drop_older]", "[drop_older] [amended]", 1) + (
        '\namended: "amended" "by" _list{key_item} "within" _duration\n'
    )
    rows = build_forms(grammar)
    assert '"amended by EXPRESSION [as NAME], ... within DURATION"' in rows
    assert "[drop older_than_retention] [amended by EXPRESSION" in rows


def test_the_clauses_of_a_join_stand_in_the_order_of_the_grammar() -> None:
    found = [(clause.rule, clause.words, clause.optional) for clause in clauses_of("left")]
    assert found[:4] == [("", "with", False), ("", "on", True), ("within", "within", True), ("grace", "grace", True)]
    assert found[-2:] == [("", "select", False), ("materialized", "materialize", True)]
    assert ("strictly_before", "strictly before", True) in found


def test_every_operation_of_the_tree_has_a_form_and_every_form_of_an_operation_a_class() -> None:
    words = {operation.word for operation in syntax.Operation.__args__}
    assert set(operations().values()) == words
    assert set(operations()) == words | {"left", "outer"}
    assert set(forms()) - words == {"source", "sink", "topology", "include"}


def test_words_that_begin_clauses_and_words_that_take_a_duration() -> None:
    assert {"where", "group", "strictly", "delete", "key"} <= clause_words()
    assert not {"as", "to", "of", "filter"} & clause_words()
    assert {"grace", "within", "max_age", "limit"} <= words_before_durations()
