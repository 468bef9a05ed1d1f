"""`join ... within (before = D)` whose items aggregate the right stream: what came before each left record.

In which order results come out, and over which records: `step`. How the calls are computed: `calls`.
"""

from __future__ import annotations

from vsc.runtime.operators.operator import Operator
from vsc.runtime.operators.stream_stream_join.view import RECORDS
from vsc.runtime.operators.within_aggregate.step import Aggregating

__all__ = ["OPERATOR"]

OPERATOR = Operator(Aggregating, side_store=RECORDS)
