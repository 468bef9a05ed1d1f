"""Functions of the user's own: found once in a process, called by rows or by columns.

`bind` imports the functions that a plan declares, if the run allows their modules: it stands wherever a plan is about
to be evaluated, on the driver and in Spark's workers, so nothing else is ever called. A function is called for no row
for which SQL would not evaluate the call, and sees nulls. It may be called several times for a row.

What a function raises is the failure of that record's expression. `FunctionError` is not: it ends the run.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call
from vsc.plan.nodes import OwnFunction, Plan
from vsc.plan.types import BINARY, STRING
from vsc.runtime.errors import FunctionError
from vsc.runtime.expressions.failure import ExpressionFailure, short
from vsc.runtime.expressions.text import check_length, limited
from vsc.runtime.values import arrow_type, from_python, to_array, to_python, to_values

__all__ = ["bind", "bind_allowed", "check_allowed", "on_arrays", "on_row", "take"]

_INT64_DIGITS = 19
_found: dict[str, Callable[..., Any]] = {}
"""The functions of the plans that this process evaluates, by reference."""


def bind(plan: Plan, allowed: Collection[str]) -> None:
    """Finds the functions that `plan` calls. Raises FunctionError for one that is not allowed or not there."""
    check_allowed(plan, allowed)
    for function in plan.functions:
        take(function)


def bind_allowed(plan: Plan, allowed: Collection[str]) -> None:
    """Finds the functions of a plan whose state is only looked at: most looks call none, so the others may be missing.

    A call of one of those raises FunctionError.
    """
    for function in plan.functions:
        if function.module in allowed:
            take(function)


def check_allowed(plan: Plan, allowed: Collection[str]) -> None:
    """Raises FunctionError for a function in a module that is not among the `allowed` ones."""
    for function in plan.functions:
        if function.module not in allowed:
            raise FunctionError(
                f"the topology calls '{function.reference}', of a module that this run does not allow",
                f"if you trust it: --functions {function.module}, in Python functions=['{function.module}'], in a "
                f"scenario file functions: [{function.module}]",
            )


def take(function: OwnFunction) -> None:
    """Imports a function, of a module that is allowed. Raises FunctionError if it is not there."""
    module, _, name = function.reference.partition(":")
    try:
        found = getattr(_imported(module), name, None)
    except ImportError as error:
        raise FunctionError(
            f"the function '{function.reference}' cannot be imported: {short(error)}",
            "install its module in this Python, or put its folder on PYTHONPATH",
        ) from error
    except Exception as error:
        raise FunctionError(
            f"the module '{module}' fails when it is imported: {_raised(error)}", "correct the module"
        ) from error
    if not callable(found):
        wrong = "has no function" if found is None else "has no function, but a value,"
        raise FunctionError(f"the module '{module}' {wrong} '{name}'", f"correct the reference '{function.reference}'")
    _found[function.reference] = found


def _imported(name: str) -> Any:
    """The module, never one that is only found because it lies in the working directory."""
    here = "" in sys.path
    if here:
        sys.path.remove("")
    try:
        return importlib.import_module(name)
    finally:
        if here:
            sys.path.insert(0, "")


def on_row(call: Call) -> Callable[..., Any]:
    """The function of one row's internal values."""
    return _one_by_one(call) if call.vectorized else _plain(call)


def _plain(call: Call) -> Callable[..., Any]:
    reference, result = call.function, call.type
    types = [arg.type for arg in call.args]

    def called(*values: Any) -> Any:
        try:
            given = [to_python(value, type) for value, type in zip(values, types, strict=True)]
        except OverflowError as error:
            raise ExpressionFailure(f"{reference} cannot take an argument: {error}") from error
        try:
            value = _of(call)(*given)
        except FunctionError:
            raise
        except Exception as error:
            raise ExpressionFailure(f"{reference} raised {_raised(error)}") from error
        try:
            return from_python(value, result)
        except (ValueError, OverflowError) as error:
            raise ExpressionFailure(f"{reference} returned a value that is not its type: {error}") from error

    return limited(called) if result in (STRING, BINARY) else called


def _one_by_one(call: Call) -> Callable[..., Any]:
    types = [arg.type for arg in call.args]

    def called(*values: Any) -> Any:
        arrays = [to_array([value], type) for value, type in zip(values, types, strict=True)]
        return to_values(on_arrays(call, arrays, 1), call.type)[0]

    return called


def on_arrays(call: Call, arrays: Sequence[pa.Array], rows: int) -> pa.Array:
    """The result of a vectorized function. Raises ExpressionFailure for what it raises, on whichever of the rows.

    Raises FunctionError for a result of another type or length: the function is wrong on every row.
    """
    function, wanted = _of(call), arrow_type(call.type)
    if not rows:
        return pa.array([], wanted)
    try:
        found = function(*arrays)
    except Exception as error:
        raise ExpressionFailure(f"{call.function} raised {_raised(error)}") from error
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    help = f"return a pyarrow array of {wanted}, with a value for each row"
    if not isinstance(found, pa.Array):
        raise FunctionError(
            f"'{call.function}' returned a value of type {type(found).__name__} for {rows} rows, not an array", help
        )
    if not (found.type == wanted or _is_inferred(found.type, wanted)):
        raise FunctionError(f"'{call.function}' returned an array of {found.type}, not of {wanted}", help)
    if len(found) != rows:
        raise FunctionError(f"'{call.function}' returned an array of {len(found)} values for {rows} rows", help)
    found.validate(full=True)
    if found.type != wanted:
        try:
            whole = pa.types.is_int64(found.type) and pa.types.is_decimal(wanted)
            found = (found.cast(pa.decimal128(_INT64_DIGITS)) if whole else found).cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise FunctionError(
                f"'{call.function}' returned an array of {found.type}, not of {wanted}: {short(error)}", help
            ) from error
    if call.type in (STRING, BINARY):
        lengths = (pc.utf8_length if call.type == STRING else pc.binary_length)(found)
        check_length(pc.max(lengths).as_py() or 0)
    return found


def _is_inferred(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether pyarrow may take values of the type `wanted` for the type `found`: without a value, for null; whole
    numbers among others, for integers; decimals, for those with as many digits as they have; structs, for those with
    the fields that some row has, in the order in which they come; times, for those in the zone of the first. Which it
    is depends on the rows that come together."""
    if pa.types.is_null(found) or found == wanted:
        return True
    if pa.types.is_decimal(found) and pa.types.is_decimal(wanted):
        before = found.precision - found.scale <= wanted.precision - wanted.scale
        return bool(before and found.scale <= wanted.scale)
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return _is_inferred(found.value_type, wanted.value_type)
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        fields = {field.name: field.type for field in wanted}
        return all(field.name in fields and _is_inferred(field.type, fields[field.name]) for field in found)
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted):
        return found.tz is not None and found.unit == wanted.unit
    return bool(pa.types.is_int64(found) and (pa.types.is_float64(wanted) or pa.types.is_decimal(wanted)))


def _of(call: Call) -> Callable[..., Any]:
    found = _found.get(call.function)
    if found is None:
        module = call.function.partition(":")[0]
        raise FunctionError(
            f"'{call.function}' is called, of a module that is not allowed", f"use --functions {module}"
        )
    return found


def _raised(error: BaseException) -> str:
    """What was raised, and in which line."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {short(error)}{place}"
