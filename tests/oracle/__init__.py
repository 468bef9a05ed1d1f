"""What is shipped against what defines it: `oracle(plan, epochs)` and `shipped(plan, epochs)` have to be equal.

The oracle (`records`) takes records one by one and keeps plain lists and dictionaries; it is written to be read, and
imports nothing of the operators and the stores. What is shipped takes an epoch at once, on whole columns. Both say what
came out, what was counted, what lies in the state, and which engine really ran: they look at the engines themselves,
and fail if the wrong one was at work. So a test that compares the two never compares records with records without
saying so (`Played.ran`).

The oracle has Kafka's clock (D25, ``records``), so both have it here, whatever the plan says. That of the input has an
oracle of its own, `by_input`, which lets the same operators go by that clock; `tests.random_topologies.partitions`
compares with it.

Tests use nothing else of the engines: `engines` is the one place to change when an engine changes.
"""

from tests.oracle.engines import Ran, by_records
from tests.oracle.playing import Deleted, Played, by_key, chunks, difference, oracle, shipped
from tests.oracle.stores import Stores

__all__ = ["Deleted", "Played", "Ran", "Stores", "by_key", "by_records", "chunks", "difference", "oracle", "shipped"]
