"""Facts of connectors that need no other system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vsc.plan.connectors.facts import MAX_AHEAD, WITH_TIMESTAMP, ConnectorFacts, OptionSpec, Wrong
from vsc.plan.connectors.spark_values import wrong_age
from vsc.plan.types import BIGINT, TIMESTAMP, DataType

__all__ = ["ConsoleFacts", "MemoryFacts", "NoopFacts", "RateFacts"]


class RateFacts(ConnectorFacts):
    """Numbered rows, as time passes."""

    kind = "rate"
    options: ClassVar[Mapping[str, OptionSpec]] = {
        "rows_per_second": OptionSpec("whole number", "10"),
        "max_ahead": MAX_AHEAD,
    }
    required = ("rows_per_second",)
    roles = ("source",)
    main = "rows_per_second"
    own_names: ClassVar[Mapping[str, str]] = {"rowspersecond": "rows_per_second"}
    provides: ClassVar[Mapping[str, DataType]] = {"value": BIGINT, "at": TIMESTAMP}

    def wrong_word(self, name: str, value: str) -> Wrong:
        """How long it takes to come to its rate."""
        return wrong_age(name, value) if name.lower() == "rampuptime" else None


class ConsoleFacts(ConnectorFacts):
    """The terminal."""

    kind = "console"
    options: ClassVar[Mapping[str, OptionSpec]] = {"with_timestamp": WITH_TIMESTAMP}
    roles = ("sink",)
    stream_sink_only = ("with_timestamp",)
    takes_spark = False


class NoopFacts(ConnectorFacts):
    """Nowhere."""

    kind = "noop"
    roles = ("sink",)
    takes_spark = False


class MemoryFacts(ConnectorFacts):
    """Rows of a test."""

    kind = "memory"
    options: ClassVar[Mapping[str, OptionSpec]] = {"max_ahead": MAX_AHEAD}
    source_only = ("max_ahead",)
    takes_spark = False
    removes = True
