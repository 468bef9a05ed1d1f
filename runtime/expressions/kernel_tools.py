"""Helpers for kernels over whole columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Expr, Literal
from vsc.plan.types import DataType, ScalarType
from vsc.runtime.expressions.forms import Uncertain
from vsc.runtime.records import Mask

__all__ = ["checked", "constant", "fits", "length_of", "name_of", "null_rows", "numbers", "with_nulls_of"]


def name_of(type: DataType) -> str:
    """The name of a scalar type, empty for others."""
    return type.name if isinstance(type, ScalarType) else ""


def length_of(args: list[Any]) -> int:
    """How many rows there are."""
    return next(len(arg) for arg in args if not isinstance(arg, pa.Scalar))


def checked(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of an Arrow function. Raises Uncertain if it fails."""
    try:
        return function(*args, **options)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise Uncertain from None


def numbers(column: pa.Array) -> npt.NDArray[Any]:
    """The values of a column without nulls or with anything in their place."""
    filled = column.fill_null(pa.scalar(0, column.type)) if column.null_count else column
    found: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return found


def null_rows(columns: Sequence[pa.Array], rows: int) -> Mask:
    """Where one of the columns is null."""
    null = np.zeros(rows, dtype=np.bool_)
    for column in columns:
        if column.null_count:
            null |= column.is_null().to_numpy(zero_copy_only=False)
    return null


def with_nulls_of(values: npt.NDArray[Any], type: pa.DataType, *columns: pa.Array) -> pa.Array:
    """The values as a column, null where one of `columns` is."""
    nulls = null_rows(columns, len(values))
    return pa.array(values, type, mask=nulls if nulls.any() else None)


def constant(expr: Expr) -> Any:
    """The value of a constant argument; Uncertain if it is not one, or null."""
    if isinstance(expr, Literal) and expr.value is not None:
        return expr.value
    raise Uncertain


def fits(texts: pa.Array, regex: str) -> bool:
    """Whether every non-null text matches `regex` completely."""
    return bool(pc.all(pc.match_substring_regex(texts, rf"\A(?:{regex})\z"), min_count=0).as_py())
