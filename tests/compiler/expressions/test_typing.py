"""What expressions mean at compile time: types, names, and what findings say and where they stand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.expressions import Scope, ScopeInput, Typed, coerce, common_type, is_aggregate_call, type_expression
from vsc.compiler.expressions.catalogue import RULES
from vsc.compiler.parser import parse_expression
from vsc.plan.expressions import LAMBDAS, Call, Cast, Column, Literal
from vsc.plan.functions import AGGREGATES, FUNCTIONS, OPERATORS
from vsc.plan.nodes import Column as SchemaColumn
from vsc.plan.nodes import Schema
from vsc.plan.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, parse_type
from vsc.runtime.expressions.functions import FUNCTIONS as EVALUATED


def schema(key: str, value: str) -> Schema:
    def columns(text: str) -> tuple[SchemaColumn, ...]:
        pairs = (part.split(" ", 1) for part in text.split("; ") if part)
        return tuple(SchemaColumn(name, parse_type(ddl)) for name, ddl in pairs)

    return Schema(columns(key), columns(value))


PAYMENTS = schema(
    "currency string", "id string; amount decimal(12,2); n int; at timestamp; rates struct<x:int>; s string"
)
RATES = schema("currency string", "rate double; n bigint; since timestamp")
ONE = Scope((ScopeInput("payments", 0, PAYMENTS),))
JOIN = Scope((ScopeInput("payments", 0, PAYMENTS), ScopeInput("rates", 1, RATES)))
ALIASED = Scope((ScopeInput("p", 0, PAYMENTS, hides="payments"), ScopeInput("q", 1, PAYMENTS, hides="payments")))


def check(text: str, scope: Scope = ONE) -> Typed:
    parsed = parse_expression(text)
    assert parsed.expression is not None, parsed.findings
    return type_expression(parsed.expression, scope)


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("n + 1", "int"), ("n + 3000000000", "bigint"), ("n / 2", "double"), ("amount * 2.5", "decimal(15,3)"),
        ("amount / 3", "decimal(16,6)"), ("amount + n", "decimal(13,2)"), ("amount * 1e0", "double"),
        ("n || 'x'", "string"), ("concat_ws('-', n, s, split(s, ','))", "string"),
        ("at + 1 hour", "timestamp"), ("coalesce(n, amount)", "decimal(12,2)"), ("coalesce(s, n)", "bigint"),
        ("case when n > 1 then 1 else 2.5 end", "decimal(11,1)"), ("array(1, null)", "array<int>"), ("-s", "double"),
        ("struct(n, amount, 1)", "struct<n:int,amount:decimal(12,2),col3:int>"), ("null + 1", "int"),
        ("struct(n as `a b`, s, n + 1 as m, amount as s2)", "struct<`a b`:int,s:string,m:int,s2:decimal(12,2)>"),
        ("(struct(n as int)).int", "int"),
        ("-2147483648", "int"),
        ("from_json(s, 'a int, `b c` array<int>')", "struct<a:int,`b c`:array<int>>"), ("event_time()", "timestamp"),
        ("round(amount, 1)", "decimal(12,1)"), ("rates.x", "int"), ("12345678901234567890", "decimal(20,0)"),
    ],
)  # fmt: skip
def test_types(text: str, type: str) -> None:
    found = check(text)
    assert found.findings == ()
    assert found.expr is not None and str(found.expr.type) == type


def test_casts_are_written_out() -> None:
    n = Column(0, "n", INT)
    assert check("n + 3000000000").expr == Call("add", (Cast(n, BIGINT), Literal(3000000000, BIGINT)), BIGINT)
    assert check("n = 1.5").expr is not None
    assert check("n between 1 and 2").expr == check("n >= 1 and n <= 2").expr
    assert check("at - 500 ms").expr == Call(
        "subtract", (Column(0, "at", TIMESTAMP), Literal(500, parse_type("interval"))), TIMESTAMP
    )


def test_names_in_a_join() -> None:
    assert check("currency", JOIN).expr == Column(0, "currency", STRING)
    assert check("rates.currency", JOIN).expr == Column(1, "currency", STRING)
    assert check("rates.rate", JOIN).expr == Column(1, "rate", DOUBLE)  # the input wins over the struct column
    assert check("payments.rates.x", JOIN).expr == check("rates.x", ONE).expr
    assert check("rate", JOIN).expr == Column(1, "rate", DOUBLE)
    assert check("event_time(rates)", JOIN).expr == Call("event_time", (Literal(1, INT),), TIMESTAMP)
    key = Scope(JOIN.inputs, key=(("k", Column(0, "hidden", STRING)),))
    assert check("k", key).expr == Column(0, "hidden", STRING)
    renamed = Scope((ScopeInput("payments", 0, PAYMENTS, physical={"id": "id#2"}),))
    assert check("payments.id", renamed).expr == Column(0, "id#2", STRING)


@pytest.mark.parametrize(
    ("text", "scope", "code", "where", "message", "help"),
    [
        ("n + amuont", ONE, "VSC110", "amuont", "there is no column `amuont`", "did you mean `amount`?"),
        ("payments.N", ONE, "VSC110", "N", "`payments` has no column `N`", "did you mean `n`?"),
        ("n = 1", JOIN, "VSC111", "n", "`n` is a column of `payments` and `rates`", "`payments.n` or `rates.n`"),
        ("uper(s)", ONE, "VSC112", "uper", "there is no function `uper`", "did you mean `upper`?"),
        ("payments", ONE, "VSC113", "payments", "is an input here", "`payments.currency`"),
        ("payments.n", ALIASED, "VSC113", "payments", "is called `p` here", "write `p`"),
        ("rates.y", ONE, "VSC114", "y", "the struct has no field `y`", "its fields are `x`"),
        ("n.y", ONE, "VSC114", "y", "a value of type int has no field `y`", None),
        ("1 + sum(n)", ONE, "VSC115", "sum(n)", "is an aggregate function", "aggregate"),
        ("event_time(rats)", JOIN, "VSC116", "rats", "there is no input `rats`", "did you mean `rates`?"),
        ("at + s", ONE, "VSC220", "+", "cannot add timestamp and string", "write a duration, as in `t + 5 minutes`"),
        ("s + s", ONE, "VSC220", "+", "cannot add string and string", "||"),
        ("at = n", ONE, "VSC220", "=", "cannot compare timestamp with int", "cast"),
        ("at + 1 day + n", ONE, "VSC220", "+", "cannot add timestamp and int", None),
        ("year(n)", ONE, "VSC221", "n", "takes a date here, not a value of type int", "year(date [, zone])"),
        ("hour(at, 'Europe/Berln')", ONE, "VSC225", "'Europe/Berln'", "no time zone 'Europe/Berln'", "'Europe/Berlin'"),
        ("hour(at, 'PST')", ONE, "VSC225", "'PST'", "there is no time zone 'PST'", "write an IANA name"),
        ("hour(at, 'utc')", ONE, "VSC225", "'utc'", "there is no time zone 'utc'", "write 'UTC'"),
        ("from_utc_timestamp(at, '+25:00')", ONE, "VSC225", "'+25:00'", "there is no time zone '+25:00'", "an IANA"),
        ("to_utc_timestamp(at, 'localtime')", ONE, "VSC225", "'localtime'", "there is no time zone", None),
        ("date_format(at, 'yyyy', 'berlin')", ONE, "VSC225", "'berlin'", "no time zone 'berlin'", "'Europe/Berlin'"),
        ("day(cast(at as date), 'UTC')", ONE, "VSC221", "cast(at as date)", "takes a timestamp", "a date has none"),
        ("date_trunc('day', s, 'UTC')", ONE, "VSC221", "s", "takes a timestamp here", "cast(... as timestamp)"),
        ("date_format(at, 'GGG')", ONE, "VSC225", "'GGG'", "does not support pattern letters 'GGG'", "EEEE"),
        ("substring(s)", ONE, "VSC222", "substring(s)", "takes 2 to 3 arguments, not 1", "substring(text, position"),
        ("ceil(amount, 1)", ONE, "VSC222", "ceil(amount, 1)", "takes 1 argument, not 2", "`ceil(x * 100) / 100`"),
        ("struct(n, s as N)", ONE, "VSC221", "s", "two fields called `N`", "as NAME"),
        ("cast(at as boolean)", ONE, "VSC223", "boolean", "cannot turn a value of type timestamp into a boolean", None),
        ("date_trunc('fortnight', at)", ONE, "VSC225", "'fortnight'", "unknown unit 'fortnight'", "week"),
        ("to_date(s, 'EEE dd')", ONE, "VSC225", "'EEE dd'", "letters 'EEE' where times are read", "yyyy"),
        ("to_date(s, 'X xx')", ONE, "VSC225", "'X xx'", "more than one offset from UTC (X, x, Z)", "yyyy"),
        ("to_date(s, 'HH a')", ONE, "VSC225", "'HH a'", "the pattern letter 'a' without 'h'", "yyyy"),
        ("from_unixtime(n, 'h')", ONE, "VSC225", "'h'", "the pattern letter 'h' without 'a'", "yyyy"),
        ("concat_ws(s, array(n))", ONE, "VSC221", "array(n)", "takes text here, not a value of type array<int>", None),
        ("split(s, '(?=a)')", ONE, "VSC225", "'(?=a)'", "`split` does not take `(?=`", "`(?:...)`"),
        ("split(s, '|')", ONE, "VSC225", "'|'", "a regular expression that matches nothing", r"write `'\|'`"),
        ("split(s, '*')", ONE, "VSC225", "'*'", "`split` does not take a `*` that repeats nothing", r"`\*`"),
        ("split(s, 'a$')", ONE, "VSC225", "'a$'", "does not take `$`", None),
        ("split(s, 'a*')", ONE, "VSC225", "'a*'", "that matches nothing", "`+` instead of `*`"),
        ("split(s, '[z-a]')", ONE, "VSC225", "'[z-a]'", "the range `z-a`", "smaller character first"),
        ("date_format(at, 'H z')", ONE, "VSC225", "'H z'", "pattern letters 'z', a zone's name, which", "X XX XXX"),
        ("regexp_like(s, 1)", ONE, "VSC225", "1", "the regular expression of `regexp_like` must be a string", None),
        ("regexp_like(s, '(a*)+')", ONE, "VSC225", "'(a*)+'", "which repeats what can be empty", "cannot"),
        ("regexp_like(s, '(a')", ONE, "VSC225", "'(a'", "a `(` without its `)`", None),
        ("regexp_like(s, 'a**')", ONE, "VSC225", "'a**'", "`*` after `*`", None),
        ("regexp_like(s, '(a{40}){40}')", ONE, "VSC225", "'(a{40}){40}'", "repeats 1,600 characters", "1,000"),
        ("regexp_like(s, '\\bx')", ONE, "VSC225", "'\\bx'", "does not take `\\b`", "a word's end"),
        ("regexp_extract(s, 'a')", ONE, "VSC225", "'a'", "has no groups", "`(...)` around the part"),
        ("regexp_extract(s, '(a)', 2)", ONE, "VSC225", "2", "has 1 group", "0 for the whole match"),
        ("regexp_extract(s, '(a)', n)", ONE, "VSC225", "n", "must be an integer literal", None),
        ("regexp_replace(s, 'a', '$1')", ONE, "VSC225", "'$1'", "`$1` in its replacement", "0 groups"),
        ("regexp_replace(s, 'a', '$')", ONE, "VSC225", "'$'", "`$` in its replacement", "`\\$`"),
        ("regexp_replace(s, 'a$', '')", ONE, "VSC225", "'a$'", "does not take `$`", "`\\z`"),
        ("array_contains(array(s), null)", ONE, "VSC221", "null", "takes a value here", "is null"),
        ("sort_array(array(s), n = 1)", ONE, "VSC225", "n = 1", "must be `true` or `false`", "the greatest first"),
        ("sort_array(s)", ONE, "VSC221", "s", "takes an array here", None),
        ("map_keys(n)", ONE, "VSC221", "n", "takes a map here", None),
        ("slice(array(n), s, 1)", ONE, "VSC221", "s", "takes an int here", None),
        ("split(s, '[a||b]')", ONE, "VSC225", "'[a||b]'", "does not take `||` within `[...]`", None),
        ("s like 'a\\b'", ONE, "VSC225", "'a\\b'", "escape character", None),
        ("sha2(s, 1)", ONE, "VSC225", "1", "cannot make a hash of 1 bits", "256"),
        ("from_json(s, 'a nit')", ONE, "VSC225", "'a nit'", "is not a schema", "columns"),
        ("coalesce(at, n)", ONE, "VSC226", "n", "not timestamp and int", "cast(... as timestamp)"),
        ("case when s then 1 end", ONE, "VSC227", "s", "takes a boolean, not a value of type string", None),
        ("not n", ONE, "VSC227", "n", "`not` takes a boolean", None),
    ],
)  # fmt: skip
def test_findings(text: str, scope: Scope, code: str, where: str, message: str, help: str | None) -> None:
    found = check(text, scope)
    assert found.expr is None
    (finding,) = found.findings
    assert (finding.code, text[finding.span.start : finding.span.end]) == (code, where)
    assert message in finding.message
    assert finding.help and (help is None or help in finding.help)
    assert code in CODES and CODES[code].severity == "error"


def test_all_parts_are_looked_at() -> None:
    found = check("coalesce(a1, upper(a2, a3)) = a4 and uper(a5)")
    assert [f.code for f in found.findings] == ["VSC110", "VSC222", "VSC110", "VSC110", "VSC112"]


def test_no_event_time_in_a_source() -> None:
    (finding,) = check("event_time()", Scope(ONE.inputs, ("none here", "do without"))).findings
    assert finding.code == "VSC116"


def test_deep_nesting_is_a_finding_and_long_chains_are_not() -> None:
    from vsc.compiler import syntax
    from vsc.compiler.source import Span

    deep: syntax.Expression = syntax.Literal(1, Span(0, 1))
    for _ in range(100_000):
        deep = syntax.Unary("-", deep, Span(0, 1))
    (finding,) = type_expression(deep, ONE).findings
    assert finding.code == "VSC228"
    assert check(" or ".join(["n = 1"] * 50)).findings == ()


def test_repeated_parts_do_not_explode() -> None:
    text = "n"
    for _ in range(20):
        text = f"(case when {text} between 0 and 1 then 1 else 0 end)"
    (finding,) = check(text).findings
    assert finding.code == "VSC228"


def test_coerce_loses_nothing() -> None:
    column = Column(0, "n", INT)
    assert coerce(column, BIGINT) == Cast(column, BIGINT)
    assert coerce(column, INT) is column
    assert coerce(column, DOUBLE) == Cast(column, DOUBLE)
    assert coerce(Column(0, "m", BIGINT), INT) is None
    assert coerce(Column(0, "m", BIGINT), DOUBLE) is None
    assert coerce(column, STRING) is None
    assert coerce(column, parse_type("decimal(10,0)")) is not None
    assert coerce(column, parse_type("decimal(10,1)")) is None
    assert coerce(Literal(None, parse_type("void")), TIMESTAMP) == Literal(None, TIMESTAMP)
    assert common_type(INT, parse_type("float")) == DOUBLE
    assert common_type(INT, TIMESTAMP) is None


def test_a_negative_zero_equals_zero_where_both_are_the_same_value() -> None:
    assert check("-0e0").expr != check("0e0").expr
    assert check("-0").expr == check("0").expr
    assert check("-0.0").expr == check("0.0").expr


def test_aggregate_calls_are_known() -> None:
    assert is_aggregate_call(parse_expression("sum(n + 1)").expression)  # type: ignore[arg-type]
    assert not is_aggregate_call(parse_expression("abs(sum(n))").expression)  # type: ignore[arg-type]


def test_every_function_is_typed_and_evaluated() -> None:
    assert set(RULES) == {name for name, f in FUNCTIONS.items() if f.gives is None} - LAMBDAS.keys() - {"event_time"}
    assert set(EVALUATED) == {*FUNCTIONS, *OPERATORS} - {"event_time", "nullif", "e", "pi"}  # `nullif` becomes `if`
    assert not set(AGGREGATES) & set(FUNCTIONS) and not set(OPERATORS) & set(FUNCTIONS)


def test_typing_needs_no_heavy_module() -> None:
    heavy = "{'pyarrow', 'numpy', 'pandas', 'pyspark', 'rocksdict', 'lark', 'networkx'}"
    script = f"import sys, vsc.compiler.expressions; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
