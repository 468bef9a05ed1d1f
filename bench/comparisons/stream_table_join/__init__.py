"""Stream-table join: joins each row of a stream with the version of its key that was valid at its event time."""

from __future__ import annotations

from bench.comparison import Comparison, Peer
from bench.workload import Workload

COMPARISON = Comparison(
    "stream_table_join",
    "Stream-table join",
    "A table's versions of 10,000 keys, then stream rows whose event times lie all over that history.",
    Workload(table=200_000),
    (
        Peer("vsc_versioned", "vsc: versioned stream-table join, state kept"),
        Peer("asof_join", "Spark's `ASOF JOIN`, stateless, static table", least=1.0),
        Peer("duckdb_asof", "DuckDB's `ASOF JOIN`, all files in one query, 2 threads"),
        Peer("polars_asof", "Polars' `join_asof`, all files in one query, 2 threads"),
        Peer(
            "record_by_record",
            "`transformWithState` by hand, record by record",
            least=15.0,
            few=Workload(table=200_000, batch=200_000, warm_up=1, measured=1),
        ),
        Peer(
            "key_by_key",
            "`transformWithState` by hand, the records of a key at once",
            few=Workload(table=200_000, warm_up=1, measured=1),
        ),
    ),
    rounds=3,
)
