"""Functions with a regular expression: RE2 matches it, as `vsc.plan.regex` writes it, in time that grows with the text.

Each is one function of a column of texts, for whole columns and for a single text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call
from vsc.plan.regex import java_regex, java_replacement, replaceable, separator
from vsc.runtime.expressions.failure import fail
from vsc.runtime.expressions.forms import Form, Kernel, Uncertain, constant
from vsc.runtime.expressions.text import MOST, characters

__all__ = ["EXTRACT", "LIKE", "REPLACE", "SPLIT"]

_Of: TypeAlias = Callable[[pa.Array, bool], pa.Array]
"""The function of texts, and whether they end with ``\\r\\n``."""


def _like(pattern: str) -> _Of:
    regex = java_regex(pattern)
    return lambda texts, crlf: pc.match_substring_regex(texts, pattern=regex.re2(crlf))


def _extract(pattern: str, group: int) -> _Of:
    regex = java_regex(pattern)
    if not 0 <= group <= regex.groups:
        fail("INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX", f"there are {regex.groups} groups, and not group {group}")

    def extract(texts: pa.Array, crlf: bool) -> pa.Array:
        if group:
            found = pc.struct_field(pc.extract_regex(texts, pattern=regex.re2(crlf)), f"g{group}")
        else:  # one alternative matches, all others are empty
            matches = pc.extract_regex(texts, pattern=regex.bodies(crlf))
            bodies = [pc.struct_field(matches, f"b{i}") for i in range(len(regex.alternatives))]
            found = pc.binary_join_element_wise(*bodies, "")
        return pc.if_else(texts.is_valid(), pc.fill_null(found, ""), None)

    return extract


def _replace(pattern: str, written: str) -> _Of:
    regex = replaceable(pattern)
    re2, replacement = regex.re2(), java_replacement(written, regex.groups)
    growth = 1 + len(replacement.encode()) + replacement.count("\\")  # a byte may be a match, and a match each group

    def replace(texts: pa.Array, crlf: bool) -> pa.Array:
        if texts.nbytes * growth >= 2**31:
            raise Uncertain
        found = pc.replace_substring_regex(texts, pattern=re2, replacement=replacement)
        if found.nbytes > MOST and pc.max(pc.utf8_length(found)).as_py() > MOST:
            raise Uncertain
        return found

    return replace


def _tried(build: Callable[..., Any], call: Call, *values: Any) -> Any:
    """What `build` makes of a pattern, which may have been computed; a wrong one fails."""
    try:
        return build(*values)
    except ValueError as problem:
        what, help = problem.args
        fail("INVALID_PARAMETER_VALUE.PATTERN", f"`{call.function}` does not take {what}: {help}")


def _row(build: Callable[..., _Of]) -> Callable[[Call], Callable[..., Any]]:
    """The function of a text, a pattern and more for one of a column of texts."""
    build = lru_cache(maxsize=1000)(build)

    def built(call: Call) -> Callable[..., Any]:
        def of_one(text: str, *values: Any) -> Any:
            function = _tried(build, call, *values)
            try:
                return function(pa.array([text]), text.endswith("\r\n"))[0].as_py()
            except Uncertain:
                fail("VALUE_TOO_LONG", f"the result could have more than {MOST} characters")

        return of_one

    return built


def _kernel(build: Callable[..., _Of]) -> Kernel:
    """With constants for all but the text."""

    def kernel(call: Call, args: list[Any]) -> Any:
        pattern, *more = map(constant, call.args[1:])
        if java_regex(pattern).ends and pc.any(pc.ends_with(args[0], pattern="\r\n")).as_py():
            raise Uncertain
        return build(pattern, *more)(args[0], False)

    return kernel


def _split(texts: pa.Array, pattern: str, limit: int) -> pa.Array:
    """The pieces between the matches of `pattern`, which is not empty; at most `limit` if that is positive."""
    regex = separator(pattern)
    most = limit - 1 if limit > 0 else None
    if not set(pattern) & set("\\[(.*+?|{"):
        return pc.split_pattern(texts, pattern=pattern, max_splits=most)
    return pc.split_pattern_regex(texts, pattern=regex.re2(), max_splits=most)


def _split_row(call: Call) -> Callable[..., Any]:
    def split(text: str, pattern: str, limit: int) -> Any:
        if not pattern:
            return characters(text, limit)
        return _tried(_split, call, pa.array([text]), pattern, limit)[0].as_py()

    return split


def _split_kernel(call: Call, args: list[Any]) -> Any:
    """With a constant pattern and limit."""
    pattern = constant(call.args[1])
    if not pattern:
        raise Uncertain
    return _split(args[0], pattern, constant(call.args[2]))


EXTRACT = Form(_row(_extract), _kernel(_extract))
LIKE = Form(_row(_like), _kernel(_like))
REPLACE = Form(_row(_replace), _kernel(_replace))
SPLIT = Form(_split_row, _split_kernel)
