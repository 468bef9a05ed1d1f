"""Expressions at run time: on one record and over whole columns; both mean what Spark SQL means."""

from vsc.runtime.expressions.columns import Frame, columns_of, evaluate
from vsc.runtime.expressions.failure import ExpressionFailure
from vsc.runtime.expressions.forms import true_rows
from vsc.runtime.expressions.row import Row, RowFunction, compile_row

__all__ = [
    "ExpressionFailure",
    "Frame",
    "Row",
    "RowFunction",
    "columns_of",
    "compile_row",
    "evaluate",
    "true_rows",
]
