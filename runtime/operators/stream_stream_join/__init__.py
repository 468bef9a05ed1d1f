"""The join of two streams (`within`): records of one key whose times are close enough meet once.

What a record finds, when it comes out without a partner, and in which order: `step`. In the differences from Kafka
Streams: D20 to D24.
"""

from __future__ import annotations

from vsc.runtime.operators.operator import Operator
from vsc.runtime.operators.stream_stream_join.step import Joining
from vsc.runtime.operators.stream_stream_join.view import RECORDS

__all__ = ["OPERATOR"]

OPERATOR = Operator(Joining, side_store=RECORDS)
