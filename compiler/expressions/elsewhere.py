"""What to write instead of a function that the language does not have: a similar name, or another form."""

from __future__ import annotations

from vsc.compiler.diagnostics.suggest import nearest
from vsc.plan.functions import AGGREGATES, FUNCTIONS

__all__ = ["instead_of"]

_CLOCKS = ("now", "current_timestamp", "current_date", "localtimestamp", "unix_timestamp")
_ELSEWHERE = {
    "ceiling": "`ceil(x)`",
    "char_length": "`length(x)`",
    "date_format": "`cast(x as string)`, `year(x)`, `month(x)`, ..., or `date_trunc('month', x)`",
    "date_sub": "`date_add(x, -days)`",
    "dayofmonth": "`day(x)`",
    "decode": "`case x when ... then ... end`",
    "ifnull": "`coalesce(x, y)`",
    "isnotnull": "`x is not null`",
    "isnull": "`x is null`",
    "lcase": "`lower(x)`",
    "len": "`length(x)`",
    "mod": "`x % y`",
    "named_struct": "`struct(x as a, y as b)`",
    "nvl": "`coalesce(x, y)`",
    "regexp_replace": "`replace(x, search, replacement)`",
    "session_window": "`aggregate ... group by ... window session (gap = 5 minutes)`",
    "ucase": "`upper(x)`",
    "window": "`aggregate ... group by ... window tumbling (size = 1 hour)`",
}
"""Spark SQL functions, with what to write for them here."""


def instead_of(name: str) -> str:
    """The help for a call of `name`, which is not a function of the language."""
    if name.lower() in _CLOCKS:
        return "use `event_time()`: a result does not depend on when it is computed"
    if name.lower() in _ELSEWHERE:
        return f"write {_ELSEWHERE[name.lower()]}"
    similar = nearest(name, (*FUNCTIONS, *AGGREGATES))
    return "`vsc explain VSC112` lists the functions" if similar is None else f"did you mean `{similar}`?"
