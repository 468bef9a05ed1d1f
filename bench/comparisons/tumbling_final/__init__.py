"""Tumbling windows, final results: rows counted and summed by key and minute, each window's result sent once."""

from __future__ import annotations

from bench.comparison import Comparison, Peer
from bench.workload import Workload

COMPARISON = Comparison(
    "tumbling_final",
    "Tumbling window, emit final",
    "Stream rows of 10,000 keys, up to 30 seconds out of order; a batch spans five windows of a minute. Count and sum "
    "by key and window, sent when the window has been closed for a minute.",
    Workload(),
    (
        Peer("vsc_windows", "vsc: `aggregate ... window tumbling (...) emit final`"),
        Peer("spark_windows", "Spark's `groupBy(window(...), key)`, watermark, append mode", least=0.3),
    ),
)
