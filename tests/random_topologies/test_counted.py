"""An aggregate of a table counts the rows that the table has: the old row of a change is what was sent of it before.

The oracle makes old rows by the same rules as what is shipped, so that the two agree on a wrong rule. This asks without
rules of its own: behind every table of a random topology the rows are counted by value, and what is counted is compared
with the last record of each key.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from tests.oracle import Played, shipped
from tests.random_topologies.case import Case
from tests.random_topologies.seeds import of_both_sizes
from vsc.compiler import compile_topology
from vsc.runtime.records import Batch

__all__ = ["by_row", "last_rows"]

COUNTED = "counted_"


@pytest.mark.quick(2)
@pytest.mark.long
@pytest.mark.parametrize(("large", "seed"), of_both_sizes("VSC_TOPOLOGIES", 20, 4))
def test_an_aggregate_counts_what_its_table_has(seed: int, large: bool) -> None:
    case = Case.of(seed, large)
    tables = {node.name: node for node in case.plan.nodes if node.status and node.name[0] in "ty"}
    text = [case.topology.text()]
    for name, node in tables.items():
        row = ", ".join(("1 as one", *(column.name for column in node.schema.value)))
        text.append(
            f"table {COUNTED}{name} = aggregate {name} group by to_json(struct({row})) as v select count(*) as n;"
        )
        text.append(f"sink {COUNTED}{name} to memory ();")
    plan = compile_topology("\n".join(text), path=f"{seed}.vdsl")
    observed = [*tables, *(COUNTED + name for name in tables)]
    played = shipped(plan, case.epochs, observed, case.partitions, "drop", case.restarts, clock="input")
    assert played.failure is None
    for name in tables:
        counts = Counter(map(_text, last_rows(played, name).values()))
        assert sorted(counts.values()) == sorted(row[0] for row in last_rows(played, COUNTED + name).values()), name


def last_rows(played: Played, table: str) -> dict[str, tuple[Any, ...]]:
    """The last row of each key, of all that came out of a table; not those that its history alone has."""
    found: dict[str, tuple[Any, ...]] = {}
    for batch in played.batches.get(table, ()):
        keys, values = by_row(batch, batch.keys), by_row(batch, batch.values)
        for number, (key, value, present) in enumerate(zip(keys, values, batch.present, strict=True)):
            if batch.latest is not None and not batch.latest[number]:
                continue
            if present:
                found[str(key)] = value
            else:
                found.pop(str(key), None)
    return found


def by_row(batch: Batch, columns: Sequence[pa.Array]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True)) or [()] * len(batch)


def _text(row: tuple[Any, ...]) -> str:
    """A row as text, with times in ms, as `to_json` has them."""
    return json.dumps(
        row, default=lambda v: v.isoformat(timespec="milliseconds") if isinstance(v, datetime) else str(v)
    )
