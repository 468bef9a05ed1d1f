"""Foreign-key join: each order refers to a product; both tables change all the time."""

from __future__ import annotations

from bench.comparison import Comparison, Peer
from bench.workload import Workload

COMPARISON = Comparison(
    "foreign_key_join",
    "Foreign-key join of tables",
    "Changes of 200,000 orders, each of one of 10,000 products; an order often comes to another product. One change in "
    "forty is of a product, and gives a result for each of its orders, about twenty.",
    Workload(),
    (
        Peer("vsc_tables", "vsc: `join ... on`"),
        Peer("handwritten", "two chained `transformWithState` by hand", least=5.0, few=Workload(warm_up=1, measured=1)),
    ),
)
