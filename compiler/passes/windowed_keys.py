"""Keys of Kafka's records that hold a window, as Kafka Streams writes them: which windows, and in which columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.source import Span
from vsc.plan import Connector, Schema, Window
from vsc.plan.connectors.facts import Role
from vsc.plan.connectors.kafka import SESSION, WINDOW_END, WINDOW_START, WINDOWED
from vsc.plan.types import TIMESTAMP

__all__ = ["check_windowed_key", "with_window"]

_OPTIONS = ("windows", "window_size", "inner_key_format")

Options = Mapping[str, str | int | float | bool]


def check_windowed_key(
    options: Options, places: Mapping[str, Span], node: str, schema: Schema, role: Role, window: Window | None
) -> Iterator[Finding]:
    """Keys that have no window (VSC508), and options that do not fit (VSC514). `window`: the node's own."""
    place, given = places.get("key_format"), options.get("key_format")
    if place is None or given != WINDOWED:
        for name in (one for one in _OPTIONS if one in options and not (isinstance(given, str) and "${" in given)):
            message = f"`{name}` is for windowed keys, and `key_format = '{WINDOWED}'` is not given"
            yield Finding("VSC514", places[name], message, (), f"write `key_format = '{WINDOWED}'`, or remove it")
        return
    session = options.get("windows") == SESSION or (window is not None and window.kind == "session")
    yield from _columns(place, node, schema, session or role == "sink")
    if window is not None and (window.zone or window.months):
        message = f"the windows of `{node}` go by the calendar and have no one size, which windowed keys need"
        yield Finding("VSC508", place, message, (), "use `key_format = 'json'`, which has both bounds")
    elif window is not None:
        yield from _own_window(options, places, node, window)
    elif session and "window_size" in options:
        message = "session windows have no size: their keys hold both bounds"
        yield Finding("VSC514", places["window_size"], message, (), "remove `window_size`")
    elif not session and "window_size" not in options:
        message = "the key of a time window holds its start alone, and `window_size` is not given"
        yield Finding("VSC514", place, message, (), f"add `window_size = 1 minute`, or `windows = '{SESSION}'`")


def _columns(place: Span, node: str, schema: Schema, both: bool) -> Iterator[Finding]:
    names = [column.name for column in schema.key]
    count = 2 if names[-1:] == [WINDOW_END] else 1
    bounds = schema.key[-count:]
    right = names[-count:] in ([WINDOW_START, WINDOW_END], [WINDOW_START]) and len(names) > count
    if right and (count == 2 or not both) and all(column.type == TIMESTAMP for column in bounds):
        return
    found = ", ".join(code(f"{named(column.name)} {column.type}") for column in schema.key) or "none"
    wanted = f"`{WINDOW_START} timestamp`" + (f" and `{WINDOW_END} timestamp`" if both else "")
    message = f"a windowed key ends with {wanted} behind other columns, and the key of `{node}` is {found}"
    yield Finding("VSC508", place, message, (), "declare such a key, or use another format")


def _own_window(options: Options, places: Mapping[str, Span], node: str, window: Window) -> Iterator[Finding]:
    """Options that say otherwise than the node."""
    for name, wanted in _of(window).items():
        if name in options and options[name] != wanted:
            message = f"the windows of `{node}` are others than `{name}` says"
            yield Finding("VSC514", places[name], message, (), f"remove `{name}`: the sink knows it")
    if window.kind == "session" and "window_size" in options:
        yield Finding("VSC514", places["window_size"], "session windows have no size", (), "remove `window_size`")


def with_window(connector: Connector, window: Window | None) -> Connector:
    """The connector of a sink with what its node knows of the windows in its keys."""
    options = dict(connector.options)
    if options.get("key_format") != WINDOWED or window is None:
        return connector
    return replace(connector, options=tuple((options | _of(window)).items()))


def _of(window: Window) -> dict[str, str | int | float | bool]:
    return {"windows": SESSION} if window.kind == "session" else {"windows": "time", "window_size": window.size}
