"""What is wrong with a connector's options, as far as they alone tell: without files, servers and tables.

The compiler asks for what is written, a run again for what its variables say. What only one connector has is in its own
facts.
"""

from __future__ import annotations

from collections.abc import Iterator

from vsc.plan.connectors import facts_of
from vsc.plan.connectors.facts import (
    VARIABLE,
    ConnectorFacts,
    Problem,
    Role,
    Scalar,
    Values,
    Wrong,
    written,
)  # fmt: skip
from vsc.plan.connectors.spark_values import wrong_count, wrong_flag, wrong_size

__all__ = ["problems"]

_TEXTS = frozenset(
    ("path", "topic", "table", "url", "bootstrap_servers", "group", "headers", "partition", "offset", "schema",
     "key_schema", "registry", "registry_auth", "record_name", "valid_from", "valid_to")
)  # fmt: skip
"""Options of vsc's own that name something."""
_NUMBERS = frozenset(
    ("maxfilespertrigger", "maxbytespertrigger", "maxoffsetspertrigger", "minoffsetspertrigger", "numpartitions")
)
_FLAGS = frozenset(
    ("failondataloss", "latestfirst", "filenameonly", "recursivefilelookup", "multiline", "mergeschema",
     "ignoremissingfiles")
)  # fmt: skip
_RUNS = {
    "checkpointlocation": "`vsc run --checkpoint DIR`",
    "trigger": "`vsc run --trigger`", "processingtime": "`vsc run --trigger`",
}  # fmt: skip
"""Options of a whole query, which a run is given."""


def problems(kind: str, role: Role, options: Values, spark: Values) -> Iterator[Problem]:
    """What is wrong with the options of a connector: its own, and Spark's."""
    facts = facts_of(kind)
    for name, value in options.items():
        if (problem := _own_value(facts, role, name, value)) is not None:
            yield Problem(name, False, True, *problem)
    for name, value in spark.items():
        problem = _name(facts, role, name, options)
        if problem is not None:
            yield Problem(name, True, False, *problem)
        elif role == "source" and (problem := _value(facts, name, written(value))) is not None:
            yield Problem(name, True, True, *problem)
    yield from facts.wrong_together(role, options, spark)


def _own_value(facts: ConnectorFacts, role: Role, name: str, value: Scalar) -> Wrong:
    """What is wrong with an option of vsc's own."""
    if name in ("schema_id", "key_schema_id") and type(value) is int and not 0 <= value < 1 << 31:
        return f"`{name}` cannot be {value}", "write the id of the schema, a number of 0 or more"
    if name == "rows_per_second" and type(value) is int and value >= 1 << 63:
        return f"`{name}` cannot be {value}", "write a smaller number"
    if not isinstance(value, str):
        return None
    if name in _TEXTS and not value.strip():
        return f"`{name}` is empty", f"name one: `{name} = '...'`"
    if name == "path" and (value == "~" or value.startswith("~/")):
        return "`path` begins with `~`, which only a shell replaces", "write the whole path, or `${HOME}` in its place"
    if name == "path" and role == "sink" and {*"*?"} & {*VARIABLE.sub("x", value)}:
        return "a sink writes to one folder, and this is a pattern for several", "name a folder"
    return facts.wrong_value(name, value)


def _name(facts: ConnectorFacts, role: Role, name: str, options: Values) -> Wrong:
    """What is wrong with an option of Spark, whatever its value."""
    lower = name.lower()
    if lower in _RUNS:
        return f"'{name}' is given to a run: {_RUNS[lower]}", f"remove '{name}'"
    if (own := facts.own_names.get(lower)) is not None:
        help = f"remove '{name}'" if own in options else f"write `{own} = ...`, without quotes around the name"
        return f"'{name}' is given by `{own}`", help
    return facts.wrong_name(role, name, options)


def _value(facts: ConnectorFacts, name: str, value: str) -> Wrong:
    """What is wrong with the value of an option of Spark for a source."""
    lower = name.lower()
    if VARIABLE.search(value):
        return None
    if lower in facts.sizes:
        return wrong_size(name, value)
    if lower in _NUMBERS:
        if (wrong := wrong_count(name, value, 10)) is not None:
            return wrong
    elif lower in _FLAGS | facts.flags and (wrong := wrong_flag(name, value)) is not None:
        return wrong
    return facts.wrong_word(name, value)
