"""`correct`: a stream-table join as of a time whose results are corrected by versions that come late.

A record is joined as in `stream_table_join`, and kept until the clock is more than `within` past its time. A version of
the table, row or tombstone, is valid until the key's next one. For each kept record for which it is valid, in order of
(time, arrival), the result is recomputed, at the version's place; what differs from what was sent last is sent.

The records may be the changes of a table (`row_changes`): then one replaces or removes what is kept of its row.
"""

from __future__ import annotations

from vsc.runtime.operators.correct.step import Correcting
from vsc.runtime.operators.correct.view import CORRECTED
from vsc.runtime.operators.operator import Operator

__all__ = ["OPERATOR"]

OPERATOR = Operator(Correcting, side_store=CORRECTED)
