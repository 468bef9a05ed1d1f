"""Whether a partition's state had to be restored is counted. No Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.runtime.spark.one_stage import OneStage
from tests.runtime.spark.support import compiled
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.pace import Pace
from vsc.runtime.spark.exchange.wire import CONTROL

TOPOLOGY = """
stream s (id bigint) from memory () key id;
table counts = aggregate s group by id select count(*) as n;
sink counts to noop ();
"""


def test_a_partition_is_restored_when_the_executor_does_not_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = compiled(TOPOLOGY)
    stage = OneStage(plan, tmp_path, monkeypatch)

    def epoch(number: int) -> int:
        ids = np.array([number], dtype=np.int64)
        order = Order(ids, np.zeros(1, np.int32), ids, np.zeros((1, 0), np.int64))
        batch = Batch(
            plan.node("s").schema, (Origin("s", 0, "f"),), order, ids, np.ones(1, np.bool_), (pa.array(ids),), ()
        )
        frames = list(stage.call([("s", batch)], Pace({}, {})))
        (told,) = [p for f in frames for p in f["payload"][f["dest"] == CONTROL]]
        assert json.loads(told)["state"]["blobs"] > 0
        return EpochReport.gather(number, [told]).restored

    assert [epoch(0), epoch(1)] == [0, 0]
    shutil.rmtree(stage.local)
    assert [epoch(2), epoch(3)] == [1, 0]
