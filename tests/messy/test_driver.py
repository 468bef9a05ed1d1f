"""The scenarios of messy files on the test driver; `tests/messy/test_spark.py` reads the files themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from vsc.scenario import Scenario, load, play

PATH = Path(__file__).parent / "messy.scenario.yaml"
SCENARIOS = load(str(PATH), PATH.read_text()).scenarios


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_of_messy_files(scenario: Scenario) -> None:
    assert play(scenario).wrong == ()
