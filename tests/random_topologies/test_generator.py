"""The generator: what it makes is valid, covers the language, and means enough records to be worth a run."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.oracle import oracle
from tests.random_topologies.records import history
from tests.random_topologies.topology import Sizes, generate
from vsc.compiler import compile_topology
from vsc.plan.keyless import nullable_keys

MANY = 250


@pytest.mark.slow
def test_every_topology_compiles_and_all_of_the_language_comes_up() -> None:
    seen: Counter[str] = Counter()
    for seed in range(MANY):
        plan = compile_topology(generate(random.Random(seed), Sizes(ordered=2)).text(), path=f"{seed}.vdsl")
        nullable = nullable_keys(plan)
        for node in plan.nodes:
            if any(nullable[name] for name in node.taken):
                seen[f"without key, needed {node.operation.needs_key}"] += 1
            seen[node.operation.op] += 1
            window = getattr(node.operation, "window", None)
            seen[f"{window.kind}, final {node.operation.final}" if window else "none"] += 1  # type: ignore[union-attr]
            seen["versioned" if node.status and node.status.versioned else "unversioned"] += 1
            for clause in ("grace", "max_age", "strictly_before", "drop_older"):
                seen[clause] += getattr(node.operation, clause, None) not in (None, False)
            if node.operation.op == "map":
                seen["another event time"] += node.operation.timestamp is not None
    rare = {name: count for name, count in seen.items() if count < 3}
    assert not rare
    assert len(seen) == 20 + 8 + 2 + 2 + 6, sorted(seen)


def test_the_same_seed_gives_the_same() -> None:
    one, other = (random.Random(7) for _ in range(2))
    assert generate(one) == generate(other)
    assert history(one, generate(one)) == history(other, generate(other))


@pytest.mark.slow
def test_most_sinks_get_records() -> None:
    written = silent = 0
    for seed in range(30):
        rng = random.Random(seed)
        topology = generate(rng)
        plan = compile_topology(topology.text(), path=f"{seed}.vdsl")
        found = oracle(plan, history(rng, topology), topology.sinks).outcome
        written += len(found)
        silent += len(set(topology.sinks) - found.keys())
    assert silent < written / 3
