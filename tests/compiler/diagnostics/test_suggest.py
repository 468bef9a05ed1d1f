"""What a mistyped name was most likely meant to be."""

from __future__ import annotations

import pytest

from vsc.compiler.diagnostics.suggest import distance, nearest


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("strin", ["string", "struct"], "string"),
        ("STRING", ["string"], "string"),
        ("retnetion", ["retention", "segment"], "retention"),
        ("x", ["a", "b"], None),
        ("amuont", ["amount", "account"], "amount"),
        ("completely", ["different"], None),
        ("ab", ["ac", "aa"], "aa"),
        ("a" * 200, ["a" * 200], None),
    ],
)
def test_nearest(name: str, known: list[str], near: str | None) -> None:
    assert nearest(name, known) == near


def test_distance() -> None:
    assert [distance(*pair) for pair in (("", ""), ("a", ""), ("ab", "ba"), ("abc", "adc"), ("abc", "bc"))] == [
        0,
        1,
        1,
        1,
        1,
    ]
