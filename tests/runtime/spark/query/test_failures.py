"""What a failure means: vsc's own words where it has some."""

from __future__ import annotations

from vsc.runtime.spark.query.failures import translated


def test_an_exception_without_text_has_no_words_of_ours() -> None:
    assert translated(Exception()) is None
