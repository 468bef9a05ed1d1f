"""Join of two streams: each payment meets its order, at most a minute before it."""

from __future__ import annotations

from bench.comparison import Comparison, Peer
from bench.workload import Workload

COMPARISON = Comparison(
    "stream_stream_join",
    "Join of two streams",
    "As many orders as payments. Each order has a key of its own; each payment is of an order at most a minute before "
    "it. Rows may be a minute late.",
    Workload(),
    (
        Peer("vsc_streams", "vsc: `join ... within (...) grace ...`"),
        Peer("spark_streams", "Spark's inner join of streams by key and times, two watermarks", least=2.0),
    ),
)
