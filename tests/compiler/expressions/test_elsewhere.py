"""What is said about functions of other systems: what it says to write can be written."""

from __future__ import annotations

import re

import pytest

from vsc.compiler import check_topology
from vsc.compiler.expressions.elsewhere import _HELPS, _SYNONYMS, _helps, instead_of, instead_of_column
from vsc.plan.functions import AGGREGATES, FUNCTIONS

COLUMNS = """k string, y bigint, z bigint, n int, i int, days int, text string, part string, search string,
  replacement string, texts array<string>, m map<string, int>, b timestamp, d date, s struct<f: int>,
  `end` date, start date, condition boolean"""
TYPES = ("bigint", "double", "string", "boolean", "timestamp", "date", "array<string>")


def _written() -> list[str]:
    """The expressions that the helps say to write, each once."""
    found = dict[str, None]()
    for _, help in _HELPS:
        for written in re.findall("`([^`]*)`", help.partition("write ")[2]):
            if re.search(r"[(\[ ]", written) and not re.search(r"\.\.\.|STREAM|\$|vsc ", written):
                found[written] = None
    return list(found)


def _is_valid(expression: str) -> bool:
    one = expression.replace("TYPE", "string").removesuffix(" as texts").replace("(end,", "(`end`,")
    array = "timestamp" if "unix_millis(a)" in one else "array<int>"
    for type_ in TYPES:
        source = f"stream q ({COLUMNS}, a {array}, x {type_}) from memory () key k;\n"
        for form in ("stream r = map q select {} as o;", "table r = aggregate q group by k select {} as o;"):
            if not any(found.severity == "error" for found in check_topology(source + form.format(one))):
                return True
    return False


@pytest.mark.parametrize("expression", _written())
def test_what_a_help_says_to_write_can_be_written(expression: str) -> None:
    assert _is_valid(expression)


def test_no_function_of_the_language_is_somewhere_else() -> None:
    known = {**FUNCTIONS, **AGGREGATES}
    assert not known.keys() & {*_helps(), *_SYNONYMS}
    assert set(_SYNONYMS.values()) <= known.keys()


def test_a_function_of_another_system_is_not_a_misspelt_one() -> None:
    assert instead_of("to_unix_timestamp")[1] is None and "unix_seconds" in instead_of("to_unix_timestamp")[0]
    assert instead_of("CARDINALITY") == ("write `size(array or map)`", "size")
    assert instead_of("lenght") == ("did you mean `length`?", "length")
    assert instead_of("frobnicate") == ("`vsc explain VSC112` lists the functions", None)
    assert instead_of_column("current_timestamp", "a column") == instead_of("now")[0]
    assert instead_of_column("lpad", None) is None
    assert instead_of_column("headers", None) == instead_of("headers")[0]
    assert instead_of_column("headers", "did you mean `header`?") == "did you mean `header`?"
    assert instead_of_column("PT5M", None) == "write `5 minutes`"
