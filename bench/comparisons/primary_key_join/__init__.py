"""Primary-key join: two tables with the same key; both change all the time."""

from __future__ import annotations

from bench.comparison import Comparison, Peer
from bench.workload import Workload

COMPARISON = Comparison(
    "primary_key_join",
    "Primary-key join of tables",
    "Changes of two tables of the same 10,000 keys, as many of the one as of the other; each gives a result as soon as "
    "both have a row.",
    Workload(),
    (
        Peer("vsc_tables", "vsc: `join` of two tables"),
        Peer("handwritten", "`transformWithState` by hand", least=5.0, few=Workload(warm_up=1, measured=1)),
    ),
)
