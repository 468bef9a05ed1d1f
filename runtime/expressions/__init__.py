"""Expressions at run time: on one record, over whole columns, and as Spark SQL text; all three mean the same."""

from vsc.runtime.expressions.columns import Frame, evaluate
from vsc.runtime.expressions.failure import ColumnFailure, ExpressionFailure
from vsc.runtime.expressions.row import Row, RowFunction, compile_row
from vsc.runtime.expressions.spark_text import spark_sql

__all__ = [
    "ColumnFailure",
    "ExpressionFailure",
    "Frame",
    "Row",
    "RowFunction",
    "compile_row",
    "evaluate",
    "spark_sql",
]
