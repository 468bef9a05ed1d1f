"""The subjects of a registry: what the schemas of a topic's keys and values are registered under."""

from __future__ import annotations

from typing import Literal

from vsc.runtime.spark.base.options import Options

__all__ = ["subject"]


def subject(options: Options, part: Literal["key", "value"], record: str | None) -> str | None:
    """The subject of a part, whose schema is called `record`; None if that is not known, and the strategy asks for
    it. The strategy is for values: keys go by their topic."""
    topic, strategy = options.text("topic"), options.get("subject_name_strategy")
    if part == "key" or strategy in (None, "topic"):
        return f"{topic}-{part}"
    if record is None:
        return None
    return record if strategy == "record" else f"{topic}-{record}"
