"""The subjects of a registry: what the schemas of a topic's keys and values are registered under."""

from __future__ import annotations

from typing import Literal

from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import Part

__all__ = ["by_topic", "record_name", "subject"]


def subject(options: Options, part: Literal["key", "value"], record: str) -> str:
    """The subject of a part, whose records are called `record`. The strategy is for values: keys go by their topic."""
    topic, strategy = options.text("topic"), options.get("subject_name_strategy")
    if part == "key" or strategy in (None, "topic"):
        return f"{topic}-{part}"
    return record if strategy == "record" else f"{topic}-{record}"


def by_topic(options: Options, part: Literal["key", "value"]) -> bool:
    """Whether the subject of a part is known without its records."""
    return part == "key" or options.get("subject_name_strategy") in (None, "topic")


def record_name(options: Options, part: Part) -> str | None:
    """What a sink's option calls the records of a part."""
    found = options.get("record_name") if part.name == "value" else None
    return None if found is None else str(found)
