"""What is said about functions of other systems. That it is right, `test_elsewhere_spark` tries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vsc.compiler.expressions.elsewhere import _HELPS, _SYNONYMS, _helps, instead_of, instead_of_column
from vsc.plan.functions import AGGREGATES, FUNCTIONS

GROUPED = ("count(", "sum(", "avg(", "variance(", "first(", "last(", "collect_", "bool_")


class Case(NamedTuple):
    """What a help says to write, the same in Spark SQL, and which rows both are tried with."""

    written: str
    spark: str
    profile: str

    @property
    def expression(self) -> str:
        """What is written, with a type and the names of columns that can be there."""
        found = self.written.replace("TYPE", "string").replace("(end,", "(`end`,")
        return found.replace("unix_millis(a)", "unix_millis(at)")

    @property
    def grouped(self) -> bool:
        """Whether it belongs into an aggregate."""
        return any(call in self.written for call in GROUPED)


def _cases() -> Iterator[Case]:
    lines = Path(__file__).with_name("elsewhere.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line and not line.startswith("#"):
            written, spark, *rest = line.split(" | ")
            yield Case(written, spark, rest[0] if rest else "")


CASES = tuple(_cases())


def _written() -> list[str]:
    """The expressions that the helps say to write, each once."""
    found = dict[str, None]()
    for _, help in _HELPS:
        for written in re.findall("`([^`]*)`", help.partition("write ")[2]):
            if re.search(r"[(\[ ]", written) and not re.search(r"\.\.\.|STREAM|NAME|\$|vsc ", written):
                found[written] = None
    return list(found)


def test_what_a_help_says_to_write_is_compared_with_spark() -> None:
    assert not set(_written()) - {case.written for case in CASES}


def test_no_function_of_the_language_is_somewhere_else() -> None:
    known = {**FUNCTIONS, **AGGREGATES}
    assert not known.keys() & {*_helps(), *_SYNONYMS}
    assert set(_SYNONYMS.values()) <= known.keys()


def test_a_function_of_another_system_is_not_a_misspelt_one() -> None:
    assert instead_of("to_unix_timestamp")[1] is None and "unix_seconds" in instead_of("to_unix_timestamp")[0]
    assert instead_of("CARDINALITY") == ("write `size(array or map)`", "size")
    for name in ("acosh", "expr", "wavg", "to_base", "to_days", "sentences", "array_positions", "bitstring", "mad"):
        assert "did you mean" not in instead_of(name)[0] and instead_of(name)[1] is None
    assert instead_of("lenght") == ("did you mean `length`?", "length")
    assert instead_of("frobnicate") == (
        "`vsc explain VSC112` lists the functions; write others in Python (docs/own-functions.md)",
        None,
    )
    assert instead_of_column("current_timestamp", "a column") == instead_of("now")[0]
    assert instead_of_column("lpad", None) is None
    assert instead_of_column("headers", None) == instead_of("headers")[0]
    assert instead_of_column("headers", "did you mean `header`?") == "did you mean `header`?"
    assert instead_of_column("PT5M", None) == "write `5 minutes`"
