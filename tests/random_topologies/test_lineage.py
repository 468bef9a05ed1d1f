"""What a column of a sink does not depend on may change: the column stays as it is, in random topologies.

Only columns of sources are changed that no key and no event time depends on: these decide about more than lineage
tells, as about the order of records. Nor does it tell that a foreign-key join sends a row again that has changed in
any column, and on which records expressions fail.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from tests.oracle import Stores, chunks
from tests.random_topologies.records import STRINGS, History, RecordSizes, Values, history
from tests.random_topologies.seeds import seeds
from tests.random_topologies.topology import Sizes, generate
from vsc.compiler import compile_topology
from vsc.lineage.columns import _Nodes, sink_lineages
from vsc.lineage.inputs import Field
from vsc.plan import Answer, Plan
from vsc.plan.order import ordered
from vsc.runtime.local import LocalRuntime
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.context import RunOptions

pytestmark = pytest.mark.long

RECORDS = RecordSizes(epochs=(1, 4), parts=(1, 2), rows=(3, 12), bad=0)


def _outputs(plan: Plan, epochs: History) -> tuple[dict[str, list[dict[str, str]]], bool]:
    """By node its records, in order: each column as text, and whether the record has a value; and whether an expression
    has failed."""
    names = [node.name for node in plan.nodes if node.part_of is None]
    runtime = LocalRuntime(plan, Stores(), names, 1, RunOptions(on_error="drop"))
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for step in (*(lambda epoch=epoch: runtime.process(chunks(plan, epoch)) for epoch in epochs), runtime.drain):
        for name, batch in step().items():
            columns = {
                column.name: [repr(value) for value in array.to_pylist()]
                for column, array in zip(
                    (*batch.schema.key, *batch.schema.value), (*batch.keys, *batch.values), strict=True
                )
            } | {"": [repr(present) for present in batch.present.tolist()]}
            found[name] += (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return found, Dropped.EXPRESSION_FAILED in repr(runtime.metrics.as_dict())


def _repeating(plan: Plan) -> set[str]:
    """The nodes that foreign-key joins stand before."""
    found: set[str] = set()
    for node in ordered(plan):
        if isinstance(node.operation, Answer) or found.intersection(node.inputs):
            found.add(node.name)
    return found


def _changed(rng: random.Random, epochs: History, field: Field, type_: str) -> History:
    """The history with other values in a column of a source."""
    values = Values(rng, list(STRINGS), 0)

    def changed(row: Any) -> Any:
        return row._replace(row={**row.row, field.column: values.value(type_, False)})

    return [[changed(row) if row.source == field.source else row for row in epoch] for epoch in epochs]


@pytest.mark.quick(1)
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 12))
def test_what_a_column_does_not_depend_on_may_change(seed: int) -> None:
    rng = random.Random(seed)
    topology = generate(rng, Sizes(bounded=False, paired=rng.choice((0, 4)), derived=(3, 9)))
    plan = compile_topology(topology.text(), path=f"{seed}.vdsl")
    epochs = history(rng, topology, replace(RECORDS, hot=0))
    nodes = _Nodes(plan).found
    fixed = {field for node in plan.nodes for inputs in nodes[node.name].key(node) for field in inputs}
    fixed |= {field for found in nodes.values() for field in found.time}
    fixed |= {Field(source.name, name) for source in topology.sources for name in (*source.key, "at", "gone")}
    before, failed = _outputs(plan, epochs)
    compared = [one for one in sink_lineages(plan) if one.sink.node not in _repeating(plan)]
    for source in topology.sources:
        for name, type_ in source.columns:
            field = Field(source.name, name)
            if field in fixed:
                continue
            after, fails = _outputs(plan, _changed(rng, epochs, field, type_))
            for lineage in compared:
                if failed or fails or field in lineage.rows:
                    continue
                free = ["", *(column.name for column in lineage.columns if field not in lineage.fields[column.name])]
                ours, theirs = (
                    [{one: row[one] for one in free if one in row} for row in found[lineage.sink.node]]
                    for found in (before, after)
                )
                assert ours == theirs, (field, lineage.sink.node)
