"""Random topologies, their records cut into epochs and restarts at random: what one row at a time gives.

Set ``VSC_TOPOLOGIES`` to run more (``1000``) or others (``5000:5100``) than the usual few; the number is the seed.
``python -m tests.generated SEED`` shows one, with the fewest rows that fail.
"""

from __future__ import annotations

import pytest

from tests.generated.case import Case
from tests.generated.seeds import seeds
from vsc.runtime.operators import task


@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 20))
def test_cuts_restarts_and_engines_do_not_show(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "_ENOUGH", 1)  # whole columns wherever a stage can run on them
    case = Case.of(seed)
    assert not case.difference(case.epochs)
