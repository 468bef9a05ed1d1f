"""Whether the parts of a plan fit together: what the compiler makes does. Mistakes are in `test_codec`, as JSON."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.random_topologies.topology import generate
from vsc.compiler import compile_topology
from vsc.plan.checking import first_mistake

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/topology.vdsl"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_plan_of_an_example_has_no_mistake(path: Path) -> None:
    assert first_mistake(compile_topology(path.read_text(), path=str(path), variables={})) is None


def test_the_plans_of_random_topologies_have_no_mistake() -> None:
    texts = [generate(random.Random(seed)).text() for seed in range(40)]
    assert [first_mistake(compile_topology(text, path="random.vdsl", variables={})) for text in texts] == [None] * 40
