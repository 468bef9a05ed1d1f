"""vsc: the topology below, compiled and started as a user would. The stream already has the key to count by."""

from __future__ import annotations

from pathlib import Path

from bench.measuring import Measured, measure_topology
from bench.workload import Workload

__all__ = ["measure"]

_TOPOLOGY = """
topology bench;
stream payments (id bigint, currency string, amount double, paid_at timestamp)
from files (path = '${stream}/payments', format = 'parquet', 'maxFilesPerTrigger' = '${files}')
key currency timestamp paid_at;
table counted = aggregate payments group by currency select count(*) as payments;
sink counted to noop ();
"""


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows a second over the measured batches of the stream."""
    return measure_topology(_TOPOLOGY, folder, ["payments"], workload)
