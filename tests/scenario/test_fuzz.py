"""Whatever a scenario file holds: it is loaded, or refused with a place."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from vsc.scenario import ScenarioError, load

PATH = Path(__file__).resolve().parents[2] / "examples/payments/late.scenario.yaml"
TEXT = PATH.read_text()
PIECES = [
    "null", "~", "[", "]", "{", "}", ":", ", ", "'", '"', "&a ", "*a ", "!!int ", "!x ", "2026-99-99", "1e999", "0x1F",
    "99999999999999999999999", ".nan", "\t", "\n", "- ", "? ", "|\n", "#", "true", "<<: ", "\x85", "\x00", "---\n",
]  # fmt: skip
EDITS = st.tuples(st.integers(0, len(TEXT)), st.integers(0, 8), st.one_of(st.sampled_from(PIECES), st.text(max_size=5)))


@settings(max_examples=80, deadline=None)
@given(edits=st.lists(EDITS, min_size=1, max_size=3))
def test_a_changed_file_is_loaded_or_refused_with_a_place(edits: list[tuple[int, int, str]]) -> None:
    text = TEXT
    for at, out, piece in edits:
        text = text[:at] + piece + text[at + out :]
    try:
        load(str(PATH), text)
    except ScenarioError as error:
        assert error.line >= 1 and error.column >= 1 and error.message
