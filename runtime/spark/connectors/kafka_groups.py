"""How far a query has read, in the consumer groups that its Kafka sources name: for lag monitors only.

Guarantees: a group never says more than what is written. vsc itself goes by its checkpoint, so a commit that fails is
told, and nothing else comes of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from vsc.plan.nodes import Plan, Source
from vsc.runtime.spark.connectors.kafka_client import client_settings, common, quiet
from vsc.runtime.spark.options import Options

__all__ = ["KafkaGroups"]

_log = logging.getLogger(__name__)


class KafkaGroups:
    """The groups of a resolved plan."""

    def __init__(self, resolved: Plan) -> None:
        found = {n.name: Options.of_source(n) for n in resolved.nodes if isinstance(n.operation, Source)}
        self._options = {n: o for n, o in found.items() if o.connector.kind == "kafka" and o.get("group") is not None}
        self._consumers: dict[str, Any] = {}

    def commit(self, ends: Mapping[str, Mapping[tuple[str, int], int]]) -> None:
        """Takes note, for each source, of the offsets that come next."""
        if not self._options:
            return
        from confluent_kafka import KafkaException, TopicPartition

        for name, options in self._options.items():
            places = [TopicPartition(topic, number, offset) for (topic, number), offset in ends.get(name, {}).items()]
            try:
                if places:
                    self._consumer(name).commit(offsets=places, asynchronous=False)
            except KafkaException as error:
                group, why = options.text("group"), error.args[0].str()
                _log.warning(f"{options.place}: Kafka did not take the offsets of group {group!r}: {why}")

    def _consumer(self, name: str) -> Any:
        from confluent_kafka import Consumer

        if name not in self._consumers:
            options = self._options[name]
            own = {"group.id": options.text("group"), "enable.auto.commit": False, "socket.timeout.ms": 10_000}
            self._consumers[name] = Consumer({**common(client_settings(options)), **own}, logger=quiet)
        return self._consumers[name]
