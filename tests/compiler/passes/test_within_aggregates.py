"""What is said of columns in the wrong place in a join that aggregates its right stream."""

from __future__ import annotations

import pytest

from vsc.compiler import check_topology

STREAMS = """
stream a (id string, k string, n int, at timestamp) from memory () key k timestamp at;
stream b (id string, k string, m int, at timestamp) from memory () key k timestamp at;
sink o to memory ();
"""


@pytest.mark.parametrize(
    ("item", "code", "message", "help"),
    [
        ("sum(a.n) as s", "VSC113", "a call aggregates columns of `b`, not of `a`", "read `a` outside of the call"),
        ("b.m, count(*) as c", "VSC117", "each record of `a` has many of `b`",
         "aggregate its columns: `last(b.COLUMN)`"),
    ],
)  # fmt: skip
def test_a_column_in_the_wrong_place(item: str, code: str, message: str, help: str) -> None:
    (found,) = check_topology(f"{STREAMS} stream o = join a with b within (before = 1 day) select a.id, {item};")
    assert (found.code, found.message, found.help) == (code, message, help)
