"""What 1.x promises to keep is there, under its name: docs/releases.md."""

from __future__ import annotations

from tools.surface import KEPT, reserved_words, surface

_LINES = KEPT.read_text(encoding="utf-8").splitlines()


def test_nothing_that_was_released_is_gone() -> None:
    kept = {line for line in _LINES if not line.startswith("reserved ")}
    gone = sorted(kept - surface())
    assert gone == [], "1.x keeps these: deprecate them (docs/releases.md), and remove them in 2.0"


def test_no_more_words_are_reserved() -> None:
    assert {f"reserved {word}" for word in reserved_words()} == {line for line in _LINES if line.startswith("reserved")}


def test_the_list_names_what_users_know() -> None:
    some = """
        python vsc.start(checkpoint)
        python vsc.testing.TopologyTestDriver.pipe
        command vsc check --deny-warnings
        command vsc run --trigger
        function regexp_extract
        aggregate count
        connector kafka option topic
        connector files source
        code VSC303
        reserved select
    """
    assert set(map(str.strip, some.strip().splitlines())) <= set(_LINES)
