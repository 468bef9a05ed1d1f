"""Random topologies, their records cut into epochs and restarts at random: what one row at a time gives.

What is shipped runs on whole columns wherever it can, the oracle record by record (`tests.oracle`). Set
``VSC_TOPOLOGIES`` to run more (``1000``) or others (``5000:5100``) than the usual few; the number is the seed.
``python -m tests.generated SEED`` shows one, with the fewest rows that fail.
"""

from __future__ import annotations

import pytest

from tests.generated.case import Case
from tests.generated.seeds import seeds


@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 20))
def test_cuts_restarts_and_engines_do_not_show(seed: int) -> None:
    case = Case.of(seed)
    assert not case.difference(case.epochs)
