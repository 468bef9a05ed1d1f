"""Expressions at run time: on one record, over whole columns, and as Spark SQL text; all three mean the same."""

from vsc.runtime.expressions.columns import Frame, evaluate
from vsc.runtime.expressions.failure import ColumnFailure, ExpressionFailure
from vsc.runtime.expressions.row import Row, RowFunction, compile_row
from vsc.runtime.expressions.spark_exact import can_fail, exact_in_spark, has_map
from vsc.runtime.expressions.spark_text import spark_sql

__all__ = [
    "ColumnFailure",
    "ExpressionFailure",
    "Frame",
    "Row",
    "RowFunction",
    "can_fail",
    "compile_row",
    "evaluate",
    "exact_in_spark",
    "has_map",
    "spark_sql",
]
