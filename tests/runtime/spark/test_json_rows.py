"""What is wrong with a JSON record, the bound on bad rows, and values in folders' names: without Spark."""

from __future__ import annotations

import pytest

from vsc.plan.nodes import Column
from vsc.plan.types import BIGINT, DATE, STRING, TIMESTAMP, ArrayType, DecimalType
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.source.partition_folders import folder_texts, folder_values
from vsc.runtime.spark.bad_rows import MaxBad
from vsc.runtime.spark.json_rows import json_problem

COLUMNS = (
    Column("name", STRING),
    Column("n", BIGINT),
    Column("tags", ArrayType(STRING)),
    Column("day", DATE),
    Column("at", TIMESTAMP),
    Column("price", DecimalType(4, 2)),
)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ("[1]", "'[1]' is not a JSON object"),
        ('{"n": 1.5}', "column 'n' (bigint) cannot hold '1.5'"),
        ('{"n": true}', "column 'n' (bigint) cannot hold 'true'"),
        ('{"name": 7, "tags": "x"}', "column 'tags' (array<string>) cannot hold 'x'"),
        ('{"day": "soon"}', "column 'day' (date) cannot hold 'soon'"),
        ('{"at": "2026-13-01 10:00"}', "column 'at' (timestamp) cannot hold '2026-13-01 10:00'"),
        ('{"price": 123.4}', "column 'price' (decimal(4,2)) cannot hold '123.4'"),
        ('{"n": 1}', "'{\"n\": 1}' does not fit the declared columns"),
        ("x" * 100, f"'{'x' * 77}...' is not JSON"),
    ],
)
def test_a_json_record_says_what_does_not_fit(record: str, problem: str) -> None:
    assert json_problem(record, COLUMNS) == problem.replace("(decimal(4,2))", f"({COLUMNS[5].type})")


def test_a_bound_is_a_number_or_a_share() -> None:
    assert [MaxBad.of("2").allows(bad, 1000) for bad in (2, 3)] == [True, False]
    assert [MaxBad.of("0.1 %").allows(bad, 1000) for bad in (1, 2)] == [True, False]
    assert [MaxBad.of("0").allows(bad, 5) for bad in (0, 1)] == [True, False]
    for text in ("", "x", "-1", "1.5", "101%", "1%%"):
        with pytest.raises(ConfigurationError, match="neither a number of rows nor a percentage"):
            MaxBad.of(text)


def test_folders_give_texts_and_values() -> None:
    path = "file:/data/n=1/name=a%3Db/n=x/day=__HIVE_DEFAULT_PARTITION__/=y/file=1.json"
    assert folder_texts(path) == {"n": "x", "name": "a=b", "day": None}
    found = folder_values(path, COLUMNS)
    assert {COLUMNS[i].name: value.repeated(2).to_pylist() for i, value in found.items()} == {
        "name": ["a=b", "a=b"],
        "n": [None, None],
        "day": [None, None],
    }
    assert [value.problem for value in found.values()] == [
        None,
        "column 'n' (bigint) cannot hold the folder's 'x'",
        None,
    ]
