"""vsc: the topology below, compiled and started as a user would."""

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
table totals =
  aggregate payments group by currency window tumbling (size = 1 minute, grace = 1 minute) emit final
  select count(*) as payments, sum(amount) as amount;
sink totals to noop ();
"""


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows a second over the measured batches of the stream."""
    return measure_topology(_TOPOLOGY, folder, ["payments"], workload)
