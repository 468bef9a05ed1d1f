"""Regular expressions mean what they mean in Java: one query with many patterns over many texts."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from vsc.plan.expressions import Call, Column, Literal
from vsc.plan.nodes import Column as Declared
from vsc.plan.nodes import Schema
from vsc.plan.regex import java_regex
from vsc.plan.types import BOOLEAN, INT, STRING, DataType
from vsc.runtime.expressions import compile_row

pytestmark = [pytest.mark.spark, pytest.mark.release]
pytest.importorskip("pyspark")

ENDS = ("", "\n", "\r", "\r\n", "\n\r", "\n\n", "\u0085", "\u2028", "\r\n\r\n", "\t")
TEXTS = [f"{body}{end}" for body, end in product(("", "a", "ab\nab", "aXbXa"), ENDS)] + [
    "aab", "abc abd", "AbC", "straße", "ÅNGSTRÖM K\u212a", "\U0001d11e\U0001d11e", "12:34:56", "٣٤", "a.b*c", "x_y-z",
    "[a]{2}", "foo=1;bar=22;baz", "2024-02-30T12:00:00Z", "\u00a0a\u00a0", "\x0b\x1ca", "\\d$1", "ſ", "aaaa", "abab",
]  # fmt: skip
PATTERNS = r"""
a a|ab ab|a (a)(b)? (a|b)*c (?:(a)|b)+ a* a*? a+?b a{2} a{2,} a{0,2}b (a{1,2}){2} ^a a$ ^$ $ . .* .+$ (.*)$ (.*?)$
^(.*)(.)$ [^a]$ \s*$ (\s*?)$ a$|b ^a|b$ (a|b)?$ \s \S+ \d+ \D+ \w+ \W+ [\w.]+ [^\s;=]+ (\w+)=(\d+); (\d{2}):(\d{2})
(?i)k (?i)[a-c]+ (?i)[^a-z]+ (?i)å (?i)s [a-zß]+ [.*] \. \*c \[a\]\{2\} [\]] [a\-z]+ [-a]+ [a-]+ \\d \$1 \x61 \u0061
\n \r\n \Aa a\z x| ()a (a)|(b) (a(b)?)+ (ab)+ (?:ab){2} 𝄞 [𝄞]+ \t$ \e|\a|\f (^a)?b ^[^@]+@[^@]+$
[\x20-~]+
"""


def _ours(call: Call) -> list[Any]:
    function = compile_row(call, [Schema((), (Declared("s", STRING),))])
    return [function((text,), None, None, None) for text in TEXTS]


def _calls() -> dict[str, Call]:
    """The calls by their text in Spark."""
    found: dict[str, Call] = {}
    column = Column(0, "s", STRING)

    def add(name: str, type: DataType, *constants: Literal) -> None:
        written = [f"'{c.value}'" if c.type == STRING else str(c.value) for c in constants]
        found[f"{name}(s, {', '.join(written)})"] = Call(name, (column, *constants), type)

    for pattern in PATTERNS.split():
        regex, written = java_regex(pattern), Literal(pattern, STRING)
        add("regexp_like", BOOLEAN, written)
        for group in range(regex.groups + 1):
            add("regexp_extract", STRING, written, Literal(group, INT))
        if not regex.empty and not regex.ends:
            add("regexp_replace", STRING, written, Literal(f"<$0\\$${regex.groups}1>", STRING))
    return found


def test_the_same_matches(spark: Any) -> None:
    calls = _calls()
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        data = spark.createDataFrame([(i, text) for i, text in enumerate(TEXTS)], "id int, s string").coalesce(1)
        found = data.orderBy("id").selectExpr(*(f"{text} AS `{i}`" for i, text in enumerate(calls))).toArrow()
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")
    wrong = [
        f"{call} of {text!r}: ours {mine!r}, Spark {theirs!r}"
        for (call, expr), column in zip(calls.items(), found.columns, strict=True)
        for text, mine, theirs in zip(TEXTS, _ours(expr), column.to_pylist(), strict=True)
        if mine != theirs
    ]
    assert not wrong, "\n".join(wrong[:50])
