"""What to write instead of a function that the language does not have: a similar name, or another form."""

from __future__ import annotations

from vsc.compiler.diagnostics.suggest import misspelt, nearest
from vsc.plan.functions import AGGREGATES, FUNCTIONS

__all__ = ["instead_of"]

_CLOCKS = ("now", "current_timestamp", "current_date", "current_time", "localtimestamp", "unix_timestamp")
_SYNONYMS = {
    "btrim": "trim", "ceiling": "ceil", "char_length": "length", "date_diff": "datediff", "dayofmonth": "day",
    "endswith": "ends_with", "ifnull": "coalesce", "iff": "if", "iif": "if", "lcase": "lower", "len": "length",
    "nvl": "coalesce", "startswith": "starts_with", "substr": "substring", "ucase": "upper",
}  # fmt: skip
"""Other names of functions that the language has, with the same arguments."""
_NOT_HERE = frozenset(
    ("bin", "bround", "dateadd", "days", "dayofyear", "from_csv", "from_xml", "hours", "make_date", "make_timestamp",
     "months", "pow", "power", "rint", "sha", "sha1", "sin", "sinh", "sum0", "time_trunc", "to_csv", "to_timestamp_ltz",
     "to_timestamp_ntz", "to_xml", "try_make_timestamp", "try_to_time", "xxhash32", "years")
)  # fmt: skip
"""Functions of other systems, without one that does the same here, whose names are similar to one that does not."""
_ELSEWHERE = {
    "count_if": "`count(case when x then 1 end)`",
    "countif": "`count(case when x then 1 end)`",
    "date_format": "`cast(x as string)`, `year(x)`, `month(x)`, ..., or `date_trunc('month', x)`",
    "date_sub": "`date_add(x, -days)`",
    "decode": "`case x when ... then ... end`",
    "ilike": "`lower(x) like 'a%'`",
    "isnotnull": "`x is not null`",
    "isnull": "`x is null`",
    "mod": "`x % y`",
    "named_struct": "`struct(x as a, y as b)`",
    "regexp_replace": "`replace(x, search, replacement)`",
    "session_window": "`aggregate ... group by ... window session (gap = 5 minutes)`",
    "sha224": "`sha2(x, 224)`",
    "sha256": "`sha2(x, 256)`",
    "sha384": "`sha2(x, 384)`",
    "sha512": "`sha2(x, 512)`",
    "timestamp_diff": "`unix_millis(b) - unix_millis(a)`",
    "timestamp_micros": "`timestamp_millis(cast(x / 1000 as bigint))`",
    "to_unix_timestamp": "`unix_seconds(x)` for a timestamp, `unix_seconds(to_timestamp(x))` for a text",
    "unix_micros": "`unix_millis(x) * 1000`",
    "window": "`aggregate ... group by ... window tumbling (size = 1 hour)`",
}
"""Spark SQL functions, with what to write for them here."""


def instead_of(name: str) -> tuple[str, str | None]:
    """The help for a call of `name`, which is not a function of the language, and the name that certainly replaces it.

    The function of another system is not a misspelling: ``ilike`` is not ``like``, ``to_unix_timestamp`` is not
    ``to_timestamp``.
    """
    lower = name.lower()
    if lower in _CLOCKS:
        return "use `event_time()`: a result does not depend on when it is computed", None
    if lower in _ELSEWHERE:
        return f"write {_ELSEWHERE[lower]}", None
    if lower in _SYNONYMS:
        return f"write `{FUNCTIONS[_SYNONYMS[lower]].signature}`", _SYNONYMS[lower]
    known = (*FUNCTIONS, *AGGREGATES)
    similar = None if lower in _NOT_HERE else nearest(name, known)
    if similar is None:
        return "`vsc explain VSC112` lists the functions", None
    return f"did you mean `{similar}`?", misspelt(name, known)
