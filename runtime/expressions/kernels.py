"""Arrow and numpy kernels for single operators and functions, each only where it agrees exactly with the row function.

See `vsc.runtime.expressions.forms.Kernel` for their arguments and results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call
from vsc.plan.types import BIGINT, ArrayType, DataType, DecimalType, StructType
from vsc.runtime.expressions.forms import (
    Kernel,
    Uncertain,
    constant,
    full,
    length_of,
    numbers,
    typed,
    with_nulls_of,
)
from vsc.runtime.expressions.numbers import rounded
from vsc.runtime.values import INTEGER_BITS, arrow_type

# ----------------------------------------------------------------------------------------------------------- arithmetic


def arithmetic(call: Call, args: list[Any]) -> Any:
    """``+ - *`` of two or more; not where Spark cuts digits of a decimal off."""
    if str(call.args[1].type) == "interval":
        millis = pa.scalar(constant(call.args[1]) * 1000, pa.int64())
        return _arrow(call.function, BIGINT)(args[0].view(pa.int64()), millis).view(arrow_type(call.type))
    step = _arrow(call.function, call.type)
    found = args[0]
    for arg in args[1:]:
        found = step(found, arg)
        if isinstance(call.type, DecimalType) and found.type != arrow_type(call.type):
            raise Uncertain  # Spark has cut digits off
    return found


def _arrow(function: str, type: DataType) -> Callable[..., Any]:
    """Arrow's function of that name, the one that fails on overflow for integers."""
    found: Callable[..., Any] = getattr(pc, f"{function}_checked" if str(type) in INTEGER_BITS else function)
    return found


def divide(call: Call, args: list[Any]) -> Any:
    """``/`` of floating-point numbers."""
    if str(call.type) not in ("double", "float"):
        raise Uncertain
    zero = pc.and_kleene(pc.equal(args[1], 0.0), pc.is_valid(args[0]))
    if pc.any(full(zero, length_of(args))).as_py():
        raise Uncertain
    return pc.divide(*args)


def modulo(call: Call, args: list[Any]) -> Any:
    """``%`` of integers."""
    if str(call.type) not in INTEGER_BITS:
        raise Uncertain
    left, right = (full(arg, length_of(args)) for arg in args)
    divisor = numbers(right.fill_null(pa.scalar(1, right.type)))
    if not divisor.all():
        raise Uncertain
    dividend = numbers(left)
    divisor = np.where(divisor == -1, 1, divisor).astype(dividend.dtype)  # the smallest integer by -1 traps
    return with_nulls_of(np.fmod(dividend, divisor), left.type, left, right)


def of_one(call: Call, args: list[Any]) -> Any:
    """Unary minus and ``abs``."""
    return _arrow(call.function, call.type)(*args)


def try_divide(call: Call, args: list[Any]) -> Any:
    """Of floating-point numbers."""
    if str(call.type) not in ("double", "float"):
        raise Uncertain
    dividend, divisor = args
    return pc.divide(dividend, pc.if_else(pc.equal(divisor, 0.0), pa.scalar(None, divisor.type), divisor))


def whole(function: Callable[..., Any]) -> Kernel:
    """``ceil`` and ``floor`` of floating-point numbers; integers are whole."""

    def kernel(call: Call, args: list[Any]) -> Any:
        if str(call.args[0].type) in INTEGER_BITS:
            return args[0]
        if isinstance(call.type, DecimalType):
            raise Uncertain
        values = numbers(args[0])
        if not (np.abs(values) < 2.0**62).all():  # also false for NaN
            raise Uncertain
        return with_nulls_of(function(values).astype(np.int64), pa.int64(), args[0])

    return kernel


def rounding(call: Call, args: list[Any]) -> Any:
    """``round`` of decimals and doubles to digits after the point."""
    digits = constant(call.args[1])
    if isinstance(call.type, DecimalType) and digits >= 0:
        return rounded_decimals(args[0], call.type)
    if str(call.type) != "double" or not 0 <= digits <= 15:
        raise Uncertain
    units, sure = nearest_units(numbers(args[0]), digits)
    found = units / 10.0**digits + 0.0
    one = rounded(digits, call.args[0].type, call.type)
    for row in np.flatnonzero(~sure).tolist():
        found[row] = one(args[0][row].as_py()) if args[0][row].is_valid else 0.0
    return with_nulls_of(found, pa.float64(), args[0])


def rounded_decimals(column: pa.Array, type: DecimalType) -> Any:
    """Decimals, rounded half up to the scale of `type`."""
    if column.type.scale > type.scale:
        if column.type.precision == 38:
            raise Uncertain  # one more digit must fit: Arrow would make the value 0 in a column with nulls
        column = column.cast(pa.decimal128(column.type.precision + 1, column.type.scale))
        column = pc.round(column, ndigits=type.scale, round_mode="half_towards_infinity")
    digits = column.type.precision + type.scale - column.type.scale
    if digits > 38:  # Arrow would make another number of one that does not fit into 128 bits
        column = pc.cast(column, pa.decimal256(digits, type.scale))
    return pc.cast(column, arrow_type(type))


def nearest_units(values: npt.NDArray[Any], digits: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The doubles in units of 10 to the minus `digits`, rounded to whole ones; and where that is sure to be right.

    It is not close to the middle between two units, where what decides are the digits that a double is shown with.
    Below 2 to the 40th the product is off by much less than the distance that is asked for.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * 10.0**digits
        units = np.rint(scaled)
        sure = (np.abs(scaled) < 2.0**40) & (np.abs(scaled - units) < 0.499)
    return units, sure


def extreme(function: Callable[..., Any]) -> Kernel:
    """``greatest`` and ``least``, but of floating-point numbers: NaN is the greatest, and -0.0 is 0.0."""

    def kernel(call: Call, args: list[Any]) -> Any:
        if str(call.type) in ("float", "double"):
            raise Uncertain
        return function(*args, skip_nulls=True)

    return kernel


# ------------------------------------------------------------------------------------------------ comparisons and nulls

_PLAIN = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}
_COMPARABLE = {"boolean", *INTEGER_BITS, "string", "binary", "date", "timestamp"}


def compare(function: str, type: DataType, left: Any, right: Any) -> Any:
    """The comparison of two columns of `type`; raises Uncertain for nested types."""
    if str(type) in _COMPARABLE or isinstance(type, DecimalType):
        return _PLAIN[function](left, right)
    if str(type) not in ("float", "double"):
        raise Uncertain
    nan_left, nan_right = pc.is_nan(left), pc.is_nan(right)
    match function:
        case "eq":
            return pc.or_kleene(pc.equal(left, right), pc.and_kleene(nan_left, nan_right))
        case "lt":  # NaN is above everything else
            return pc.or_kleene(pc.less(left, right), pc.and_kleene(pc.invert(nan_left), nan_right))
        case "gt":
            return pc.or_kleene(pc.greater(left, right), pc.and_kleene(nan_left, pc.invert(nan_right)))
        case "ne":
            return pc.invert(compare("eq", type, left, right))
        case "le":
            return pc.invert(compare("gt", type, left, right))
        case _:
            return pc.invert(compare("lt", type, left, right))


def comparison(call: Call, args: list[Any]) -> Any:
    """``= <> < <= > >=``."""
    return compare(call.function, call.args[0].type, *args)


def is_null(call: Call, args: list[Any]) -> Any:
    """``is null`` and ``is not null``."""
    return pc.is_null(*args) if call.function == "is_null" else pc.is_valid(*args)


# -------------------------------------------------------------------------------------------------------- nested values


def get_field(call: Call, args: list[Any]) -> Any:
    """Field of a struct."""
    struct = call.args[0].type
    if not isinstance(struct, StructType):
        raise Uncertain
    place = [f.name for f in struct.fields].index(str(constant(call.args[1])))
    return pc.struct_field(args[0], [place])


def size(call: Call, args: list[Any]) -> Any:
    """Of an array."""
    if not isinstance(call.args[0].type, ArrayType):
        raise Uncertain
    return pc.list_value_length(args[0])


def element(first: int) -> Kernel:
    """Of an array, by a constant that counts from `first`."""

    def kernel(call: Call, args: list[Any]) -> Any:
        if not isinstance(call.args[0].type, ArrayType) or constant(call.args[1]) < first:
            raise Uncertain
        return pc.list_element(args[0], constant(call.args[1]) - first)

    return kernel


def _columns(call: Call, args: list[Any]) -> list[pa.Array]:
    """The arguments as columns of exactly their types."""
    rows = length_of(args)
    return [typed(arg, expr.type, rows) for arg, expr in zip(args, call.args, strict=True)]


def struct(call: Call, args: list[Any]) -> Any:
    """A struct of its fields."""
    return pa.StructArray.from_arrays(_columns(call, args), fields=list(arrow_type(call.type)))


def array(call: Call, args: list[Any]) -> Any:
    """An array of its elements: all first ones, all second ones, ..., taken in turns."""
    rows, width = length_of(args), len(args)
    flat = pa.concat_arrays(_columns(call, args))
    turns = np.arange(rows * width).reshape(width, rows).T.ravel()
    offsets = pa.array(np.arange(0, (rows + 1) * width, width), pa.int32())
    return pa.ListArray.from_arrays(offsets, flat.take(pa.array(turns)), type=arrow_type(call.type))
