"""Types calls of functions over dates and timestamps. A time zone changes what clocks show, never the moment."""

from __future__ import annotations

from collections.abc import Mapping

from vsc.compiler.diagnostics.zone_names import zone_finding
from vsc.compiler.expressions.call_site import CallSite, Rule
from vsc.compiler.expressions.coercion import INTEGERS, convert, is_numeric
from vsc.compiler.expressions.refusal import Refused
from vsc.plan.expressions import Call, Cast, Expr, Literal
from vsc.plan.functions import PATTERN_LETTERS, TRUNCATION_UNITS, WRITTEN_LETTERS, parse_pattern
from vsc.plan.types import BIGINT, DATE, INT, STRING, TIMESTAMP, VOID, DecimalType
from vsc.plan.zones import fixed_offset

__all__ = ["TIME_RULES"]


def _zone(call: CallSite, i: int) -> Expr:
    """The argument that is the name of a time zone."""
    zone = call.implied(i, STRING)
    if not isinstance(zone, Literal) or zone.value is None or fixed_offset(str(zone.value)) is not None:
        return zone
    if (wrong := zone_finding("VSC225", str(zone.value), call.args[i].span)) is not None:
        raise Refused(wrong)
    return zone


def _moment(call: CallSite, i: int) -> Expr:
    """The argument that has to be a timestamp."""
    if call.type(i) not in (TIMESTAMP, VOID):
        help = "remove the zone: a date has none" if call.type(i) == DATE else "cast it: `cast(... as timestamp)`"
        raise call.wrong(i, "a timestamp", help)
    return convert(call.args[i].expr, TIMESTAMP)


def _other_clock(call: CallSite) -> Expr:
    return call.result((call.implied(0, TIMESTAMP), _zone(call, 1)), TIMESTAMP)


def _part(call: CallSite) -> Expr:
    """A part of a date or a time: with a zone, of what clocks show there."""
    of = TIMESTAMP if call.name in ("hour", "minute", "second") else DATE
    if len(call) == 1:
        return call.result((call.implied(0, of),), INT)
    shown = Call("from_utc_timestamp", (_moment(call, 0), _zone(call, 1)), TIMESTAMP)
    return call.result((convert(shown, of),), INT)


def _date_trunc(call: CallSite) -> Expr:
    unit = call.constant(0, "the unit")
    canonical = TRUNCATION_UNITS.get(unit.lower())
    if canonical is None:
        known = ", ".join(sorted(set(TRUNCATION_UNITS.values())))
        raise call.bad_constant(0, f"unknown unit '{unit}' for `date_trunc`", f"use one of {known}")
    times = (call.implied(1, TIMESTAMP),) if len(call) == 2 else (_moment(call, 1), _zone(call, 2))
    return call.result((Literal(canonical, STRING), *times), TIMESTAMP)


def _date_add(call: CallSite) -> Expr:
    if call.type(1) == BIGINT or isinstance(call.type(1), DecimalType) or str(call.type(1)) in ("float", "double"):
        raise call.wrong(1, "an int", "cast it: `cast(... as int)`")
    return call.result((call.implied(0, DATE), call.implied(1, INT)), DATE)


def _parsed(call: CallSite) -> Expr:
    target = DATE if call.name == "to_date" else TIMESTAMP
    if len(call) == 1:
        if call.type(0) not in (STRING, DATE, TIMESTAMP, VOID):
            help = "`timestamp_millis(n)` makes a timestamp of milliseconds" if is_numeric(call.type(0)) else None
            raise call.wrong(0, "text, a date or a timestamp", help)
        if call.name == "try_to_timestamp" and call.type(0) == STRING:
            return Cast(call.args[0].expr, target, safe=True)
        return convert(call.args[0].expr, target)
    if call.type(0) not in (STRING, VOID):
        raise call.wrong(0, "text")
    return call.result((convert(call.args[0].expr, STRING), _pattern(call)), target)


def _pattern(call: CallSite, writes: bool = False) -> Expr:
    """The second argument, a pattern by which times are read, or which `writes` them. One that is computed is looked
    at when it is there."""
    pattern = call.constant_or_none(1, "the pattern")
    if pattern is None:
        return call.implied(1, STRING)
    try:
        parse_pattern(pattern, writes)
    except ValueError as problem:
        letters = f"{PATTERN_LETTERS} {WRITTEN_LETTERS}" if writes else PATTERN_LETTERS
        help = f"use {letters}, text in single quotes, and punctuation"
        raise call.bad_constant(1, f"`{call.name}` does not support {problem}", help) from None
    return Literal(pattern, STRING)


def _from_unixtime(call: CallSite) -> Expr:
    pattern = _pattern(call, writes=True) if len(call) == 2 else Literal("yyyy-MM-dd HH:mm:ss", STRING)
    return call.result((call.implied(0, BIGINT), pattern), STRING)


def _date_format(call: CallSite) -> Expr:
    pattern = _pattern(call, writes=True)
    if len(call) == 2:
        return call.result((call.implied(0, TIMESTAMP), pattern), STRING)
    return call.result((_moment(call, 0), pattern, _zone(call, 2)), STRING)


def _since_1970(call: CallSite) -> Expr:
    if call.type(0) not in (TIMESTAMP, VOID):
        raise call.wrong(0, "a timestamp", "cast it: `cast(... as timestamp)`")
    return call.result((convert(call.args[0].expr, TIMESTAMP),), BIGINT)


def _after_1970(call: CallSite) -> Expr:
    if call.type(0) not in (*INTEGERS, VOID):
        raise call.wrong(0, "an integer", "cast it: `cast(... as bigint)`")
    return call.result((convert(call.args[0].expr, BIGINT),), TIMESTAMP)


TIME_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("year", "quarter", "month", "day", "dayofweek", "hour", "minute", "second"), _part),
    **dict.fromkeys(("to_date", "to_timestamp", "try_to_timestamp"), _parsed),
    **dict.fromkeys(("from_utc_timestamp", "to_utc_timestamp"), _other_clock),
    **dict.fromkeys(("unix_millis", "unix_seconds"), _since_1970),
    **dict.fromkeys(("timestamp_millis", "timestamp_seconds"), _after_1970),
    "date_add": _date_add,
    "date_format": _date_format,
    "date_trunc": _date_trunc,
    "from_unixtime": _from_unixtime,
}
