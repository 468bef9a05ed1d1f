"""The stream-table join with one file a batch: for every peer, a single task reads."""

from __future__ import annotations

from bench.comparison import Comparison, Peer
from bench.workload import Workload

COMPARISON = Comparison(
    "stream_table_join_one_file",
    "Stream-table join, one file a batch",
    "As before, but each batch of the stream is one file, which one task reads.",
    Workload(table=200_000, files=1),
    (
        Peer("vsc_versioned", "vsc: versioned stream-table join, state kept"),
        Peer("asof_join", "Spark's `ASOF JOIN`, stateless, static table", least=1.0),
    ),
    rounds=3,
)
