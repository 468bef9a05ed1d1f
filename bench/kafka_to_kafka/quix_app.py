"""Quix Streams' as-of join, for a Python that has quixstreams. Arguments: brokers, prefix, folder, retention in ms."""

from __future__ import annotations

import sys

from quixstreams import Application  # type: ignore[import-not-found]


def main() -> None:
    """Joins until it is killed."""
    brokers, prefix, folder, retention = sys.argv[1:]
    app = Application(brokers, consumer_group=f"{prefix}app", auto_offset_reset="earliest", state_dir=folder)
    payments = app.dataframe(app.topic(f"{prefix}payments", key_deserializer="str"))
    rates = app.dataframe(app.topic(f"{prefix}rates", key_deserializer="str"))
    joined = payments.join_asof(rates, how="left", on_merge="keep-left", grace_ms=int(retention))
    joined.to_topic(app.topic(f"{prefix}priced", key_serializer="str"))
    app.run()


main()
