"""`aggregate`: groups of a stream's records or of a table's rows, in windows or without.

`groups` and `table_groups` are those without window; `windows` are tumbling and hopping ones, `moving_windows` what
`session_windows` and `sliding_windows` share. `calls` are the aggregate functions and their accumulators (`numbers`,
`running`, `collected`), `state` is what lies in the store.
"""

from vsc.runtime.operators.aggregate.step import OPERATOR

__all__ = ["OPERATOR"]
