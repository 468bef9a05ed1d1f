"""Changes of two tables (``orders`` and ``payments``): id, a number, and the time of the change, which advances."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.workload import FILES_A_BATCH, Workload, keys, stamps, write_file

__all__ = ["write"]

_SPAN_MS = 300_000
"""Event time from the start of one batch to the start of the next: five minutes."""


def write(folder: Path, workload: Workload) -> None:
    """Writes the files: half of a batch is orders (id, amount, at), half payments (id, paid, at)."""
    count = workload.batch // FILES_A_BATCH // 2
    for number in range(workload.batches * FILES_A_BATCH):
        rng = np.random.default_rng(100 + number)
        for name, column in (("orders", "amount"), ("payments", "paid")):
            at = number // FILES_A_BATCH * _SPAN_MS + np.arange(count) * _SPAN_MS // count
            write_file(folder / name, number, {"id": keys(count, rng), column: rng.random(count), "at": stamps(at)})
