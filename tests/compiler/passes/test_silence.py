"""What is meant gets no warning: examples, documents, golden files and random topologies have none that is not true."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.random_topologies.seeds import seeds
from tests.random_topologies.topology import generate
from vsc.compiler import check_topology

ROOT = Path(__file__).parents[3]
TRUE = {"tests/golden/stages.vdsl": {"VSC345"}}
"""An inner join after a left join: orders without a customer have no city."""
NEVER_GENERATED = {"VSC333", "VSC341", "VSC342", "VSC343", "VSC344"}
"""Random expressions have nulls, texts under `try_cast` that are not numbers, and comparisons of a column with itself;
random joins follow left joins: what is said of them is true."""
FILES = [
    *(ROOT / "examples").glob("*/*.vdsl"), *(ROOT / "tests" / "golden").glob("*.vdsl"), *ROOT.glob("*.md"),
    *(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "diagnostics"),
]  # fmt: skip


def doubts(text: str) -> set[str]:
    return {d.code for d in check_topology(text) if d.code.startswith(("VSC33", "VSC34"))}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_we_show_is_meant(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    blocks = [text] if path.suffix == ".vdsl" else re.findall(r"^```vdsl\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found = set[str]().union(*map(doubts, blocks))
    assert found == TRUE.get(str(path.relative_to(ROOT)), set())


@pytest.mark.slow
def test_random_topologies_are_not_doubted() -> None:
    for seed in seeds("VSC_TOPOLOGIES", 150):
        assert not doubts(generate(random.Random(seed)).text()) & NEVER_GENERATED, seed
