"""What the compiler says of constants, against the runtime: nothing fails on every row that has a value on one."""

from __future__ import annotations

import itertools
from datetime import datetime
from decimal import Decimal

from vsc.compiler.expressions import Scope, type_expression
from vsc.compiler.expressions.constants import Always, Known, Outcomes
from vsc.compiler.parser import parse_expression
from vsc.runtime.expressions import ExpressionFailure, compile_row

TEXTS = (
    "''", "'abc'", "'12'", "' 12 '", "'+12'", "'-0'", "'1.5'", "'.5'", "'5.'", "'1e3'", "'1e'", "'0x1F'", "'1d'",
    "'inf'", "'NaN'", "'300'", "'99999999999'", "'true'", "'T'", "'no'", "'yes'", "'on'", "'2026'", "'2026-2'",
    "'2026-02-30'", "'2026-02-28'", "'2026-13-01'", "'2026-1-1 10:00'", "'2026-01-01T10:00:00Z'",
    "'2026-01-01 25:00:00'", "'10:00'", "'now'", "'today'", "'yesterday'", "'-2026-01-01'", "'12345-01-01'",
    "'2026-01-01 foo'", "'١٢'", "'7e12345678'", "'1e-99999999999999999999'", f"'{'9' * 5000}'", "'0000-01-01'",
    "'٢٠٢٦-01-01'", "'1,5'", "'1.5.2'", "'1 5'", "'0x1p3'", "'1e5f'", "'5.d'", "'d'", "'2026-01-01 23:60'", "'-.5D'",
    "'2026-01-01 23:59:60'", "'2026-01-01T24:00:00Z'", "'2026-01-01 1:2'", "'2026-01-01T23:59:59.9+01:00'",
    "'2026-01-01 10:00 Europe/Berlin'", "'2026-01-01 10:00:00 99:99:99'", "'10:00 25:00'", "'2026-01-01 10:5'",
)  # fmt: skip
NUMBERS = (
    "0", "1", "-1", "127", "128", "300", "2147483648", "9223372036854775807", "1.5", "-0.5", "123456.789", "1e3",
    "1e30",
)  # fmt: skip
TYPES = (
    "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5, 2)", "decimal(38, 0)", "string", "boolean",
    "date", "timestamp",
)  # fmt: skip
CASTS = [f"cast({text} as {type})" for text, type in itertools.product((*TEXTS, *NUMBERS), TYPES)]
OTHERS = (
    "1 / 0", "1 % 0", "1.0 / 0", "1 / 0.5", "0 / 1", "2147483647 + 1", "2147483647 * 1", "-(-2147483648)",
    "1 - 2 - 3", "127 + 1", "try_divide(1, 0)", "try_divide(1, 2)", "array(1, 2)[-1]", "array(1, 2)[1]",
    "element_at(array(1), -1)", "to_date('x')", "to_date('2026-01-01')", "to_timestamp('2026-01-01')",
    "slice(array(1), 0, 1)", "slice(array(1), 1, -1)", "slice(array(1), 5, 1)", "slice(array(1), -9, 0)",
    "to_timestamp('01/02/2026', 'dd/MM/yyyy')", "try_cast('x' as int)", "upper(cast(null as string))", "'a' || null",
    "null + 1", "cast('300' as tinyint) + 1", "9223372036854775807 + 1", "3000000000 * 3000000000",
    "year('2026-01-01')", "month('x')", "1 = 'x'", "1 = '1'", "length(null)", "concat('a', null)",
    "date_add('2026-01-01', 1)", "1 > null", "abs(null)", "round(null, 2)",
)  # fmt: skip


def test_what_is_said_is_so() -> None:
    said = {text: found for text in (*CASTS, *OTHERS) if (found := _said(text)) is not None}
    assert len(said) > 500
    assert [(text, found) for text, (found, so) in said.items() if not so] == []


def _said(text: str) -> tuple[object, bool] | None:
    """What the compiler says of an expression, and whether the runtime agrees; None if it says nothing."""
    parsed = parse_expression(text).expression
    assert parsed is not None, text
    typed = type_expression(parsed, Scope(()))
    if typed.expr is None:  # not valid
        return None
    found = Outcomes().of(typed.expr)
    if found is None:
        return None
    try:
        value = compile_row(typed.expr, [])(None, None, None, None)
    except ExpressionFailure:
        value = Always.FAILS
    match found:
        case Known(bool() | str() | int() | float() | Decimal() as known):
            return found, value == known or (isinstance(known, float) and str(value) == str(known))
        case Known(datetime()):
            return found, value is not Always.FAILS and value is not None
        case Always.NULL:
            return found, value is None
        case _:
            return found, value is Always.FAILS
