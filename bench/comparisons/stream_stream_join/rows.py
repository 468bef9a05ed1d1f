"""Two streams (``orders`` and ``payments``): every order has an id of its own, every payment that of an order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.workload import FILES_A_BATCH, Workload, stamps, write_file

__all__ = ["write"]

_SPAN_MS = 300_000
"""Event time from the start of one batch to the start of the next: five minutes."""
_APART_MS = 60_000
"""How long after its order a payment is, at most."""


def write(folder: Path, workload: Workload) -> None:
    """Writes the files: half of a batch is orders (id, amount, at), half payments (id, paid, at), both by their times.

    An order's payment is in the same batch, or in the next one.
    """
    count = workload.batch // FILES_A_BATCH // 2
    for number in range(workload.batches * FILES_A_BATCH):
        rng = np.random.default_rng(100 + number)
        batch, part = divmod(number, FILES_A_BATCH)
        at = batch * _SPAN_MS + np.arange(count) * _SPAN_MS // count
        first = batch * count * FILES_A_BATCH + part
        order = np.maximum(np.arange(count) - rng.integers(0, count * _APART_MS // _SPAN_MS, count), -batch * count)
        for name, places, column in (("orders", np.arange(count), "amount"), ("payments", order, "paid")):
            ids = pa.array([f"order-{i:09d}" for i in (first + places * FILES_A_BATCH).tolist()])
            write_file(folder / name, number, {"id": ids, column: rng.random(count), "at": stamps(at)})
