"""vsc: the topology below, compiled and started as a user would.

The table is loaded by a run of its own, so that its history is there before the stream; then the stream's files are put
into its folder and the same checkpoint goes on. From there on every batch reads and keeps state.
"""

from __future__ import annotations

import os
from pathlib import Path

from bench.measuring import PARTITIONS, Measured, rate_of, session
from bench.workload import FILES_A_BATCH, Workload
from vsc.compiler import compile_topology
from vsc.runtime.spark import start

__all__ = ["measure"]

_TOPOLOGY = """
topology bench;
table rates (currency string, rate double, valid_at timestamp)
from files (path = '${folder}/rates', format = 'parquet')
key currency timestamp valid_at
materialize versioned (retention = 7 days);
stream payments (id bigint, currency string, amount double, paid_at timestamp)
from files (path = '${folder}/vsc-payments', format = 'parquet', 'maxFilesPerTrigger' = '${files}')
timestamp paid_at;
stream priced = left join payments with rates on currency select id, amount, paid_at, rates.rate as rate;
sink priced to noop ();
"""


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows a second over the measured batches of the stream."""
    spark = session("vsc")
    given = folder / "vsc-payments"
    given.mkdir(exist_ok=True)
    variables = {"folder": str(folder), "files": str(FILES_A_BATCH)}
    plan = compile_topology(_TOPOLOGY, path="bench.vdsl", variables=variables)
    checkpoint = str(folder / "vsc-checkpoint")
    start(plan, spark, checkpoint=checkpoint, variables=variables, partitions=PARTITIONS).awaitTermination()
    for file in sorted((folder / "payments").iterdir()):
        os.link(file, given / file.name)
    query = start(plan, spark, checkpoint=checkpoint, variables=variables, partitions=PARTITIONS)
    found = rate_of(query, workload.warm_up, workload.batch)
    spark.stop()
    return found
