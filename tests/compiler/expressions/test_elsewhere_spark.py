"""What a help says to write gives what the function of Spark SQL gives for which it stands.

`elsewhere.txt` has both, and a profile of the rows where not all of them will do.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.compiler.expressions.test_elsewhere import CASES, Case
from vsc.compiler import check_topology
from vsc.testing import TopologyTestDriver

pytestmark = [pytest.mark.spark, pytest.mark.release]
pyspark = pytest.importorskip("pyspark")


def _at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "k": ("string", ["p", "p", "q", "r", "r"]),
    "x": ("bigint", [-7, 7, None, 9223372036854775807, 0]),
    "y": ("bigint", [2, -2, 3, 3, None]),
    "z": ("bigint", [0, 7, None, 2, 5]),
    "n": ("int", [1, 0, None, 3, 2]),
    "i": ("int", [1, 3, None, 2, -1]),
    "days": ("int", [3, 0, None, -40, 10]),
    "text": ("string", ["a1b2", "xxabac", None, "", "aab"]),
    "part": ("string", ["b", "a", "x", "", None]),
    "texts": ("array<string>", [["a", None, "b"], [], None, ["x"], [None]]),
    "a": ("array<int>", [[3, None, 1], [], None, [2, 2, 5], [None]]),
    "m": ("map<string, int>", [{"key": 1, "o": None}, {}, None, {"key": 5}, {"o": 2}]),
    "b": ("timestamp", [_at(2026, 3, 29, 1, 30), _at(1969, 12, 31, 23, 59), None, _at(2026, 1, 1), _at(2024, 2, 29)]),
    "at": ("timestamp", [_at(2026, 3, 29), _at(2026, 3, 29, 12), _at(2026, 3, 30), _at(2026, 3, 31), _at(2026, 4, 1)]),
    "d": ("date", [date(2024, 2, 1), date(2026, 12, 31), None, date(1970, 1, 1), date(2023, 1, 30)]),
    "`end`": ("date", [date(2024, 3, 1), date(2026, 12, 30), None, date(1970, 1, 1), date(2023, 3, 30)]),
    "start": ("date", [date(2024, 2, 28), date(2026, 12, 31), date(2020, 1, 1), date(1969, 1, 1), None]),
    "condition": ("boolean", [True, False, None, False, None]),
}  # fmt: skip
PROFILES: dict[str, dict[str, tuple[str, list[Any]]]] = {
    "": {},
    "int": {"x": ("int", [-7, 7, None, 2147483647, 7])},
    "same": {"x": ("bigint", [5, 5, None, -1, -1])},
    "double": {"x": ("double", [0.5, math.nan, None, 3.0, 0.1])},
    "double_small": {"x": ("double", [0.5, -7.9, None, 3.0, 1e9])},
    "string": {"x": ("string", ["a,b,c", "Ab", None, "", "xyz"])},
    "timestamp": {"x": COLUMNS["b"]},
    "date": {"x": COLUMNS["d"]},
    "zero": {"y": ("bigint", [2, 0, 3, None, 0])},
    "arrays": {"x": ("array<int>", [[1, 2], [None, 1], None, [3, 3], []]),
               "y": ("array<int>", [[2, None], [], [1], [4], [5]])},
    "times": {"text": ("string", ["2026-03-29 01:30:00", "1969-12-31 23:59:59", None, "2024-02-29 00:00:00", None])},
    "days": {"text": ("string", ["2026-03-29", "1969-12-31", None, "2024-02-29", None])},
    "years": {"y": ("bigint", [2026, 1969, None, 2024, 1999]), "n": ("int", [1, 12, 3, 2, 7]),
              "days": ("int", [1, 31, 3, 29, 5])},
    "pairs": {"a": ("array<int>", [[3, 1], [], None, [2], [4]]),
              "texts": ("array<string>", [["a", None], [], ["z"], ["x"], ["y"]])},
    "json": {"text": ("string", ['{"a": "x", "b": 1}', '["b", 2, [3]]', None, "[]", "{broken"]),
             "part": ("string", ["b", "b", "x", "", None])},
}  # fmt: skip


def test_what_is_said_to_be_written_is_what_spark_gives(spark: Any) -> None:
    wrong = []
    for case in CASES:
        columns = {**COLUMNS, **PROFILES[case.profile]}
        data = _frame(spark, columns)
        mine, theirs = _ours(case, columns), _spark(case, data)
        if not all(_same(a, b) for a, b in zip(mine, theirs, strict=True)):
            wrong.append(f"{case.written} | {case.spark}\n  {mine}\n  {theirs}")
    assert not wrong, "\n".join(wrong)


def _ours(case: Case, columns: dict[str, tuple[str, list[Any]]]) -> list[Any]:
    """The values of the rows, or of the groups, as JSON has them."""
    source = (
        "stream q (" + ", ".join(f"{name} {type}" for name, (type, _) in columns.items()) + ") from memory () key k;\n"
    )
    text = source + _statement(case)
    with TopologyTestDriver(text) as driver:
        for row in zip(*(values for _, values in columns.values()), strict=True):
            driver.pipe("q", dict(zip((name.strip("`") for name in columns), row, strict=True)), timestamp=0)
        records = driver.read("r")
    values = [json.loads(record.value["o"]) for record in records if record.value is not None]
    if not case.grouped:
        return values
    return list({record.key["k"]: value for record, value in zip(records, values, strict=True)}.values())


def _statement(case: Case) -> str:
    made = f"to_json(struct({case.expression} as v)) as o"
    return f"table r = aggregate q group by k select {made};" if case.grouped else f"stream r = map q select {made};"


def _spark(case: Case, data: Any) -> list[Any]:
    from pyspark.sql import functions as F

    made = F.expr(f"to_json(struct({case.spark} as v))").alias("o")
    if case.grouped:
        rows = data.groupBy("k").agg(made).orderBy("k").collect()
    else:
        rows = data.orderBy("place").select(made).collect()
    return [json.loads(row["o"]) for row in rows]


def _frame(spark: Any, columns: dict[str, tuple[str, list[Any]]]) -> Any:
    schema = "place int, " + ", ".join(f"{name} {type}" for name, (type, _) in columns.items())
    rows = list(zip(range(5), *(values for _, values in columns.values()), strict=True))
    return spark.createDataFrame(rows, schema).coalesce(1)


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, numbers but for their last digits."""
    one, other = one.get("v"), other.get("v")
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)


def test_each_case_can_be_written() -> None:
    assert {case.profile for case in CASES} <= PROFILES.keys()
    source = (
        "stream q (" + ", ".join(f"{name} {type}" for name, (type, _) in COLUMNS.items()) + ") from memory () key k;\n"
    )
    assert not [f for f in check_topology(source + "sink q to console ();") if f.severity == "error"]
