"""What readers of the results see: the committed records of the topic ``priced``, the rows of the table ``totals``."""

from __future__ import annotations

import json
from decimal import Decimal

from confluent_kafka import Consumer, TopicPartition

from examples.payments_live.expected import Priced, Total
from servers.kafka import Broker
from servers.postgres import PostgresServer
from vsc.runtime.spark.connectors.kafka.client import quiet

__all__ = ["TOPIC", "Growth", "by_currency", "read_priced", "read_totals"]

TOPIC = "priced"
_SECONDS = 30


class Growth:
    """How far the topic has grown."""

    def __init__(self, broker: Broker) -> None:
        settings = {"bootstrap.servers": broker.address, "group.id": "live", "enable.auto.commit": False}
        self._reader = Consumer({**settings, "isolation.level": "read_committed"}, logger=quiet)
        self._ends = Consumer({**settings, "isolation.level": "read_uncommitted"}, logger=quiet)
        partitions = self._reader.list_topics(TOPIC, _SECONDS).topics[TOPIC].partitions
        self._places = [TopicPartition(TOPIC, number, 0) for number in partitions]
        self._reader.assign(self._places)
        self._committed = 0

    def appended(self) -> int:
        """The end of the topic, open transactions included."""
        return sum(self._ends.get_watermark_offsets(place, _SECONDS)[1] for place in self._places)

    def committed(self) -> int:
        """How many committed records have arrived here by now."""
        while messages := self._reader.consume(1000, 0):
            self._committed += sum(message.error() is None for message in messages)
        return self._committed

    def close(self) -> None:
        """Lets go of the broker."""
        self._reader.close()
        self._ends.close()


def read_priced(broker: Broker) -> list[tuple[str, Priced]]:
    """All committed records of the topic, each with the payment's id."""
    found = []
    for record in broker.read(TOPIC):
        value = json.loads(record.value or b"", parse_float=Decimal)
        found.append((value["id"], Priced((record.key or b"").decode(), value.get("rate"), value.get("usd"))))
    return found


def read_totals(server: PostgresServer) -> dict[tuple[str, int], Total]:
    """All rows of the table, by currency and beginning of the window in ms."""
    rows = server.query("select currency, extract(epoch from window_start) * 1000, payments, usd from totals")
    return {(currency, int(start)): Total(payments, usd) for currency, start, payments, usd in rows}


def by_currency(server: PostgresServer) -> list[tuple[str, int, Decimal | None]]:
    """Each currency's payments and dollars so far, the largest first; nothing before vsc has made the table."""
    if not server.query("select to_regclass('totals') is not null")[0][0]:
        return []
    statement = "select currency, sum(payments), sum(usd) from totals group by currency order by 3 desc nulls last, 1"
    return [(currency, int(payments), usd) for currency, payments, usd in server.query(statement)]
