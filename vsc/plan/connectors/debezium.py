"""Facts of the format `debezium`: change events, of which a source makes the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vsc.plan.connectors.facts import VARIABLE, OptionSpec, Problem, Role, Values

__all__ = ["DEBEZIUM", "DEBEZIUM_OPTIONS", "debezium_problems"]

DEBEZIUM = "debezium"
DEBEZIUM_OPTIONS: Mapping[str, OptionSpec] = {
    "decimals": OptionSpec("string", "'base64'", ("base64", "text")),
    "times": OptionSpec("string", "'microseconds'", ("milliseconds", "microseconds", "nanoseconds")),
}
"""What events without a schema do not say: how decimals are written, and in which unit times are counted."""


def debezium_problems(role: Role, options: Values) -> Iterator[Problem]:
    """What is wrong with options beside the format."""
    form = options.get("format")
    if form == DEBEZIUM and role == "sink":
        message = "`debezium` is the format of a database's change events, which vsc only reads"
        yield Problem("format", False, True, message, "use `format = 'json'`")
    if form == DEBEZIUM and options.get("key_format") not in (None, "none"):
        message = "the key of a change event is in its rows, not in the record's key"
        yield Problem("key_format", False, True, message, "remove `key_format`")
    if form != DEBEZIUM and not (isinstance(form, str) and VARIABLE.search(form)):
        for name in DEBEZIUM_OPTIONS.keys() & options.keys():
            message = f"`{name}` is for change events, and `format = 'debezium'` is not given"
            yield Problem(name, False, False, message, f"remove `{name}`")
