"""Every function with hostile values: a value of its type, or the failure of an expression. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.functions import NAMES, main, try_out
from vsc.plan.functions import CALLS
from vsc.runtime.expressions import ExpressionFailure
from vsc.runtime.expressions.forms import Form
from vsc.runtime.expressions.functions import FUNCTIONS


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_value_of_its_type_or_its_failure(name: str) -> None:
    try_out(name, calls=200, seed=1)


def test_make_soak_makes_ten_thousand_calls_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    assert "$(BIN)/python -m soak.functions\n" in makefile.partition("\nsoak: ")[2].partition("\n\n")[0]
    made: list[int] = []
    monkeypatch.setattr("soak.functions.try_out", lambda name, calls, seed: made.append(calls))
    assert main([]) == 0
    assert made == [10_000] * len(NAMES)


def test_everything_that_can_be_called_is() -> None:
    assert set(NAMES) == {*CALLS, "cast", "try_cast"}


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("\ud83d", "INVALID_UTF8_STRING"),  # no text, only seen as it becomes a column
        (7, "ArrowTypeError"),
        (ZeroDivisionError("of a bug"), "[INTERNAL_ERROR] ZeroDivisionError: of a bug"),
        (ExpressionFailure("[SHORT] " + "x" * 1000), "fails with: [SHORT] xxx"),
        (ExpressionFailure("without a class"), "fails with: without a class"),
    ],
)
def test_what_is_wrong_is_seen(
    result: object, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def upper(value: str) -> object:
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setitem(FUNCTIONS, "upper", Form(lambda call: upper))
    assert main(["upper", "--calls", "25"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("upper: upper(") and said in out
    assert out.endswith("1 functions, 25 calls each, seed 1: 1 wrong\n")
