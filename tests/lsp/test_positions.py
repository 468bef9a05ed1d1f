"""Places as editors count them."""

from __future__ import annotations

import pytest
from lsprotocol.types import Position

from vsc.lsp.positions import Positions

TEXT = "ab\r\n💶c\rd\n\u2028e"


@pytest.mark.parametrize(
    ("encoding", "characters"), [("utf-8", [0, 4, 5, 0]), ("utf-16", [0, 2, 3, 0]), ("utf-32", [0, 1, 2, 0])]
)
def test_characters_are_counted_in_the_units_that_were_agreed_on(encoding: str, characters: list[int]) -> None:
    places = Positions(TEXT, encoding)
    assert [places.position(offset).character for offset in range(4, 8)] == characters
    assert [places.offset(places.position(offset)) for offset in range(4, 8)] == [4, 5, 6, 7]


def test_lines_end_as_in_the_protocol_and_characters_are_utf_16() -> None:
    places = Positions(TEXT)
    found = [places.position(offset) for offset in range(len(TEXT) + 1)]
    assert [(p.line, p.character) for p in found] == [
        (0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2),
    ]  # fmt: skip
    inside = [offset for offset in range(len(TEXT) + 1) if TEXT[offset : offset + 1] != "\n" or offset != 3]
    assert [places.offset(found[offset]) for offset in inside] == inside


def test_a_position_behind_the_end_is_the_end_of_its_line_or_of_the_text() -> None:
    places = Positions(TEXT)
    assert places.offset(Position(0, 99)) == 2
    assert places.offset(Position(1, 99)) == 6
    assert places.offset(Position(9, 0)) == len(TEXT)
    assert Positions("").offset(Position(0, 0)) == 0
