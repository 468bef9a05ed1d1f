"""`aggregate`: groups of a stream's records or of a table's rows, with or without windows.

`step` chooses the parts of an aggregate. On whole columns: `groups` (of a stream), `table_groups` and `windows`
(tumbling and hopping). Record by record: `group_loop` and `time_windows` where a result fails, `session_windows` and
`sliding_windows` always; the windows share `moving_windows`, which computes their results on whole columns if it can.

`folding` computes the aggregate functions for many groups at once (`sums`, `winners`, `collecting`, `kept`),
`calls` for one group (`numbers`, `running`, `collected`); both keep the same cells and entries in `state`.
"""

from vsc.runtime.operators.aggregate.step import OPERATOR

__all__ = ["OPERATOR"]
