"""A table's history (``rates``), then a stream with event times spread over all of it (``payments``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.workload import FILES_A_BATCH, Workload, keys, stamps, write_file

__all__ = ["write"]

_SPAN_MS = 100_000_000
"""The span of the table's history in ms, a little more than a day."""


def write(folder: Path, workload: Workload) -> None:
    """Writes the versions in order of event time (currency, rate, valid_at), and the stream (id, currency, ...)."""
    rng = np.random.default_rng(1)
    count = workload.table // FILES_A_BATCH
    times = np.sort(rng.integers(0, _SPAN_MS, count * FILES_A_BATCH))
    for number in range(FILES_A_BATCH):
        at = times[number * count : (number + 1) * count]
        columns = {"currency": keys(count, rng), "rate": rng.random(count), "valid_at": stamps(at)}
        write_file(folder / "rates", number, columns)
    count = workload.batch // workload.files
    for number in range(workload.batches * workload.files):
        rng = np.random.default_rng(100 + number)
        at, ids = rng.integers(0, _SPAN_MS, count), np.arange(number * count, (number + 1) * count)
        columns = {"id": ids, "currency": keys(count, rng), "amount": rng.random(count), "paid_at": stamps(at)}
        write_file(folder / "payments", number, columns)
