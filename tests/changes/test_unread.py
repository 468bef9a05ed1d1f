"""Columns that nothing had read are null in what is held: records that waited for them are no longer what they were."""

from __future__ import annotations

import pytest

from vsc.changes.compare import compare
from vsc.compiler.driver import compile_topology

TEXT = """
table rates (k string, rate int, at bigint) from files (path = 'r', format = 'json')
key k timestamp at materialize versioned (retention = 1 hour);
stream payments (k string, amount int, tip int, at bigint) from files (path = 'p', format = 'json')
key k timestamp at;
stream large = filter payments where amount > 10;
{joined}
sink priced to files (path = 'o', format = 'json');
"""
PLAIN = "stream priced = left join large with rates grace 5 ms select {items};"
CORRECTED = "table priced = left join large with rates grace 5 ms correct by k as id within 9 ms select {items};"
OTHER = "\nsink payments to files (path = 'x', format = 'json');"


@pytest.mark.parametrize("joined", [PLAIN, CORRECTED])
def test_a_column_that_nothing_had_read_is_not_in_what_waits(joined: str) -> None:
    old, new = (
        TEXT.format(joined=joined.format(items=items)) for items in ("amount * rate as usd", "tip * rate as usd")
    )
    found = {change.name: change for change in compare(compile_topology(old), compile_topology(new))}
    assert (found["priced#waiting"].verdict.value, found["priced#waiting"].reason) == (
        "rebuild", "nothing had read `tip` of `large` before",
    )  # fmt: skip
    found = {change.name: change for change in compare(compile_topology(old + OTHER), compile_topology(new))}
    assert found["priced#waiting"].verdict.value == "keep"  # a sink had read it
