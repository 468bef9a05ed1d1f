"""How many partitions a query would do with."""

from __future__ import annotations

from vsc.runtime.spark.exchange.counters import EpochReport, StateSize
from vsc.runtime.spark.report.scale import PARTITION_MS, Scale

GIB = 1 << 30


def report(epoch: int, **state: int) -> EpochReport:
    sizes = {place.replace("_", "-").removeprefix("p"): StateSize(bytes=size) for place, size in state.items()}
    return EpochReport(epoch=epoch, state=sizes)


def test_partitions_that_had_no_work_are_known_from_earlier_epochs() -> None:
    reports = [report(0, p1_0=5 * GIB, p1_1=2 * GIB, p2_0=1), report(1, p1_0=3 * GIB, p2_1=4)]
    assert Scale.of(reports, 2, 2, 4) == Scale(2, 2, 4, 5 * GIB, 3 * GIB)
    assert Scale.of([], 2, 2, 4) == Scale(2, 2, 4, 0, 0)


def test_more_partitions_are_advised_where_one_holds_too_much() -> None:
    scale = Scale(4, 2, 8, 8 * GIB, 2 * GIB)
    assert scale.enough == 16
    assert scale.seconds(16) == 16 * 2 * PARTITION_MS / 1000 / 8
    assert str(scale).startswith("4 partitions in 2 stages hold at most 2 GiB of state each, and add some")
    advice = scale.advice
    assert advice is not None and advice.startswith("16 partitions would hold 512 MiB each, and add 0.3 s to an epoch")
    assert "vsc upgrade --partitions 16" in advice


def test_nothing_is_advised_where_all_is_well() -> None:
    assert Scale(4, 1, 2, 3 << 20, 1 << 20).advice is None
    assert Scale(4, 1, 2, 4 * (512 << 20), 512 << 20).advice is None


def test_one_full_partition_among_empty_ones_is_told() -> None:
    advice = Scale(4, 1, 2, GIB, GIB - 1).advice
    assert advice is not None and advice.startswith("keys are spread unevenly")
