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
