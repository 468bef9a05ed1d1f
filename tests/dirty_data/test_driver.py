"""The scenarios of dirty files on the test driver; `tests/dirty_data/test_spark.py` reads the files themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from vsc.scenario import Scenario, load, play

PATH = Path(__file__).parent / "dirty_data.scenario.yaml"
SCENARIOS = load(str(PATH), PATH.read_text()).scenarios


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_of_dirty_files(scenario: Scenario) -> None:
    assert play(scenario).wrong == ()
