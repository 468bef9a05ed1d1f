"""`aggregate`: groups of a stream's records or of a table's rows, with or without windows.

`step` chooses the parts of an aggregate. On whole columns: `stream_groups`, `table_groups`, `windows.columns` (tumbling
and hopping). Record by record: `sessions` and `sliding`, which share `moving`; it computes their results on whole
columns, if no accumulator keeps entries.

`folding` computes the aggregate functions for many groups at once (`sums`, `winners`, `collecting`, `kept`),
`calls` for one group (`numbers`, `running`, `collected`); both keep the same cells and entries in `state`.
"""

from vsc.runtime.operators.aggregate.step import OPERATOR

__all__ = ["OPERATOR"]
