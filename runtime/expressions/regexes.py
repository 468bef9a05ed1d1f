"""Functions with a regular expression: RE2 matches it, as `vsc.plan.regex` writes it, in time that grows with the text.

Each is one function of a column of texts, for whole columns and for a single text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call, Literal
from vsc.plan.regex import Regex, java_regex, java_replacement
from vsc.runtime.expressions.failure import fail
from vsc.runtime.expressions.forms import Form, Kernel, Uncertain, constant
from vsc.runtime.expressions.text import MOST, characters

__all__ = ["EXTRACT", "LIKE", "REPLACE", "SPLIT"]

_Of: TypeAlias = Callable[[pa.Array, bool], pa.Array]
"""The function of texts, and whether they end with ``\\r\\n``."""


def _constant(call: Call, i: int) -> Any:
    """A constant argument, which the compiler has checked; never null."""
    arg = call.args[i]
    assert isinstance(arg, Literal)
    return arg.value


def _regex(call: Call) -> Regex:
    return java_regex(_constant(call, 1))


def _like(call: Call) -> _Of:
    regex = _regex(call)
    return lambda texts, crlf: pc.match_substring_regex(texts, pattern=regex.re2(crlf))


def _extract(call: Call) -> _Of:
    regex, group = _regex(call), _constant(call, 2)

    def extract(texts: pa.Array, crlf: bool) -> pa.Array:
        if group:
            found = pc.struct_field(pc.extract_regex(texts, pattern=regex.re2(crlf)), f"g{group}")
        else:  # one alternative matches, all others are empty
            matches = pc.extract_regex(texts, pattern=regex.bodies(crlf))
            bodies = [pc.struct_field(matches, f"b{i}") for i in range(len(regex.alternatives))]
            found = pc.binary_join_element_wise(*bodies, "")
        return pc.if_else(texts.is_valid(), pc.fill_null(found, ""), None)

    return extract


def _replace(call: Call) -> _Of:
    regex = _regex(call)
    pattern, replacement = regex.re2(), java_replacement(_constant(call, 2), regex.groups)
    growth = 1 + len(replacement.encode()) + replacement.count("\\")  # a byte may be a match, and a match each group

    def replace(texts: pa.Array, crlf: bool) -> pa.Array:
        if texts.nbytes * growth >= 2**31:
            raise Uncertain
        found = pc.replace_substring_regex(texts, pattern=pattern, replacement=replacement)
        if found.nbytes > MOST and pc.max(pc.utf8_length(found)).as_py() > MOST:
            raise Uncertain
        return found

    return replace


def _row(build: Callable[[Call], _Of]) -> Callable[[Call], Callable[..., Any]]:
    """The function of a text for one of a column of texts."""

    def built(call: Call) -> Callable[..., Any]:
        function = build(call)

        def of_one(text: str, *constants: Any) -> Any:
            try:
                return function(pa.array([text]), text.endswith("\r\n"))[0].as_py()
            except Uncertain:
                fail("VALUE_TOO_LONG", f"the result could have more than {MOST} characters")

        return of_one

    return built


def _kernel(build: Callable[[Call], _Of]) -> Kernel:
    def kernel(call: Call, args: list[Any]) -> Any:
        if _regex(call).ends and pc.any(pc.ends_with(args[0], pattern="\r\n")).as_py():
            raise Uncertain
        return build(call)(args[0], False)

    return kernel


def _split(texts: pa.Array, pattern: str, limit: int) -> pa.Array:
    """The pieces between the matches of `pattern`, which is not empty; at most `limit` if that is positive."""
    most = limit - 1 if limit > 0 else None
    if not set(pattern) & set("\\[(.*+?|{"):
        return pc.split_pattern(texts, pattern=pattern, max_splits=most)
    return pc.split_pattern_regex(texts, pattern=java_regex(pattern).re2(), max_splits=most)


def _split_row(call: Call) -> Callable[..., Any]:
    if not _constant(call, 1):
        return lambda text, pattern, limit: characters(text, limit)
    return lambda text, pattern, limit: _split(pa.array([text]), pattern, limit)[0].as_py()


def _split_kernel(call: Call, args: list[Any]) -> Any:
    """With a constant limit."""
    if not _constant(call, 1):
        raise Uncertain
    return _split(args[0], _constant(call, 1), constant(call.args[2]))


EXTRACT = Form(_row(_extract), _kernel(_extract))
LIKE = Form(_row(_like), _kernel(_like))
REPLACE = Form(_row(_replace), _kernel(_replace))
SPLIT = Form(_split_row, _split_kernel)
