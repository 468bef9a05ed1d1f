"""A table of nasty rows of all types, and expressions over it: what the ways of evaluating have to agree on."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

from vsc.compiler.expressions import Scope, ScopeInput, type_expression
from vsc.compiler.parser import parse_expression
from vsc.plan.expressions import Expr
from vsc.plan.nodes import Column, Schema
from vsc.plan.types import parse_type

INF, NAN = math.inf, math.nan
MAX, MIN = 2**63 - 1, -(2**63)
Y2020 = 1577934245123456  # 2020-01-02 03:04:05.123456

COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "id": ("int", [0, 1, 2, 3, 4, 5, 6, 7]),
    "b": ("boolean", [True, False, None, True, False, None, True, False]),
    "c": ("boolean", [None, None, None, True, True, False, False, False]),
    "y": ("tinyint", [0, 1, -128, 127, None, 5, -1, 2]),
    "w": ("smallint", [0, 1, -32768, 32767, None, 300, -1, 2]),
    "i": ("int", [0, 1, -(2**31), 2**31 - 1, None, 3, -7, 2]),
    "k": ("int", [1, 0, -1, 1, 2, None, 3, -2]),
    "l": ("bigint", [0, 1, MIN, MAX, None, 10**15, -7, 2**53 + 1]),
    "m": ("bigint", [1, 0, -1, 1, 2, None, 3, -2]),
    "f": ("float", [0.0, -0.0, 3.4028234663852886e38, NAN, None, 1.100000023841858, -2.5, INF]),
    "g": ("double", [0.0, -0.0, 1.5, NAN, None, 1e300, -2.5, INF]),
    "h": ("double", [2.5, 0.0, NAN, NAN, 1.0, -1e300, 0.1, -INF]),
    "d": ("decimal(12,2)", [*map(Decimal, ("0.00", "1.50", "-9999999999.99", "9999999999.99")), None,
                            *map(Decimal, ("0.05", "-0.05", "2.55"))]),
    "e": ("decimal(38,10)", [*map(Decimal, ("0E-10", "1.0000000000", "-" + "9" * 28 + "." + "9" * 10,
                             "9" * 28 + "." + "9" * 10)), None, *map(Decimal, ("0.3333333333", "-0.0000000001",
                             "3.0000000000"))]),
    "s": ("string", ["", "a", "Abc", "straße\U0001d11ex", None, "a%b_c\\", " pad\t ", "a,b,,c"]),
    "p": ("string", ["a", "", "bc", "ß", "x", None, "\U0001d11e", ","]),
    "n": ("string", ["1", " -7 ", "1.5", "1e3", None, "NaN", "x", "9223372036854775808"]),
    "x": ("binary", [b"", b"a", b"\xc3\x9f", b"abc", None, b"\x00\x01", b"zz", b"q"]),
    "q": ("date", [0, -1, 18263, 18321, None, 2932896, -719162, 11016]),
    "t": ("timestamp", [0, -1, Y2020, 951782400000000, None, 253402300799999999, -62135596800000000, 86399999999]),
    "u": ("string", ["2020-01-01", "2020-1-2 3:4:5.1234567", "2020-02-30", "1999-12-31T23:59:59+01:00", None, "x",
                     "2020", "2020-02-29 12:30"]),
    "ai": ("array<int>", [[], [1], [1, None, 3], [None], None, [5, 4, 3, 2], [7, 7], [0]]),
    "ag": ("array<double>", [[], [NAN], [0.0], [-0.0, None], None, [1.5], [None], [INF]]),
    "ms": ("map<string,int>", [{}, {"a": 1}, {"a": None, "b": 2}, {"": 0}, None, {"x": 5}, {"bc": 6}, {",": 7}]),
    "st": ("struct<a:int,b:string>", [(1, "x"), (None, None), (2, 'q"\n'), (3, ""), None, (4, "\x01"), (5, "ß"),
                                      (6, "y")]),
    "js": ("string", ['{"a":1,"b":"x"}', '{"a":"x","b":1.10}', "bad", '{"a":1e2,"b":{"c" : [1, 2.50]}}', None, "",
                      '{"a":null,"d":1.55,"t":"2020-01-01T00:00:00.5Z","l":[1,2]}', '[{"a":1}]']),
}  # fmt: skip

SCHEMA = Schema((), tuple(Column(name, parse_type(ddl)) for name, (ddl, _) in COLUMNS.items()))
SCOPE = Scope((ScopeInput("r", 0, SCHEMA),))
ROWS: list[tuple[Any, ...]] = list(zip(*(values for _, values in COLUMNS.values()), strict=True))


def typed(text: str) -> Expr:
    """The plan of an expression over the nasty rows."""
    parsed = parse_expression(text)
    assert parsed.expression is not None, parsed.findings
    found = type_expression(parsed.expression, SCOPE)
    assert found.expr is not None, (text, found.findings)
    return found.expr


EXPRESSIONS = (Path(__file__).parent / "expressions.txt").read_text("utf-8").splitlines()
