"""Digests of sinks' rows: the same however they are cut and whoever read them, another one for any change."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Schema
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.spark.exchange.digest import ContentDigest, PartDigests

COLUMNS: dict[pa.DataType, list[Any]] = {
    pa.string(): ["a", None, "", "ab", "b"],
    pa.binary(): [b"a", None, b"", b"\0", b"b"],
    pa.int64(): [1, None, 0, -1, 2],
    pa.int8(): [1, None, 0, -1, 2],
    pa.float64(): [1.5, None, float("nan"), 0.0, 2.0],
    pa.bool_(): [True, None, False, True, False],
    pa.decimal128(12, 2): [Decimal("1.25"), None, Decimal(0), Decimal("-1"), Decimal("9999999999.99")],
    pa.date32(): [1, None, 0, 5, 6],
    pa.timestamp("us", "UTC"): [1, None, 0, 5, 6],
    pa.list_(pa.string()): [["a"], None, [], ["a", None], [None]],
    pa.map_(pa.string(), pa.int64()): [[("a", 1)], None, [], [("a", 1), ("b", None)], [("c", 0)]],
    pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))]): [
        {"a": 1, "b": [1]}, None, {"a": None, "b": None}, {"a": 0, "b": []}, {"a": 2, "b": [2, 3]},
    ],
    pa.null(): [None] * 5,
}  # fmt: skip


def batch(columns: list[pa.Array], origins: list[int] | None = None) -> Batch:
    n = len(columns[0])
    named = tuple(Origin("s", 0, f"file-{i}") for i in range(3))
    place = np.array(origins or [0] * n, dtype=np.int32)
    time = np.arange(n, dtype=np.int64)
    order = Order(time, place, time, np.zeros((n, 0), dtype=np.int64))
    return Batch(Schema((), ()), named, order, time * 10, time != 3, (), tuple(columns))


def digest(*batches: Batch) -> int:
    found = ContentDigest()
    for part in batches:
        found.update(part)
    return found.value()


def everything() -> list[pa.Array]:
    return [pa.array(values, type_) for type_, values in COLUMNS.items()]


def test_the_cut_does_not_show() -> None:
    whole = batch(everything())
    assert digest(whole) != 0
    for cuts in ([2], [1, 4], [0, 3, 3], [1, 2, 3, 4]):
        parts = [whole.take(np.arange(a, b)) for a, b in zip([0, *cuts], [*cuts, 5], strict=True)]
        assert digest(*parts) == digest(whole)
    assert digest() == digest(whole.take(np.arange(0))) == 0


def test_slices_and_what_lies_under_a_null_do_not_show() -> None:
    whole = batch(everything())
    doubled = [pa.concat_arrays([column, column]).slice(5) for column in everything()]
    assert digest(replace(whole, values=tuple(doubled))) == digest(whole)
    valid = pa.py_buffer(bytes([0b11101]))
    under = pa.Array.from_buffers(pa.int64(), 5, [valid, pa.array([1, 99, 0, -1, 2], pa.int64()).buffers()[1]])
    clean = pa.array([1, None, 0, -1, 2], pa.int64())
    assert under.equals(clean)
    assert digest(batch([under])) == digest(batch([clean]))
    _, offsets, data = pa.array(["a", "hidden", "", "ab", "b"]).buffers()
    under = pa.Array.from_buffers(pa.string(), 5, [valid, offsets, data])
    assert digest(batch([under])) == digest(batch([pa.array(["a", None, "", "ab", "b"])]))
    _, offsets, *_ = pa.array([[1], [99], [], [2], [3]]).buffers()
    under = pa.Array.from_buffers(pa.list_(pa.int64()), 5, [valid, offsets], children=[pa.array([1, 99, 2, 3])])
    assert digest(batch([under])) == digest(batch([pa.array([[1], None, [], [2], [3]])]))


def test_every_change_shows() -> None:
    seen = {digest(batch(everything()))}
    for at, (type_, values) in enumerate(COLUMNS.items()):
        if type_ == pa.null():
            continue
        for changed in (
            [values[4], *values[1:]],
            [None, *values[1:]],
            [values[0], values[2], *values[2:]],
            [*values[:3], values[4], values[3]],
        ):
            columns = everything()
            columns[at] = pa.array(changed, type_)
            seen.add(digest(batch(columns)))
    whole = batch(everything())
    seen.add(digest(replace(whole, timestamps=whole.timestamps + 1)))
    seen.add(digest(replace(whole, present=~whole.present)))
    seen.add(digest(whole.take(np.arange(4))))
    seen.add(digest(whole.take(np.array([1, 0, 2, 3, 4]))))
    assert len(seen) == 1 + 4 * (len(COLUMNS) - 1) + 4


def test_text_does_not_run_together() -> None:
    assert digest(batch([pa.array(["ab", "c"])])) != digest(batch([pa.array(["a", "bc"])]))


def test_by_origin_it_does_not_matter_which_task_read_which_file() -> None:
    column = pa.array(list("abcdef"))
    one_task = batch([column], [0, 0, 1, 1, 1, 2])
    parts = [one_task.take(np.arange(a, b)) for a, b in ((0, 1), (1, 4), (4, 6))]

    def of(*batches: Batch) -> int:
        found = PartDigests()
        for part in batches:
            found.update(part)
        return found.value()

    files = [one_task.take(np.arange(a, b)) for a, b in ((0, 2), (2, 5), (5, 6))]
    apart = sum(of(file) for file in files) % (1 << 128)
    assert of(one_task) == of(*parts) == of(files[2], files[0], files[1]) == apart
    in_order = ContentDigest()
    in_order.update(one_task)
    assert in_order.value() == digest(one_task) != apart
