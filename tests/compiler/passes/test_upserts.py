"""Which streams may have records without a key, told from the text (VSC520) as the plan tells it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.random_topologies.topology import Sizes, generate
from vsc.compiler import check_topology, compile_topology
from vsc.plan.keyless import nullable_keys
from vsc.plan.nodes import Sink
from vsc.plan.parts import Connector


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(0, 10), range(10, 40), range(40, 80)])
def test_the_text_and_the_plan_agree(seeds: range) -> None:
    told, keyless = 0, 0
    for seed in seeds:
        text = generate(random.Random(seed), Sizes(derived=(6, 12))).text()
        plan = compile_topology(text)
        for node in plan.nodes:
            if node.kind == "stream" and node.part_of is None:
                sink = f"\nsink {node.name} to delta (path = 'here', mode = 'upsert');"
                found = any(one.code == "VSC520" for one in check_topology(text + sink))
                upsert = Sink("sink-u", node.name, Connector("delta", (("path", "here"), ("mode", "upsert"))), 1)
                nullable = nullable_keys(replace(plan, sinks=(*plan.sinks, upsert)))
                assert found is (not node.schema.key or bool(nullable[node.name])), (seed, node.name, text)
                told, keyless = told + 1, keyless + found
    assert told > keyless > 5
