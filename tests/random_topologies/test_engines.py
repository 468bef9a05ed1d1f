"""Random topologies over large batches: what is shipped gives what the oracle gives, whatever the keys and the times.

Keys of every type, one of them hot, null values, equal times, late records, expressions that fail on some rows
(dropped, or ending the run), branches with other keys. Which seeds: as for `test_cuts`, with ``VSC_TOPOLOGIES``.
"""

from __future__ import annotations

import pytest

from tests.random_topologies.case import Case
from tests.random_topologies.seeds import seeds

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 4))
def test_the_engines_agree_on_large_batches(seed: int) -> None:
    case = Case.of(seed, large=True)
    assert not case.difference(case.epochs)
