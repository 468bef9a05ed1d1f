"""Random topologies, their records cut into epochs and restarts at random: what one row at a time gives.

What is shipped runs on whole columns, the oracle record by record (`tests.oracle`). Set
``VSC_TOPOLOGIES`` to run more (``1000``) or others (``5000:5100``) than the usual few; the number is the seed.
``python -m tests.random_topologies SEED`` shows one, with the fewest rows that fail.
"""

from __future__ import annotations

import pytest

from tests.oracle import shipped
from tests.oracle.epochs import order_epoch
from tests.random_topologies.case import Case
from tests.random_topologies.seeds import seeds

pytestmark = pytest.mark.long


@pytest.mark.quick(8)
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 20))
def test_cuts_restarts_and_engines_do_not_show(seed: int) -> None:
    case = Case.of(seed)
    assert not case.difference(case.epochs)


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 5))
def test_every_byte_of_the_state_is_the_same_however_the_records_are_cut(seed: int) -> None:
    case = Case.of(seed)
    one_by_one = [[row] for epoch in case.epochs for row in order_epoch(case.plan, epoch)]
    cut, single = case.shipped(case.epochs), shipped(case.plan, one_by_one, case.topology.sinks, case.partitions)
    assert cut.stores.bytes_kept(case.plan) == single.stores.bytes_kept(case.plan)
