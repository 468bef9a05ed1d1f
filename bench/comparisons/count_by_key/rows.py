"""A stream (``payments``): id, currency, amount, paid_at. Event times advance, a little out of order."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.workload import FILES_A_BATCH, Workload, keys, stamps, write_file

__all__ = ["LATE_MS", "write"]

_SPAN_MS = 300_000
"""Event time from the start of one batch to the start of the next: five minutes."""
LATE_MS = 30_000
"""A row is at most this far behind the newest row before it."""


def write(folder: Path, workload: Workload) -> None:
    """Writes the files. All files of a batch cover the same span, as partitions of a topic do."""
    count = workload.batch // FILES_A_BATCH
    for number in range(workload.batches * FILES_A_BATCH):
        rng = np.random.default_rng(100 + number)
        steps = np.arange(count) * _SPAN_MS // count - rng.integers(0, LATE_MS, count)
        at = LATE_MS + number // FILES_A_BATCH * _SPAN_MS + steps
        ids = np.arange(number * count, (number + 1) * count)
        columns = {"id": ids, "currency": keys(count, rng), "amount": rng.random(count), "paid_at": stamps(at)}
        write_file(folder / "payments", number, columns)
