"""Count by key: a stream's rows counted by its key, every new count sent on."""

from __future__ import annotations

from bench.comparison import Comparison, Peer
from bench.workload import Workload

COMPARISON = Comparison(
    "count_by_key",
    "Count by key",
    "Stream rows of 10,000 keys, counted by key. vsc gives a change of the count for every row, Spark one for each key "
    "of a batch.",
    Workload(),
    (
        Peer("vsc_aggregate", "vsc: `aggregate ... group by`, a change for every row"),
        Peer("spark_aggregate", "Spark's `groupBy(key).count()`, update mode", least=0.3),
    ),
)
