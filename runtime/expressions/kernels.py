"""Arrow and numpy kernels for single operators and functions, each only where it agrees exactly with the row function.

See `vsc.runtime.expressions.forms.Kernel` for what they take and give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call, Expr, Literal
from vsc.plan.types import ArrayType, DataType, DecimalType, ScalarType, StructType
from vsc.runtime.expressions.calendar import DAY, HOUR, MINUTE, SECOND
from vsc.runtime.expressions.forms import Kernel, Uncertain, full
from vsc.runtime.values import INTEGER_BITS, arrow_type


def _name(type: DataType) -> str:
    return type.name if isinstance(type, ScalarType) else ""


def _length(args: list[Any]) -> int:
    return next(len(arg) for arg in args if not isinstance(arg, pa.Scalar))


def _checked(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    try:
        return function(*args, **options)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise Uncertain from None


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    """The values of a column without nulls or with anything in their place."""
    filled = column.fill_null(pa.scalar(0, column.type)) if column.null_count else column
    found: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return found


def _with_nulls_of(values: npt.NDArray[Any], type: pa.DataType, *columns: pa.Array) -> pa.Array:
    nulls = np.zeros(len(values), np.bool_)
    for column in columns:
        if column.null_count:
            nulls |= column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(values, type, mask=nulls if nulls.any() else None)


# ------------------------------------------------------------------------------------------------------- arithmetic

_CHECKED = {"add": pc.add_checked, "subtract": pc.subtract_checked, "multiply": pc.multiply_checked}
_UNCHECKED = {"add": pc.add, "subtract": pc.subtract, "multiply": pc.multiply}


def arithmetic(call: Call, args: list[Any]) -> Any:
    """``+ - *`` of two or more; not where Spark cuts digits of a decimal off."""
    if _name(call.args[1].type) == "interval":
        return _shift(call, args)
    found = args[0]
    for arg in args[1:]:
        found = _step(call, found, arg)
    return found


def _step(call: Call, left: Any, right: Any) -> Any:
    if _name(call.type) in INTEGER_BITS:
        return _checked(_CHECKED[call.function], left, right)
    if isinstance(call.type, DecimalType):
        found = _checked(_UNCHECKED[call.function], left, right)
        if found.type != arrow_type(call.type):
            raise Uncertain  # Spark has cut digits off
        return found
    return _UNCHECKED[call.function](left, right)


def _shift(call: Call, args: list[Any]) -> Any:
    """A timestamp and a constant duration."""
    duration = call.args[1]
    if not isinstance(duration, Literal) or not isinstance(duration.value, int):
        raise Uncertain
    step = pa.scalar(duration.value * 1000, pa.int64())
    return _checked(_CHECKED[call.function], args[0].view(pa.int64()), step).view(arrow_type(call.type))


def divide(call: Call, args: list[Any]) -> Any:
    """``/`` of floating-point numbers."""
    if _name(call.type) not in ("double", "float"):
        raise Uncertain
    zero = pc.and_kleene(pc.equal(args[1], 0.0), pc.is_valid(args[0]))
    if pc.any(full(zero, _length(args))).as_py():
        raise Uncertain
    return pc.divide(*args)


def modulo(call: Call, args: list[Any]) -> Any:
    """``%`` of integers."""
    if _name(call.type) not in INTEGER_BITS:
        raise Uncertain
    left, right = (full(arg, _length(args)) for arg in args)
    divisor = _numbers(right.fill_null(pa.scalar(1, right.type)))
    if not divisor.all():
        raise Uncertain
    dividend = _numbers(left)
    divisor = np.where(divisor == -1, 1, divisor).astype(dividend.dtype)  # the smallest integer by -1 traps
    return _with_nulls_of(np.fmod(dividend, divisor), left.type, left, right)


def negate(call: Call, args: list[Any]) -> Any:
    """Unary minus, not of decimals."""
    if isinstance(call.type, DecimalType):
        raise Uncertain
    return _checked(pc.negate_checked if _name(call.type) in INTEGER_BITS else pc.negate, *args)


def absolute(call: Call, args: list[Any]) -> Any:
    """``abs``, not of decimals."""
    if isinstance(call.type, DecimalType):
        raise Uncertain
    return _checked(pc.abs_checked if _name(call.type) in INTEGER_BITS else pc.abs, *args)


# ---------------------------------------------------------------------------------------------- comparisons and nulls

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
    if _name(type) in _COMPARABLE or isinstance(type, DecimalType):
        return _PLAIN[function](left, right)
    if _name(type) not in ("float", "double"):
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


# ------------------------------------------------------------------------------------------------------------- text


def concat(call: Call, args: list[Any]) -> Any:
    """``||`` of texts or binaries."""
    if isinstance(call.type, ArrayType):
        raise Uncertain
    separator = pa.scalar("" if _name(call.type) == "string" else b"", arrow_type(call.type))
    return pc.binary_join_element_wise(*args, separator, null_handling="emit_null")


def concat_ws(call: Call, args: list[Any]) -> Any:
    """Of texts, not of arrays, of which one at least is never null."""
    if any(isinstance(arg.type, ArrayType) for arg in call.args):
        raise Uncertain
    separator, *values = args
    if not any(value.null_count == 0 if isinstance(value, pa.Array) else value.is_valid for value in values):
        raise Uncertain  # Arrow leaves a row out if all its texts are null
    return pc.binary_join_element_wise(*values, separator, null_handling="skip")


def _constant(expr: Expr) -> Any:
    if isinstance(expr, Literal) and expr.value is not None:
        return expr.value
    raise Uncertain


def substring(call: Call, args: list[Any]) -> Any:
    """Of text, from a constant position that counts from the start."""
    position = _constant(call.args[1])
    length = _constant(call.args[2]) if len(call.args) == 3 else None
    if _name(call.type) != "string" or position < 0 or (length is not None and length < 0):
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
    return lambda call, args: function(args[0], pattern=_constant(call.args[1]))


def length(call: Call, args: list[Any]) -> Any:
    """Of text or binary."""
    if _name(call.args[0].type) == "string":
        return pc.utf8_length(args[0])
    return pc.binary_length(args[0])


# ------------------------------------------------------------------------------------------------------------- time


def clock(unit: int, modulus: int) -> Kernel:
    """A part of the time of day."""

    def kernel(call: Call, args: list[Any]) -> Any:
        micros = args[0].view(pa.int64())
        return _with_nulls_of((_numbers(micros) // unit % modulus).astype(np.int32), pa.int32(), micros)

    return kernel


def unix_millis(call: Call, args: list[Any]) -> Any:
    """Rounded down."""
    micros = args[0].view(pa.int64())
    return _with_nulls_of(_numbers(micros) // 1000, pa.int64(), micros)


def timestamp_millis(call: Call, args: list[Any]) -> Any:
    """Not where it overflows."""
    return _checked(pc.multiply_checked, args[0], pa.scalar(1000, pa.int64())).view(arrow_type(call.type))


_STEPS = {"millisecond": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}


def truncate(call: Call, args: list[Any]) -> Any:
    """``date_trunc`` to units of one length."""
    step = _STEPS.get(_constant(call.args[0]))
    if step is None:
        raise Uncertain
    micros = args[1].view(pa.int64())
    numbers = _numbers(micros)
    if len(numbers) and numbers.min() < -(2**63) + step:
        raise Uncertain
    return _with_nulls_of(numbers - numbers % step, pa.int64(), micros).view(arrow_type(call.type))


_FIRST_DAY, _LAST_DAY = -719162, 2932896  # the years 1 to 9999


def date_part(function: Callable[..., Any]) -> Kernel:
    """A part of the date, in the years that Arrow knows."""

    def kernel(call: Call, args: list[Any]) -> Any:
        days = _numbers(args[0].view(pa.int32()))
        if len(days) and (days.min() < _FIRST_DAY or days.max() > _LAST_DAY):
            raise Uncertain
        return function(args[0]).cast(pa.int32())

    return kernel


# ---------------------------------------------------------------------------------------------------- nested values


def get_field(call: Call, args: list[Any]) -> Any:
    """Field of a struct."""
    struct = call.args[0].type
    if not isinstance(struct, StructType):
        raise Uncertain
    place = [f.name for f in struct.fields].index(str(_constant(call.args[1])))
    return pc.struct_field(args[0], [place])


def size(call: Call, args: list[Any]) -> Any:
    """Of an array."""
    if not isinstance(call.args[0].type, ArrayType):
        raise Uncertain
    return pc.list_value_length(args[0])
