"""Which changes of Delta's feed are left, and in which order, without Spark."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from vsc.runtime.spark.connectors.delta.connector import _sorted
from vsc.runtime.spark.formats.source_columns import DELETED

KINDS = {"insert": (False, False), "new": (False, False), "delete": (True, False), "old": (True, True)}
Change = tuple[int, str, object]


def read(*changes: Change, type: pa.DataType | None = None) -> list[tuple[str, object]]:
    """What becomes of changes (version, kind, key), whatever their order within a version."""
    mixed = random.Random(len(changes)).sample(changes, len(changes))
    deleted, older = zip(*(KINDS[kind] for _, kind, _ in mixed), strict=True)
    table = pa.table(
        {
            "key": pa.array([key for *_, key in mixed], type or pa.string()),
            "value": list(range(len(mixed))),
            DELETED: deleted,
            "_vsc_older": older,
            "_vsc_version": [version for version, *_ in mixed],
            "_vsc_file": ["f"] * len(mixed),
            "_vsc_row": list(range(len(mixed))),
        }
    )
    batches = list(_sorted(["key"], table.to_batches(max_chunksize=2)))
    assert all(batch.schema.names == ["key", "value", DELETED] for batch in batches)
    return [("-" if row[DELETED] else "+", row["key"]) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(1, "insert", "a")], "+a"),
        ([(1, "old", "a"), (1, "new", "a")], "+a"),
        ([(1, "old", "a"), (1, "new", "b")], "-a +b"),
        ([(1, "old", "a"), (1, "new", "b"), (1, "old", "b"), (1, "new", "c")], "-a +b +c"),  # b has another row
        ([(1, "old", "a"), (1, "new", "b"), (1, "old", "b"), (1, "new", "a")], "+a +b"),
        ([(1, "old", "a"), (1, "new", "b"), (2, "old", "b"), (2, "new", "a")], "-a +b -b +a"),
        ([(1, "old", "a"), (1, "new", "b"), (2, "insert", "a")], "-a +b +a"),
        ([(1, "delete", "a"), (1, "insert", "a")], "-a +a"),  # an overwrite
        ([(1, "delete", "a"), (1, "old", "b"), (1, "new", "b")], "-a +b"),
        ([(1, "old", None), (1, "new", "a")], "+a"),  # it was no row, and there is nothing to delete
    ],
)
def test_an_update_of_a_key_deletes_the_old_one(changes: list[Change], expected: str) -> None:
    found = read(*changes)
    assert sorted(f"{sign}{key}" for sign, key in found) == sorted(expected.split())
    assert [sign for sign, _ in found] == [part[0] for part in expected.split()]


def test_keys_of_several_parts() -> None:
    key = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    one, other = {"a": 1, "b": {"c": "x"}}, {"a": 1, "b": {"c": "y"}}
    assert read((1, "old", one), (1, "new", one), type=key) == [("+", one)]
    assert read((1, "old", one), (1, "new", other), type=key) == [("-", one), ("+", other)]


def test_no_changes() -> None:
    assert list(_sorted(["key"], [])) == []
