"""Expressions at run time: on one record, over whole columns, and as Spark SQL text; all three mean the same."""

from vsc.runtime.expressions.columns import Frame, columns_of, evaluate
from vsc.runtime.expressions.failure import ColumnFailure, ExpressionFailure
from vsc.runtime.expressions.row import Row, RowFunction, compile_row
from vsc.runtime.expressions.spark_exact import can_fail, exact_in_spark, has_map
from vsc.runtime.expressions.spark_text import EVENT_TIME, spark_sql
from vsc.runtime.expressions.spark_try import Tried, tried

__all__ = [
    "EVENT_TIME",
    "ColumnFailure",
    "ExpressionFailure",
    "Frame",
    "Row",
    "RowFunction",
    "Tried",
    "can_fail",
    "columns_of",
    "compile_row",
    "evaluate",
    "exact_in_spark",
    "has_map",
    "spark_sql",
    "tried",
]
