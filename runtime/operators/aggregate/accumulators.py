"""The calls of an aggregate on whole columns: what needs only what it has seen, and what can be taken back.

Each has the cells of the accumulator in a loop of the same call, so both read what the other one wrote; what cannot be
done exactly is refused with `NotColumnar`.
"""

from __future__ import annotations

from vsc.plan.nodes import AggregateCall
from vsc.plan.types import DataType, DecimalType, ScalarType
from vsc.runtime.operators.aggregate.collecting import CollectListColumns, CollectSetColumns
from vsc.runtime.operators.aggregate.distinct import CountDistinctColumns
from vsc.runtime.operators.aggregate.exact_floats import ExactFloatColumns
from vsc.runtime.operators.aggregate.kept import KeptExtremeByColumns, KeptExtremeColumns, KeptFirstLastColumns
from vsc.runtime.operators.aggregate.numbers import is_float
from vsc.runtime.operators.aggregate.ranks import can_be_ranked
from vsc.runtime.operators.aggregate.states import ColumnAccumulator
from vsc.runtime.operators.aggregate.sums import CountColumns, ExactSumColumns, FloatSumColumns
from vsc.runtime.operators.aggregate.winners import ExtremeByColumns, ExtremeColumns, FirstLastColumns

__all__ = ["KEEPING", "column_accumulator"]

KEEPING = (
    CountDistinctColumns, CollectListColumns, CollectSetColumns,
    KeptExtremeColumns, KeptExtremeByColumns, KeptFirstLastColumns,
)  # fmt: skip
"""Those that keep entries beside their cells."""

_NARROW = 18
"""Decimals up to this precision are numbers of 64 bits."""


def column_accumulator(call: AggregateCall, table: bool) -> ColumnAccumulator | None:
    """The accumulator of a call over a stream or a `table`; None if it needs a loop."""
    of = [arg.type for arg in call.args]
    match call.function:
        case "count" if call.distinct:
            return CountDistinctColumns(of[0])
        case "count":
            return CountColumns()
        case "sum" | "avg" if is_float(of[0]) and table:
            return ExactFloatColumns(call.function == "avg")
        case "sum" | "avg" if is_float(of[0]):
            return FloatSumColumns(call.function == "avg")
        case "sum" | "avg" if _narrow(of[0]):
            return ExactSumColumns(of[0], call.type, call.function == "avg")
        case "collect_list":
            return CollectListColumns(of[0], table)
        case "collect_set":
            return CollectSetColumns(of[0], table)
        case "min" | "max" if table:
            return KeptExtremeColumns(of[0], call.function == "max")
        case "min_by" | "max_by" if table:
            return KeptExtremeByColumns(of[0], of[1], call.function == "max_by")
        case "first" | "last" if table:
            return KeptFirstLastColumns(of[0], call.function == "last")
        case "min" | "max" if can_be_ranked(of[0]):
            return ExtremeColumns(of[0], call.function == "max")
        case "min_by" | "max_by" if _plain(of[0]) and can_be_ranked(of[1]):
            return ExtremeByColumns(of[1], call.function == "max_by")
        case "first" | "last" if _plain(of[0]):
            return FirstLastColumns(call.function == "last")
        case _:
            return None


def _narrow(data_type: DataType) -> bool:
    return not isinstance(data_type, DecimalType) or data_type.precision <= _NARROW


def _plain(data_type: DataType) -> bool:
    return isinstance(data_type, ScalarType | DecimalType)
