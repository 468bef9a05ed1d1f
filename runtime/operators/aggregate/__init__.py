"""`aggregate`: groups of a stream's records or of a table's rows, in windows or without.

`groups` are those without window, `windows` what the windowed ones share (`time_windows`, `sliding_windows`,
`session_windows`); `calls` are the aggregate functions and their accumulators (`numbers`, `running`, `collected`),
`state` is what lies in the store. `build` makes the operator of a node.
"""

from vsc.runtime.operators.aggregate.build import aggregate_operator

__all__ = ["aggregate_operator"]
