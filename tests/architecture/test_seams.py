"""What `make test` shows: each seam is marked on a test, and the share of a file is its own."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from tests.seams import SEAMS, shown
from tests.shares import costs, deal, share, share_of
from tests.supported import SEAMS as SUPPORTED
from vsc.compiler import TopologyError, compile_topology
from vsc.plan import operations
from vsc.plan.facts import Facts
from vsc.plan.nodes import Node

ROOT = Path(__file__).parents[2]
SHARES = 8


def test_each_seam_is_shown_by_a_test_and_each_marker_names_one() -> None:
    """A new connector adds its seams by itself: mark the shortest test that reads from it, and one that writes."""
    supported = {seam for seams in SUPPORTED.values() for seam in seams}
    assert {seam for seam, _ in shown()} == set(SEAMS) | supported


def test_each_operator_is_run_on_spark() -> None:
    """In an example of the README, or in the topology of a file with such a test."""
    texts = [(ROOT / f"examples/{name}/topology.vdsl").read_text(encoding="utf-8") for name in ("flights", "payments")]
    for path in {ROOT / place.partition("::")[0] for _, place in shown() if "/spark/" in place}:
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                texts.append(str(statement.value.value))
    run = {type(node.operation) for text in texts for node in nodes_of(text)}
    operators = {one for one in vars(operations).values() if isinstance(one, type) and issubclass(one, Facts)}
    assert {one.__name__ for one in operators - run - {Facts}} == set()


def nodes_of(text: str) -> tuple[Node, ...]:
    """The nodes of a topology; none if the text is not one by itself."""
    try:
        return compile_topology(text, path="test.vdsl").nodes if "sink " in text else ()
    except TopologyError:
        return ()


def test_shares_are_of_about_equal_cost_and_every_file_is_in_one() -> None:
    known = costs()
    dealt = deal(known, SHARES)
    assert dealt.keys() == known.keys()
    totals = [sum(cost for path, cost in known.items() if dealt[path] == number) for number in range(1, SHARES + 1)]
    assert max(totals) <= max(1.2 * sum(totals) / SHARES, *known.values())
    assert {share_of(f"tests/new/test_{n}.py", dealt, SHARES) for n in range(200)} == set(range(1, SHARES + 1))


def test_a_file_stays_in_its_share_when_others_come() -> None:
    dealt = deal(costs(), SHARES)
    chosen = random.Random(1).sample(sorted(dealt), 20)
    assert [share_of(path, dealt, SHARES) for path in chosen] == [dealt[path] for path in chosen]
    assert share_of("tests/new/test_a.py", dealt, SHARES) == share_of("tests/new/test_a.py", {}, SHARES)


@pytest.mark.parametrize("text", ["0/8", "9/8", "3", "a/b", "3/"])
def test_a_share_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="such as 3/8"):
        share(text)


def test_a_share_is_read() -> None:
    assert share("3/8") == (3, 8)
