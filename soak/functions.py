"""``python -m soak.functions [--calls N] [--seed N] [NAME ...]``: every function with hostile values.

A call with random arguments, of types that the compiler accepts, either has a value of its type or fails as an
expression fails: never another exception. Checked for each function, operator and cast:

* whole columns and single rows give the same values, and the same reasons for failures;
* so do the rows that did not fail, among themselves, and each row alone, which is where kernels answer;
* the values survive Arrow and the codec of the store, row by row and in columns;
* a reason is short, and one that was thought of.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

from soak.hostile import hostile, hostile_text
from vsc.compiler.expressions import Scope, ScopeInput, type_expression
from vsc.compiler.parser import parse_expression
from vsc.plan.expressions import Expr
from vsc.plan.functions import FUNCTIONS, OPERATORS, TRUNCATION_UNITS
from vsc.plan.nodes import Column, Schema
from vsc.plan.types import DataType, parse_type
from vsc.runtime.expressions import ExpressionFailure, Frame, compile_row, evaluate
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.values import arrow_type, to_array, to_values

__all__ = ["NAMES", "Wrong", "check", "try_out"]

_TYPES = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,10)",
    "decimal(38,0)", "decimal(38,38)", "string", "binary", "date", "timestamp", "array<int>", "array<string>",
    "array<double>", "array<array<bigint>>", "map<string,int>", "map<string,string>",
    "struct<a:int,b:string,c:array<timestamp>,d:decimal(5,1)>",
)  # fmt: skip
_TARGETS = (*_TYPES[:15], "array<string>", "array<tinyint>", "map<string,bigint>")
SCHEMA = Schema((), tuple(Column(f"c{i}", parse_type(_TYPES[i // 2])) for i in range(2 * len(_TYPES))))
_SCOPE = Scope((ScopeInput("r", 0, SCHEMA),))
_COLUMNS = tuple(column.name for column in SCHEMA.value)
_TEXT = tuple(c.name for c in SCHEMA.value if str(c.type) == "string")

_CONSTANTS = (
    "null", "true", "0", "-1", "9223372036854775807", "99999999999999999999999999999999999999", "0.5", "1e308", "''",
    "'a'", "'%_\\%'", "'2020-02-29'", "1 day", "10000000 days", "cast(null as int)", "array()",
)  # fmt: skip
_WRITTEN = {
    "add": "{} + {}", "subtract": "{} - {}", "multiply": "{} * {}", "divide": "{} / {}", "modulo": "{} % {}",
    "negate": "- {}", "and": "({}) and ({})", "or": "({}) or ({})", "not": "not ({})", "eq": "{} = {}",
    "ne": "{} <> {}", "lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}", "ge": "{} >= {}", "in": "{} in ({}, {})",
    "like": "{} like {}", "is_null": "({}) is null", "is_not_null": "({}) is not null",
    "case": "case when {} then {} else {} end", "element": "{}[{}]", "get_field": "{}.b", "cast": "cast({} as TYPE)",
    "try_cast": "try_cast({} as TYPE)",
    "transform": "transform({}, (x, i) -> struct(x, {} as y, i + {}))",
    "filter": "filter({}, (x, i) -> x = {} or i % 2 = 1)",
    "reduce": "reduce({}, {}, (sum, x) -> {})", "aggregate": "aggregate({}, '', (s, x) -> concat_ws({}, s, x))",
    "transform_values": "transform_values({}, (k, v) -> struct(k, v, {}))",
    "map_from_entries": "map_from_entries(array(struct({}, {}), struct({}, {})))",
    "exists": "exists({}, x -> x < {})", "forall": "forall({}, x -> x <> {})", }  # fmt: skip
"""How operators, and functions with lambdas, are written; other functions are written as calls."""
_SECOND = {
    "split": (",", "a", "[a-z%]+", "a|b*c", "\\s+", ".", "\\\\", "[^\\s,]", "a*a*a*a*a*a*a*a*b", "", "é|\\|"),
    "from_json": ("a int, b string", "a timestamp, b binary", "a decimal(38,10), b array<string>", "map<string,string>",
                  "a double, b struct<c: float>", "array<struct<a: bigint, b: string>>", "a binary, b date",
                  "map<string,array<int>>", "a string, b string", "a boolean, b map<string,double>"),
    "to_date": ("yyyy-MM-dd", "dd.MM.yyyy", "d.M.yyyy", "yyyyMMdd"),
    "to_timestamp": ("yyyy-MM-dd HH:mm:ss", "dd.MM.yyyy HH:mm", "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "H:m:s"),
}  # fmt: skip
_SECOND["get_json_object"] = ("$", "$.a", "$.b[0]", "$['a'].c", "$[1]")
_REGEXES = ("a", "[a-z%]+", "(a)|(b)", "^(.*)$", "\\s+$", "(?i)[^a-m]", "(.)(.)", "é|\\|", "\\W{2,3}", ".$|a")
_SECOND["regexp_like"] = _REGEXES
_SECOND["try_to_timestamp"] = _SECOND["to_timestamp"]
_ZONES = ("'Europe/Berlin'", "'America/Havana'", "'Pacific/Apia'", "'Australia/Lord_Howe'", "'+05:30'", "'UTC'", "null")
_ROWS = 25
_TRIES = 4000

NAMES = (*(name for name in (*FUNCTIONS, *OPERATORS) if name != "nullif"), "nullif", "cast", "try_cast")
"""What can be called."""


class Wrong(Exception):
    """A call that did neither give a value nor fail as an expression, with what happened."""


def try_out(name: str, calls: int, seed: int) -> None:
    """Calls `name` so often. Raises Wrong for the first call that is not as it should be."""
    random = Random(f"{seed} {name}")
    texts = _texts(name, random)
    for _ in range(-(-calls // _ROWS)):
        text, expr = next(texts)
        rows = [tuple(hostile(random, column.type) for column in SCHEMA.value) for _ in range(_ROWS)]
        times = [random.choice((0, 1, 1_700_000_000_000, 2**63 - 1, 2**53)) for _ in rows]
        try:
            check(expr, rows, times)
        except Exception as error:
            raise Wrong(f"{text}\n  {type(error).__name__}: {error}") from error


def _texts(name: str, random: Random) -> Iterator[tuple[str, Expr]]:
    """Calls of `name` that have a type."""
    tries = 0
    while tries < _TRIES:
        text = _written(name, random)
        parsed = parse_expression(text)
        tries += 1
        if parsed.expression is None:
            continue  # such as `0.b`
        found = type_expression(parsed.expression, _SCOPE)
        if found.expr is not None and "interval" not in str(found.expr.type):
            tries = 0
            yield text, found.expr
    raise AssertionError(f"none of {_TRIES} random calls of {name} has a type")


def _written(name: str, random: Random) -> str:
    if name == "event_time":
        return "event_time()"
    form = _WRITTEN.get(name)
    if form is None:
        least, most = FUNCTIONS[name].least, FUNCTIONS[name].most
        count = random.randint(least if name != "regexp_extract" else 3, least + 2 if most is None else most)
        form = f"{name}({', '.join(['{}'] * count)})"
    form = form.replace("TYPE", random.choice(_TARGETS))
    # two arguments are often of the same type
    pair = random.choice(_COLUMNS[::2])
    alike = (pair, f"c{int(pair[1:]) + 1}")
    texts = tuple("'" + hostile_text(random).replace("'", "''") + "'" for _ in range(2))
    pools = random.choices((alike, _COLUMNS, _CONSTANTS, texts), (5, 4, 1, 1), k=form.count("{}"))
    args = [random.choice(pool) for pool in pools]
    if name in _SECOND and len(args) > 1:
        args[:2] = random.choice(_TEXT), "'" + random.choice(_SECOND[name]).replace("'", "''") + "'"
    elif name == "regexp_extract":
        args = [random.choice(_TEXT), "'(a)|([^b]*?)(.)$'", random.choice(("0", "1", "2", "3"))]
    elif name == "regexp_replace":
        args = [random.choice(_TEXT), "'(a)|([^b]+)'", random.choice(("''", "'$0$0'", "'-$2\\$'"))]
    elif name == "from_unixtime" and len(args) > 1:
        args[1] = random.choice(("'yyyy-MM-dd'", "'h a MMM d'", "'HH:mm:ss.SSSXXX'"))
    elif name == "date_trunc":
        args[0] = f"'{random.choice(tuple(TRUNCATION_UNITS))}'"
    elif name == "date_format":
        args[1] = random.choice(("'yyyy-MM-dd'", "'h a MMM d X'", "'HH:mm:ss.SSSXXX'"))
    elif name == "round" and len(args) > 1:
        args[1] = str(random.choice((0, 1, 2, 15, 38, -1, -2, -19, -38)))
    elif name == "sha2" and random.random() < 0.8:
        args[1] = random.choice(("0", "224", "256", "384", "512"))
    if name in FUNCTIONS and "zone" in FUNCTIONS[name].signature and len(args) == FUNCTIONS[name].most:
        args[-1] = random.choice((*_ZONES, random.choice(_TEXT)))
    return form.format(*args)


def check(expr: Expr, rows: Sequence[tuple[Any, ...]], times: Sequence[int]) -> None:
    """Checks an expression over rows of `SCHEMA`. Raises whatever is wrong with it."""
    function = compile_row(expr, [SCHEMA])
    values: list[Any] = [None] * len(rows)
    failed: dict[int, str] = {}
    for i, row in enumerate(rows):
        try:
            values[i] = function(row, None, times[i], None)
        except ExpressionFailure as failure:
            failed[i] = failure.reason
    _agree(expr, rows, times, values, failed)
    fine = [i for i in range(len(rows)) if i not in failed]
    for some in (fine, *([i] for i in range(len(rows)))):
        why = {at: failed[i] for at, i in enumerate(some) if i in failed}
        _agree(expr, [rows[i] for i in some], [times[i] for i in some], [values[i] for i in some], why)
    for reason in failed.values():
        reason.encode()
        if "INTERNAL_ERROR" in reason or len(reason) > 400 or not reason.startswith("["):
            raise AssertionError(f"fails with: {reason[:1000]}")
    _keeps(expr.type, values)


def _agree(
    expr: Expr, rows: Sequence[tuple[Any, ...]], times: Sequence[int], values: list[Any], failed: dict[int, str]
) -> None:
    columns = tuple(to_array([row[i] for row in rows], c.type) for i, c in enumerate(SCHEMA.value))
    found, failures = evaluate(expr, [Frame(SCHEMA, columns, np.array(times, dtype=np.int64))])
    found.validate(full=True)
    if found.type != arrow_type(expr.type):
        raise AssertionError(f"a column of {found.type} where {expr.type} was declared")
    for i, (one, other) in enumerate(zip(values, to_values(found, expr.type), strict=True)):
        if repr(one) != repr(other) or failed.get(i) != failures.get(i):
            mine, theirs = _of(one, failed.get(i)), _of(other, failures.get(i))
            raise AssertionError(f"row {_shown(rows[i], expr)}: {mine} by rows, {theirs} by columns")


def _of(value: Any, failure: str | None) -> str:
    return failure or repr(value)[:300]


def _shown(row: tuple[Any, ...], expr: Expr) -> str:
    return ", ".join(f"{n} = {v!r:.200}" for n, v in zip(_COLUMNS, row, strict=True) if f"name='{n}'" in repr(expr))


def _keeps(of: DataType, values: list[Any]) -> None:
    """Raises if Arrow or the store changes a value."""
    if "void" in str(of):
        return
    column, codec = to_array(values, of), RowCodec([of])
    stored = [codec.encode((value,)) for value in values]
    ways = {
        "Arrow": to_values(column, of),
        "the codec": [codec.decode(data)[0] for data in stored],
        "the codec by columns": to_values(codec.decode_columns(codec.encode_columns([column]))[0], of),
    }
    for way, found in ways.items():
        if repr(found) != repr(values):
            raise AssertionError(f"{way} makes {found!r:.300} of {values!r:.300}")
    if codec.encode_columns([column]).to_pylist() != stored:
        raise AssertionError("columns and rows are encoded differently")


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries out what is named, else everything; the exit status is 1 if a call was wrong."""
    parser = argparse.ArgumentParser(prog="python -m soak.functions", description="every function with hostile values")
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions and operators (default: all)")
    parser.add_argument("--calls", type=int, default=10_000, help="how many of each (default: 10000)")
    parser.add_argument("--seed", type=int, default=1, help="of the arguments (default: 1)")
    given = parser.parse_args(arguments)
    wrong = 0
    for name in given.names or NAMES:
        try:
            try_out(name, given.calls, given.seed)
        except Wrong as error:
            wrong += 1
            print(f"{name}: {error}", flush=True)
    print(f"{len(given.names or NAMES)} functions, {given.calls:,} calls each, seed {given.seed}: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
