"""vsc: the topology below, compiled and started as a user would."""

from __future__ import annotations

from pathlib import Path

from bench.measuring import Measured, measure_topology
from bench.workload import Workload

__all__ = ["measure", "topology"]
_FILES = "format = 'parquet', 'maxFilesPerTrigger' = '${files}'"


def topology(reading: str) -> str:
    """A left join of a stream, read from ``${stream}/payments`` by these options, with a versioned table."""
    return f"""
topology bench;
table rates (currency string, rate double, valid_at timestamp)
from files (path = '${{folder}}/rates', format = 'parquet')
key currency timestamp valid_at
materialize versioned (retention = 7 days);
stream payments (id bigint, currency string, amount double, paid_at timestamp)
from files (path = '${{stream}}/payments', {reading})
timestamp paid_at;
stream priced = left join payments with rates on currency select id, amount, paid_at, rates.rate as rate;
sink priced to noop ();
"""


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows a second over the measured batches of the stream."""
    return measure_topology(topology(_FILES), folder, ["payments"], workload)
