"""Who takes what an operator sends on."""

from __future__ import annotations

from collections.abc import Callable

from vsc.runtime.operators.evaluate import Row

__all__ = ["RecordConsumer"]

RecordConsumer = Callable[[bytes, Row, "Row | None", int], None]
"""Takes a stream's record: encoded key, key columns, value columns (None: no value), event time in ms."""
