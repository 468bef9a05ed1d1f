"""What a change of a corrected join means to a checkpoint."""

from __future__ import annotations

import pytest

from vsc.changes.compare import compare
from vsc.compiler.driver import compile_topology

BEFORE = """
table rates (currency string, rate int, at bigint) from files (path = 'r', format = 'json')
key currency timestamp at materialize versioned (retention = 1 hour);
stream payments (id string, currency string, amount int, at bigint) from files (path = 'p', format = 'json')
key id timestamp at;
table priced = left join payments with rates on currency correct by id within 20 ms select amount * rate as usd;
sink priced to files (path = 'o', format = 'json');
"""
PLAIN = BEFORE.replace("table priced", "stream priced").replace("correct by id within 20 ms", "")

WAITING = BEFORE.replace("correct", "grace 5 ms correct")


@pytest.mark.parametrize(
    ("before", "after", "store", "sink"),
    [
        (BEFORE, BEFORE, "keep", "keep"),
        (BEFORE, BEFORE.replace("20 ms", "40 ms"), "limits", "keep"),
        (BEFORE.replace("20 ms", "40 ms"), BEFORE, "limits", "keep"),
        (BEFORE, BEFORE.replace("by id", "by id, amount"), "rebuild", "rebuild"),
        (BEFORE, BEFORE.replace("amount * rate", "amount + rate"), "rebuild", "rebuild"),
        (BEFORE, WAITING, "keep", "keep"),
        (WAITING, WAITING.replace("5 ms", "9 ms"), "keep", "keep"),
        (WAITING, BEFORE, "keep", "keep"),
        (PLAIN, BEFORE, "new", "rebuild"),
        (BEFORE, PLAIN, "dropped", "rebuild"),
    ],
)
def test_the_length_is_a_limit_and_the_key_and_the_items_are_what_it_is(
    before: str, after: str, store: str, sink: str
) -> None:
    found = {change.name: change for change in compare(compile_topology(before), compile_topology(after))}
    assert found["priced#corrected"].verdict.value == store
    assert found["priced to files 'o'"].verdict.value == sink
    if store == "limits":
        assert "within was" in found["priced#corrected"].reason


CHAIN = BEFORE.replace(
    "sink",
    """
table again = left join priced with rates on 'EUR' correct within 20 ms select usd * rate as usd;
sink again to files (path = 'a', format = 'json');
sink""",
)


@pytest.mark.parametrize(
    ("before", "after", "priced", "again"),
    [
        (BEFORE, CHAIN, "keep", "new"),
        (CHAIN, BEFORE, "keep", "dropped"),
        (CHAIN, CHAIN.replace("correct within 20 ms", "correct by id within 20 ms"), "keep", "keep"),
        (CHAIN, CHAIN.replace("correct within 20 ms", "correct within 30 ms"), "keep", "limits"),
        (CHAIN, CHAIN.replace("by id within 20 ms", "by id within 30 ms"), "limits", "keep"),
        (CHAIN, CHAIN.replace("'EUR'", "'USD'"), "keep", "rebuild"),
        (CHAIN, CHAIN.replace("amount * rate", "amount + rate"), "rebuild", "rebuild"),
    ],
)
def test_each_join_of_a_chain_is_judged_by_itself(before: str, after: str, priced: str, again: str) -> None:
    found = {change.name: change for change in compare(compile_topology(before), compile_topology(after))}
    assert found["priced#corrected"].verdict.value == priced
    assert found["again#corrected"].verdict.value == again


def test_a_new_join_of_a_chain_has_not_seen_the_rows_that_are_there() -> None:
    stored = "amount * rate as usd materialize;"
    before, after = (text.replace("amount * rate as usd;", stored) for text in (BEFORE, CHAIN))
    found = {change.name: change for change in compare(compile_topology(before), compile_topology(after))}
    assert found["again#corrected"].reason == "the rows that `priced` holds are not in it"


def test_a_join_that_is_corrected_from_now_on_was_a_stream_and_is_a_table() -> None:
    for old, new, words in ((PLAIN, BEFORE, "was a stream, is a table"), (BEFORE, PLAIN, "was a table, is a stream")):
        sinks = [one for one in compare(compile_topology(old), compile_topology(new)) if one.kind == "sink"]
        assert [(one.verdict.value, one.reason) for one in sinks] == [("rebuild", f"`priced` {words}")]
