"""vsc: the topology below, compiled and started as a user would."""

from __future__ import annotations

from pathlib import Path

from bench.measuring import Measured, measure_topology
from bench.workload import Workload

__all__ = ["measure"]

_TOPOLOGY = """
topology bench;
stream orders (id string, amount double, at timestamp)
from files (path = '${stream}/orders', format = 'parquet', 'maxFilesPerTrigger' = '${files}')
key id timestamp at;
stream payments (id string, paid double, at timestamp)
from files (path = '${stream}/payments', format = 'parquet', 'maxFilesPerTrigger' = '${files}')
key id timestamp at;
stream paid =
  join orders with payments within (before = 0 ms, after = 1 minute) grace 1 minute
  select amount, paid, amount - paid as open;
sink paid to noop ();
"""


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows of both streams a second over the measured batches."""
    return measure_topology(_TOPOLOGY, folder, ["orders", "payments"], workload)
