"""Lists inside of lists as a JVM sends them, which leaves out the offsets of those that are not there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from vsc.runtime.spark.stages.stage_zero import _sound


@pytest.mark.parametrize("offsets", [b"", np.array([7, 7], dtype="<i4").tobytes()], ids=["none", "anything"])
def test_offsets_of_no_lists_are_not_read(offsets: bytes) -> None:
    """Read, they end the process: by a negative size, or far outside."""
    inner = pa.list_(pa.int32())
    none = pa.Array.from_buffers(inner, 0, [None, pa.py_buffer(offsets)], children=[pa.array([], pa.int32())])
    lists = pa.ListArray.from_arrays(pa.array([0, 0], pa.int32()), none)
    maps = pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["k"]), lists)
    columns = {"flat": pa.array([1]), "lists": lists, "structs": pa.StructArray.from_arrays([lists], ["a"]),
               "maps": maps}  # fmt: skip
    given = pa.RecordBatch.from_pydict(columns)
    rows = _sound(given)
    assert rows.to_pylist() == [{"flat": 1, "lists": [], "structs": {"a": []}, "maps": [("k", [])]}]
    for found in (rows["lists"], rows["structs"].field(0), rows["maps"].items):
        assert len(found.flatten().flatten()) == 0
    assert rows.nbytes < 200
    assert rows["flat"].buffers()[1].address == given["flat"].buffers()[1].address


def test_rows_in_their_places() -> None:
    values = [[[1, None], [], None], None, [], [[2]]]
    given = pa.RecordBatch.from_pydict({"x": pa.array(values, pa.list_(pa.list_(pa.int64())))})
    assert _sound(given.slice(1, 3))["x"].to_pylist() == values[1:]
