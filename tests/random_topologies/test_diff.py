"""Random topologies and their changes: what means the same is kept, whatever it is called and what else there is."""

from __future__ import annotations

import random
import re

import pytest

from tests.random_topologies.seeds import seeds
from tests.random_topologies.topology import generate
from vsc.changes import Verdict, compare
from vsc.compiler import compile_topology
from vsc.plan import Plan, Source

pytestmark = pytest.mark.long


def compiled(text: str) -> Plan:
    return compile_topology(text, path="t.vdsl", variables={})


@pytest.mark.quick(4)
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 40))
def test_names_and_unrelated_branches_do_not_show(seed: int) -> None:
    text = generate(random.Random(seed)).text()
    plan = compiled(text)
    assert {change.verdict for change in compare(plan, plan)} <= {Verdict.KEEP}
    renamed = text
    for node in plan.nodes:
        if node.part_of is None and not isinstance(node.operation, Source):
            renamed = re.sub(rf"(?<![\w.']){node.name}(?![\w'])", f"other_{node.name}", renamed)
    found = compare(plan, compiled(f"{renamed}\nsink {plan.nodes[0].name} to noop ();"))
    assert {change.verdict for change in found} <= {Verdict.KEEP, Verdict.RENAMED, Verdict.NEW}
    assert [change.name for change in found if change.verdict is Verdict.NEW] == [f"{plan.nodes[0].name} to noop"]


@pytest.mark.quick(4)
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 40))
def test_what_is_behind_a_changed_source_is_rebuilt_and_nothing_else(seed: int) -> None:
    text = generate(random.Random(seed)).text()
    plan = compiled(text)
    source = plan.nodes[0].name
    after = re.sub(
        rf"^(\S+(?: table)? {source} .*? timestamp \S*?)\bat\b", r"\1at + 1", text, count=1, flags=re.MULTILINE
    )
    assert after != text
    behind = {source}
    for _ in plan.nodes:
        behind |= {node.name for node in plan.nodes if behind & set(node.inputs)}
    found = compare(plan, compiled(after))
    tables = {node.store.name: node.name for node in plan.nodes if node.store is not None}
    for change in found:
        assert change.verdict in (Verdict.KEEP, Verdict.REBUILD)
        assert change.verdict is Verdict.KEEP or change.node == source
        if change.name in tables and change.kind == "store":
            assert (change.verdict is Verdict.REBUILD) == (tables[change.name] in behind)
