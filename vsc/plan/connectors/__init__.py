"""The connectors by kind, with their facts: a file for each system."""

from __future__ import annotations

from collections.abc import Mapping

from vsc.plan.connectors.builtin import ConsoleFacts, MemoryFacts, NoopFacts, RateFacts
from vsc.plan.connectors.facts import ConnectorFacts
from vsc.plan.connectors.files import FilesFacts
from vsc.plan.connectors.kafka import KafkaFacts
from vsc.plan.connectors.lake import DeltaFacts, IcebergFacts
from vsc.plan.connectors.postgres import PostgresFacts

__all__ = ["FACTS", "facts_of"]

FACTS: Mapping[str, ConnectorFacts] = {
    facts.kind: facts
    for facts in (
        FilesFacts(), KafkaFacts(), DeltaFacts(), IcebergFacts(), PostgresFacts(), RateFacts(), ConsoleFacts(),
        NoopFacts(), MemoryFacts(),
    )
}  # fmt: skip
"""In the order in which messages list them."""

_UNKNOWN = ConnectorFacts()


def facts_of(kind: str) -> ConnectorFacts:
    """The facts of a kind; the defaults for an unknown one, as a plan of a later version may have."""
    return FACTS.get(kind, _UNKNOWN)
