"""Kernels of functions over text: see `vsc.runtime.expressions.kernels`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call
from vsc.plan.types import ArrayType
from vsc.runtime.expressions.forms import Kernel, Uncertain, constant
from vsc.runtime.expressions.text import MOST
from vsc.runtime.values import arrow_type


def concat(call: Call, args: list[Any]) -> Any:
    """``||`` of texts or binaries."""
    if isinstance(call.type, ArrayType):
        raise Uncertain
    separator = pa.scalar("" if str(call.type) == "string" else b"", arrow_type(call.type))
    return _short(pc.binary_join_element_wise(*args, separator, null_handling="emit_null"))


def concat_ws(call: Call, args: list[Any]) -> Any:
    """Of texts, not of arrays, with a constant separator."""
    separator = constant(call.args[0])
    if any(isinstance(arg.type, ArrayType) for arg in call.args):
        raise Uncertain
    nothing, empty = pa.scalar(""), pa.scalar("")
    led = [
        pc.binary_join_element_wise(nothing, arg, pa.scalar(separator), null_handling="emit_null") for arg in args[1:]
    ]
    joined = pc.binary_join_element_wise(*(pc.coalesce(one, empty) for one in led), empty)
    return _short(pc.utf8_slice_codeunits(joined, len(separator)))


def _short(column: pa.Array) -> pa.Array:
    """The column. Raises Uncertain if one of its values could be too long."""
    if column.nbytes > MOST and pc.max(pc.binary_length(column)).as_py() > MOST:
        raise Uncertain
    return column


def replace(call: Call, args: list[Any]) -> Any:
    """Of a constant, by a constant that is not so long that a result could be too long."""
    search, replacement = constant(call.args[1]), constant(call.args[2])
    if not search:
        return args[0]
    if len(replacement) > len(search) and args[0].nbytes * len(replacement) > MOST * len(search):
        raise Uncertain
    return pc.replace_substring(args[0], pattern=search, replacement=replacement)


def like(call: Call, args: list[Any]) -> Any:
    """By a constant pattern without escapes."""
    pattern = constant(call.args[1])
    if "\\" in pattern:
        raise Uncertain
    return pc.match_like(args[0], pattern=pattern)


def substring(call: Call, args: list[Any]) -> Any:
    """Of text, from a constant position that counts from the start."""
    position = constant(call.args[1])
    length = constant(call.args[2]) if len(call.args) == 3 else None
    if str(call.type) != "string" or position < 0 or (length is not None and length < 0):
        raise Uncertain
    start = max(position - 1, 0)
    return pc.utf8_slice_codeunits(args[0], start, None if length is None else start + length)


def case_of(function: Callable[..., Any]) -> Kernel:
    """``upper`` and ``lower`` of ASCII: other letters are not the same in Java and in Arrow."""

    def kernel(call: Call, args: list[Any]) -> Any:
        if not pc.all(pc.string_is_ascii(args[0])).as_py():
            raise Uncertain
        return function(args[0])

    return kernel


def search(function: Callable[..., Any]) -> Kernel:
    """A search for a constant."""
    return lambda call, args: function(args[0], pattern=constant(call.args[1]))


def length(call: Call, args: list[Any]) -> Any:
    """Of text or binary."""
    if str(call.args[0].type) == "string":
        return pc.utf8_length(args[0])
    return pc.binary_length(args[0])
