"""Expressions at run time: on one record and over whole columns; both mean what Spark SQL means."""

from vsc.runtime.expressions.columns import Frame, columns_of, evaluate
from vsc.runtime.expressions.failure import ExpressionFailure
from vsc.runtime.expressions.forms import null_rows, true_rows
from vsc.runtime.expressions.own import bind, bind_allowed, check_allowed, take
from vsc.runtime.expressions.row import compile_row

__all__ = [
    "ExpressionFailure",
    "Frame",
    "bind",
    "bind_allowed",
    "check_allowed",
    "columns_of",
    "compile_row",
    "evaluate",
    "null_rows",
    "take",
    "true_rows",
]
