"""vsc: the topology below, compiled and started as a user would."""

from __future__ import annotations

from pathlib import Path

from bench.measuring import Measured, measure_topology
from bench.workload import Workload

__all__ = ["measure"]

_TOPOLOGY = """
topology bench;
table orders (id string, product string, quantity bigint, at timestamp)
from files (path = '${stream}/orders', format = 'parquet', 'maxFilesPerTrigger' = '${files}')
key id timestamp at;
table products (product string, price double, at timestamp)
from files (path = '${stream}/products', format = 'parquet', 'maxFilesPerTrigger' = '${files}')
key product timestamp at;
table priced = join orders with products on orders.product select quantity, price, quantity * price as total;
sink priced to noop ();
"""


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows of both tables a second over the measured batches."""
    return measure_topology(_TOPOLOGY, folder, ["orders", "products"], workload)
