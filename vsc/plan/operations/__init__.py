"""The operations of a plan, each with what the compiler and the runtime need to know about it."""

from vsc.plan.operations.aggregates import VALIDITY, Aggregate, AggregateCall, GroupChanges, Window
from vsc.plan.operations.holding import Distinct, Reorder, Suppress
from vsc.plan.operations.rows import (
    DEAD_LETTER,
    DeadLetters,
    Explode,
    ExplodeChanges,
    Filter,
    Map,
    Materialize,
    Merge,
    Rekey,
    Source,
    ToStream,
    ToTable,
)
from vsc.plan.operations.stream_joins import StreamStreamJoin, WithinAggregate
from vsc.plan.operations.table_joins import PIECE, SPAN, Answer, Subscribe, TableTableJoin
from vsc.plan.operations.table_look_ups import (
    REVISION,
    ROW_CHANGE,
    Correct,
    Grace,
    RowChanges,
    StreamGlobalJoin,
    StreamTableJoin,
    with_revision,
)

__all__ = [
    "DEAD_LETTER", "PIECE", "REVISION", "ROW_CHANGE", "SPAN", "VALIDITY", "Aggregate", "AggregateCall", "Answer",
    "Correct", "DeadLetters", "Distinct", "Explode", "ExplodeChanges", "Filter", "Grace", "GroupChanges", "Map",
    "Materialize", "Merge", "Operation", "Rekey", "Reorder", "RowChanges", "Source", "StreamGlobalJoin",
    "StreamStreamJoin", "StreamTableJoin", "Subscribe", "Suppress", "TableTableJoin", "ToStream", "ToTable", "Window",
    "WithinAggregate", "with_revision",
]  # fmt: skip

Operation = (
    Correct | DeadLetters | Distinct | Source | Filter | Grace | Map | Rekey | Reorder | RowChanges | ToTable
    | Materialize | StreamTableJoin | ToStream | Merge | Explode | ExplodeChanges | StreamStreamJoin | StreamGlobalJoin
    | TableTableJoin | Subscribe | Answer | GroupChanges | Aggregate | Suppress | WithinAggregate
)  # fmt: skip
