"""Expressions over whole columns, in this process: nanoseconds a row, and which expressions have no kernel.

``python -m bench.expressions [--rows N] [EXPRESSION ...]``. The columns are ``n bigint``, ``i int``, ``x double``,
``m decimal(12, 2)``, ``s string``, ``t timestamp``, ``d date``, ``b boolean``, ``a array<string>`` and texts of a
timestamp ``st``, a date ``sd``, a double ``sx``, a decimal ``sm`` and JSON ``sj``; a tenth of each is null.
"""

from __future__ import annotations

import argparse
import time
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np

from vsc.compiler.expressions import Scope, ScopeInput, type_expression
from vsc.compiler.parser import parse_expression
from vsc.plan.expressions import Expr
from vsc.plan.nodes import Column, Schema
from vsc.plan.types import parse_type
from vsc.runtime.expressions import Frame, columns, evaluate, forms
from vsc.runtime.values import to_array

EXPRESSIONS = """
n + 1; x * 2.5e0 + n; m * 2; m / 3; n % 7; round(x, 2); round(m, 1); ceil(x); floor(x); greatest(n, i); abs(m); -m
n > 10 and s = 'b'; s in ('a', 'b'); coalesce(s, 'none'); case when n > 10 then s else 'x' end; try_divide(n, i)
s || '-' || s; upper(s); replace(s, '-', '+'); split(s, '-'); s like 'key%7'; substring(s, 2, 3); concat_ws('-', s, n)
year(d); date_add(d, i); datediff(d, t); date_trunc('hour', t); date_trunc('month', t); t + 1 hour
cast(n as string); cast(x as string); cast(m as string); cast(t as string); cast(d as string); cast(b as string)
cast(st as timestamp); cast(sd as date); cast(sx as double); cast(sm as decimal(12, 2)); to_date(sd, 'yyyy-MM-dd')
to_timestamp(st, 'yyyy-MM-dd HH:mm:ss'); cast(m as int); cast(x as decimal(12, 2)); cast(m as decimal(8, 1))
a[0]; element_at(a, 1); array(s, s); struct(n, s); size(a); to_json(struct(n, s)); from_json(sj, 'k bigint, v string')
md5(s); sha2(s, 256); xxhash64(s); xxhash64(n)
"""
TYPES = {
    "n": "bigint", "i": "int", "x": "double", "m": "decimal(12,2)", "s": "string", "t": "timestamp", "d": "date",
    "b": "boolean", "a": "array<string>", "st": "string", "sd": "string", "sx": "string", "sm": "string",
    "sj": "string",
}  # fmt: skip
SCHEMA = Schema((), tuple(Column(name, parse_type(type_)) for name, type_ in TYPES.items()))


def frame(rows: int) -> Frame:
    """Random rows."""
    rng = np.random.default_rng(1)
    n, x = rng.integers(1, 1000, rows).tolist(), (rng.random(rows) * 1000).tolist()
    seconds = rng.integers(0, 2_000_000_000, rows)
    stamps = [str(v).replace("T", " ") for v in seconds.astype("datetime64[s]")]
    texts: dict[str, list[Any]] = {
        "n": n, "i": n, "x": x, "m": [Decimal(f"{v:.2f}") for v in x], "s": [f"key-{v}" for v in n],
        "b": [v > 500 for v in n],
        "t": (seconds * 1_000_000 + 123456).tolist(), "d": (seconds // 86400).tolist(),
        "a": [["a", f"b{v}"] for v in n],
        "st": stamps, "sd": [v[:10] for v in stamps], "sx": list(map(repr, x)), "sm": [f"{v:.2f}" for v in x],
        "sj": [f'{{"k": {v}, "v": "a{v}"}}' for v in n],
    }  # fmt: skip
    nulls = rng.random((len(TYPES), rows)) < 0.1
    found = [[None if null else v for v, null in zip(texts[c.name], nulls[j], strict=True)]
             for j, c in enumerate(SCHEMA.value)]  # fmt: skip
    return Frame(SCHEMA, [to_array(values, c.type) for values, c in zip(found, SCHEMA.value, strict=True)])


def typed(text: str) -> Expr:
    """The plan of an expression over the columns."""
    parsed = parse_expression(text).expression
    found = None if parsed is None else type_expression(parsed, Scope((ScopeInput("r", 0, SCHEMA),))).expr
    if found is None:
        raise SystemExit(f"not an expression over the columns: {text}")
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.expressions", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("expressions", nargs="*", metavar="EXPRESSION", help="only these")
    parser.add_argument("--rows", type=int, default=20_000)
    arguments = parser.parse_args()
    data = frame(arguments.rows)
    print("| expression | ns a row | row by row |\n|---|---:|---|")
    for text in arguments.expressions or [
        text for line in EXPRESSIONS.split("\n") for text in line.split("; ") if text
    ]:
        expr = typed(text)
        with mock.patch.object(columns, "mapped", wraps=forms.mapped) as mapped:
            evaluate(expr, [data])
        began = time.process_time()
        evaluate(expr, [data])
        spent = (time.process_time() - began) * 1e9 / arguments.rows
        print(f"| `{text}` | {spent:,.0f} | {'yes' if mapped.called else ''} |", flush=True)


if __name__ == "__main__":
    main()
