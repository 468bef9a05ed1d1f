"""Row by row, over columns and in Spark: every expression gives the same values and fails on the same rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.runtime.expressions.nasty import EXPRESSIONS, ROWS, SCHEMA, typed
from tests.runtime.expressions.spark_text import spark_sql
from vsc.plan.expressions import Expr
from vsc.runtime.expressions import ExpressionFailure, compile_row
from vsc.runtime.expressions.maths import OF_ONE
from vsc.runtime.values import to_array, to_values

pytestmark = [pytest.mark.spark, pytest.mark.release]
pyspark = pytest.importorskip("pyspark")

FAILED = object()
OTHERWISE_ON_4_0 = {
    "cast('0e12345' as decimal(10,2))",  # a zero with a long exponent fails
    "cast(t as decimal(20,6))",  # by way of a double
    "split(u, if(k > 1, '', ':'), k)",  # an empty pattern takes no more than the limit
    "array_distinct(ag)", "array_distinct(array(ag, array(0e0, null), ag))",  # -0.0 stays
    "array_distinct(array(struct(h, g), struct(0e0 as h, 0e0 as g)))",
}  # fmt: skip
"""What Spark 4.0 evaluates otherwise than later releases and vsc."""
COMPARED = [one for one in EXPRESSIONS if not (pyspark.__version__.startswith("4.0.") and one in OTHERWISE_ON_4_0)]


def ours(expr: Expr) -> list[Any]:
    function = compile_row(expr, [SCHEMA])
    values = []
    for row in ROWS:
        try:
            values.append(function(row, None, None, None))
        except ExpressionFailure:
            values.append(FAILED)
    return values


def same(text: str, mine: list[Any], theirs: list[Any]) -> bool:
    """Whether the values are equal; those of a function of mathematics but for their last digit."""
    if text.partition("(")[0] not in OF_ONE:
        return [shown(v) for v in mine] == [shown(v) for v in theirs]
    return all(
        shown(a) == shown(b) or (a is not None and b is not None and math.isclose(a, b, rel_tol=2**-52))
        for a, b in zip(mine, theirs, strict=True)
    )


def shown(value: Any) -> str:
    """A value as text in which NaN is equal to itself and -0.0 is not 0.0."""
    return repr(value) if not (isinstance(value, float) and math.isnan(value)) else "NaN"


class Table:
    """The nasty rows in Spark."""

    def __init__(self, session: Any) -> None:
        self.session = session
        columns = [to_array([row[i] for row in ROWS], c.type) for i, c in enumerate(SCHEMA.value)]
        self.data = session.createDataFrame(pa.table(columns, names=[c.name for c in SCHEMA.value]))

    def values(self, exprs: list[Expr], rows: Sequence[int]) -> list[list[Any]]:
        """The values of each expression over the rows with these numbers."""
        texts = [f"{spark_sql(e, lambda c: f'`{c.name}`')} AS `{i}`" for i, e in enumerate(exprs)]
        chosen = self.data.filter(f"id in ({', '.join(map(str, rows))})").orderBy("id")
        found = chosen.selectExpr(*texts).toArrow()
        plain = [column.combine_chunks() for column in found.columns]
        return [to_values(as_ours(c, e), e.type) for c, e in zip(plain, exprs, strict=True)]


def as_ours(array: pa.Array, expr: Expr) -> pa.Array:
    """Spark's array under our field names; a type that differs makes the cast, and the test, fail."""
    wanted = to_array([], expr.type).type
    assert str(array.type).replace("not null", "").replace(" ", "").replace("large_", "") == str(wanted).replace(
        "not null", ""
    ).replace(" ", "") or pa.types.is_nested(wanted), (array.type, wanted)
    return array.cast(wanted)


@pytest.fixture(scope="module")
def table(spark: Any) -> Table:
    return Table(spark)


def groups() -> dict[tuple[int, ...], list[tuple[str, Expr, list[Any]]]]:
    """The expressions by the rows on which they do not fail: those of a group are one query."""
    found: dict[tuple[int, ...], list[tuple[str, Expr, list[Any]]]] = {}
    for text in COMPARED:
        expr = typed(text)
        mine = ours(expr)
        fine = tuple(i for i, value in enumerate(mine) if value is not FAILED)
        found.setdefault(fine, []).append((text, expr, [mine[i] for i in fine]))
    return found


def test_the_same_values(table: Table) -> None:
    wrong = []
    for rows, all_members in groups().items():
        for start in range(0, len(all_members) if rows else 0, 60):
            members = all_members[start : start + 60]
            for (text, _, mine), theirs in zip(members, table.values([e for _, e, _ in members], rows), strict=True):
                if not same(text, mine, theirs):
                    wrong.append(f"{text}\n  ours  {mine}\n  spark {theirs}")
    assert not wrong, "\n".join(wrong)


def test_the_same_failures(table: Table) -> None:
    table.session.sparkContext.setLogLevel("OFF")  # every failure is logged with its stack otherwise
    wrong = []
    for rows, members in groups().items():
        failing = [i for i in range(len(ROWS)) if i not in rows][:1]
        for row in failing:
            for text, expr, _ in members:
                try:
                    wrong.append(f"{text}: ours fails on row {row}, spark gives {table.values([expr], [row])}")
                except Exception as error:
                    assert re.search("SQLSTATE|overflow|4-byte ending|enough valid bits|ending byte", str(error)), text
    table.session.sparkContext.setLogLevel("ERROR")
    assert not wrong, "\n".join(wrong)
