"""The calls of an aggregate on whole columns, over streams and over tables, whose rows can be taken back.

Each keeps the same cells and entries as the record-by-record accumulator of its call, so each reads what the other
wrote.
"""

from __future__ import annotations

from vsc.plan.nodes import AggregateCall
from vsc.runtime.operators.aggregate.functions.collecting import CollectListColumns, CollectSetColumns
from vsc.runtime.operators.aggregate.functions.kept import (
    KeptExtremeByColumns,
    KeptExtremeColumns,
    KeptFirstLastColumns,
)
from vsc.runtime.operators.aggregate.functions.numbers import ExactFloatSum, ExactSpread, is_float
from vsc.runtime.operators.aggregate.functions.percentile import share_of
from vsc.runtime.operators.aggregate.functions.percentile_columns import PercentileColumns
from vsc.runtime.operators.aggregate.functions.states import ColumnAccumulator
from vsc.runtime.operators.aggregate.functions.sums import (
    CountColumns,
    CountDistinctColumns,
    ExactFloatColumns,
    ExactSumColumns,
    FloatSumColumns,
)
from vsc.runtime.operators.aggregate.functions.top import top_of
from vsc.runtime.operators.aggregate.functions.top_columns import CollectTopColumns
from vsc.runtime.operators.aggregate.functions.winners import ExtremeByColumns, ExtremeColumns, FirstLastColumns

__all__ = ["column_accumulator"]


def column_accumulator(call: AggregateCall, table: bool) -> ColumnAccumulator:
    """The accumulator of a call over a stream or a `table`."""
    of = [arg.type for arg in call.args]
    match call.function:
        case "count" if call.distinct:
            return CountDistinctColumns(of[0])
        case "count":
            return CountColumns()
        case "sum" | "avg" if is_float(of[0]) and table:
            return ExactFloatColumns(ExactFloatSum(call.function == "avg"))
        case "sum" | "avg" if is_float(of[0]):
            return FloatSumColumns(call.function == "avg")
        case "sum" | "avg":
            return ExactSumColumns(of[0], call.type, call.function == "avg")
        case "stddev" | "variance":
            return ExactFloatColumns(ExactSpread(call.function == "stddev"))
        case "collect_list":
            return CollectListColumns(of[0])
        case "collect_set":
            return CollectSetColumns(of[0])
        case "collect_top" | "collect_last":
            return CollectTopColumns(of[0], top_of(call), table)
        case "approx_percentile":
            return PercentileColumns(of[0], share_of(call))
        case "min" | "max" if table:
            return KeptExtremeColumns(of[0], call.function == "max")
        case "min_by" | "max_by" if table:
            return KeptExtremeByColumns(of[0], of[1], call.function == "max_by")
        case "first" | "last" if table:
            return KeptFirstLastColumns(of[0], call.function == "last")
        case "min" | "max":
            return ExtremeColumns(of[0], call.function == "max")
        case "min_by" | "max_by":
            return ExtremeByColumns(of[1], call.function == "max_by")
        case "first" | "last":
            return FirstLastColumns(call.function == "last")
        case other:
            raise ValueError(f"{call.text}: unknown aggregate function {other}")
