"""The types of all operators over all pairs of types, against Spark's own analysis of the same text."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from vsc.compiler.expressions import Scope, ScopeInput, type_expression
from vsc.compiler.parser import parse_expression
from vsc.plan.nodes import Column, Schema
from vsc.plan.types import parse_type

pytestmark = [pytest.mark.spark, pytest.mark.release]
pytest.importorskip("pyspark")

TYPES = [
    "boolean", "tinyint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,18)", "string", "binary",
    "date", "timestamp", "array<int>", "array<string>", "map<string,int>", "struct<a:int>",
]  # fmt: skip
PAIRS = [
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} % {b}", "{a} = {b}", "{a} < {b}", "{a} || {b}",
    "coalesce({a}, {b})", "if(true, {a}, {b})", "greatest({a}, {b})", "{a} in ({b})", "nullif({a}, {b})",
    "array({a}, {b})", "try_divide({a}, {b})", "{a} like {b}", "datediff({a}, {b})", "date_add({a}, {b})",
]  # fmt: skip
SINGLES = [
    "-{a}", "abs({a})", "ceil({a})", "floor({a})", "round({a})", "round({a}, 1)", "upper({a})", "length({a})",
    "year({a})", "hour({a})", "unix_millis({a})", "timestamp_millis({a})", "size({a})", "md5({a})", "xxhash64({a})",
    "to_json({a})", "{a} + 1", "{a} * 2.5", "{a} > 1e0", "{a} = '1'", "{a} + null", "trim({a})",
    "{a} is null", "not {a}", "date_trunc('day', {a})", "month({a})", "substring('abc', {a})",
]  # fmt: skip
COLUMNS = [f"c{i}" for i in range(len(TYPES))]
SCOPE = Scope(
    (ScopeInput("r", 0, Schema((), tuple(Column(n, parse_type(t)) for n, t in zip(COLUMNS, TYPES, strict=True)))),)
)


def ours(text: str) -> str | None:
    parsed = parse_expression(text)
    assert parsed.expression is not None, text
    found = type_expression(parsed.expression, SCOPE).expr
    return None if found is None else str(found.type)


def theirs(data: Any, text: str) -> str | None:
    from pyspark.errors import PySparkException

    try:
        return str(data.selectExpr(text).schema.fields[0].dataType.simpleString())
    except PySparkException:
        return None


def narrower_on_purpose(text: str, spark: str | None) -> bool:
    """What Spark takes and vsc refuses, with a finding that says what to write."""
    interval = (spark or "").startswith("interval")  # a duration is not a value here
    return interval or " - " in text or "null" in text  # date - days: `date_add`; timestamp + null


@pytest.fixture(scope="module")
def data(spark: Any) -> Any:
    return spark.createDataFrame([], ", ".join(f"{n} {t}" for n, t in zip(COLUMNS, TYPES, strict=True)))


def test_operators_have_the_types_that_spark_gives_them(data: Any) -> None:
    wrong = []
    texts = [p.format(a=a, b=b) for p in PAIRS for a in COLUMNS for b in COLUMNS]
    texts += [s.format(a=a) for s in SINGLES for a in COLUMNS]
    named = dict(zip(COLUMNS, TYPES, strict=True))
    for text in Random(1).sample(texts, 300):  # all of them take minutes; another seed tests others
        mine, spark = ours(text), theirs(data, text)
        if mine != spark and not (mine is None and narrower_on_purpose(text, spark)):
            shown = text
            for name in sorted(COLUMNS, key=len, reverse=True):
                shown = shown.replace(name, named[name])
            wrong.append(f"{shown}: ours {mine}, spark {spark}")
    assert not wrong, f"{len(wrong)} of {len(texts)}\n" + "\n".join(wrong)
