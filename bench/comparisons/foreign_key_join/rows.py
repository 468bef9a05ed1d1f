"""Changes of ``orders`` (id, product, quantity, at) and ``products`` (product, price, at); event times advance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.workload import FILES_A_BATCH, KEYS, Workload, keys, stamps, write_file

__all__ = ["write"]

_ORDERS = 200_000
_SPAN_MS = 300_000
"""Event time from the start of one batch to the start of the next: five minutes."""


def write(folder: Path, workload: Workload) -> None:
    """Writes the files. A batch has `KEYS` changes of products, and the first batch has all products, unless the
    workload is too small for that."""
    rows = workload.batch // FILES_A_BATCH
    products = min(KEYS // FILES_A_BATCH, rows // 2)
    names = pa.array([f"key-{i:06d}" for i in range(KEYS)])
    ids = pa.array([f"order-{i:06d}" for i in range(_ORDERS)])
    for number in range(workload.batches * FILES_A_BATCH):
        rng = np.random.default_rng(100 + number)
        batch, begin = number // FILES_A_BATCH, number % FILES_A_BATCH * products
        changed = keys(products, rng) if batch else names[begin : begin + products]
        columns = {"product": changed, "price": rng.random(products), "at": _at(batch, products)}
        write_file(folder / "products", number, columns)
        count = rows - products
        order = ids.take(pa.array(rng.integers(0, _ORDERS, count)))
        columns = {"id": order, "product": keys(count, rng), "quantity": rng.integers(1, 9, count)}
        write_file(folder / "orders", number, columns | {"at": _at(batch, count)})


def _at(batch: int, count: int) -> pa.Array:
    return stamps(batch * _SPAN_MS + np.arange(count) * _SPAN_MS // count)
