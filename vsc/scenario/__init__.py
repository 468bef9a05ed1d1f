"""Scenario files: what goes into a topology, step by step, and what has to come out.

`load` reads a file and checks it against its topology, `play` runs a scenario on the test driver, `report` shows the
outcome, `accepted` writes it into the file, `disordered` looks for an order of arrival on which it depends. Not for
measuring, and not for Spark: only the project's own tests run the same files there.
"""

from vsc.scenario.accept import accepted
from vsc.scenario.disorder import disordered
from vsc.scenario.document import ScenarioError
from vsc.scenario.loader import RefusedTopology, load, paths_read
from vsc.scenario.model import Scenario, ScenarioFile, Step
from vsc.scenario.player import Outcome, play

__all__ = [
    "Outcome",
    "RefusedTopology",
    "Scenario",
    "ScenarioError",
    "ScenarioFile",
    "Step",
    "accepted",
    "disordered",
    "load",
    "paths_read",
    "play",
]
