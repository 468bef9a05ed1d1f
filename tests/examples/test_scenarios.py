"""Each example has scenario files that hold on the test driver; for Spark: `tests/runtime/spark/query`."""

from __future__ import annotations

from pathlib import Path

import pytest

from vsc.scenario import load, play, report

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.parent for path in ROOT.glob("examples/*/topology.vdsl"))
FILES = sorted(ROOT.glob("examples/*/*.scenario.yaml"))


def test_the_examples_are_here() -> None:
    names = {folder.name for folder in EXAMPLES}
    assert names >= {"features", "flights", "fraud", "inventory", "orders", "payments", "prices", "revenue", "sensors"}


@pytest.mark.parametrize("folder", EXAMPLES, ids=[folder.name for folder in EXAMPLES])
def test_an_example_has_a_readme_data_and_a_scenario(folder: Path) -> None:
    assert (folder / "README.md").is_file()
    assert any(path.is_file() for path in (folder / "data").rglob("*"))
    assert list(folder.glob("*.scenario.yaml"))


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}-{path.name.partition('.')[0]}" for path in FILES])
def test_the_scenarios_of_an_example_hold(path: Path) -> None:
    outcomes = [play(scenario) for scenario in load(str(path), path.read_text()).scenarios]
    assert not any(outcome.wrong for outcome in outcomes), report.text(outcomes, color=False)
