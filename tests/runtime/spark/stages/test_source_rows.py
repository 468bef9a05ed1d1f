"""What a source task makes of the rows that a connector hands it, whichever that is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.runtime.spark.support import compiled
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.records import Batch
from vsc.runtime.spark.exchange.wire import SINK
from vsc.runtime.spark.formats.source_columns import PART
from vsc.runtime.spark.stages.stage_zero import StageZeroTask

ROWS = "stream s (id bigint, v string, at timestamp) from {} key id timestamp at; sink s to noop ();"
AT = datetime(2026, 1, 5, tzinfo=UTC)


def records(connector: str, times: pa.Array) -> list[tuple[Any, ...]]:
    """What comes of rows with these times, all of them in one file of a folder `v=folder`."""
    plan = compiled(ROWS.format(connector))
    count = len(times)
    read = pa.record_batch({
        "_vsc_column_0": pa.array(range(count), pa.int64()), "_vsc_column_1": ["row"] * count, "_vsc_column_2": times,
        PART: ["file:/lake/v=folder/table/part-0.parquet"] * count,
    })  # fmt: skip
    found: list[tuple[Any, ...]] = []
    for batch in StageZeroTask(plan, "s", 1, RunOptions())([read]):
        for dest, payload in zip(batch.column("dest").to_pylist(), batch.column("payload").to_pylist(), strict=True):
            if dest == SINK:
                blob = Batch.from_ipc(payload, plan.node("s").schema)
                found += zip(*(column.to_pylist() for column in (*blob.keys, *blob.values)), strict=True)
    return found


@pytest.mark.parametrize(
    ("connector", "value"),
    [
        ("files (path = 'x', format = 'parquet')", "folder"),
        ("delta (path = 'x')", "row"),
        ("iceberg (path = 'x')", "row"),
        ("jdbc (url = 'jdbc:postgresql://h/d', table = 't')", "row"),
    ],
)
def test_only_files_have_columns_in_the_names_of_their_folders(connector: str, value: str) -> None:
    """The others know their columns: their files may lie in any folder, those of a snapshot in the checkpoint's."""
    assert records(connector, pa.array([AT], pa.timestamp("us", "UTC"))) == [(0, value, AT)]


def test_a_time_that_is_not_in_the_years_1_to_9999_cannot_be_read() -> None:
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    times = pa.array(np.array([last + 1, 0, last, first - 1])).view(pa.timestamp("us", "UTC"))
    found = records("delta (path = 'x')", times)
    assert [row[0] for row in found] == [1, 2]
