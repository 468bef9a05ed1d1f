"""Where a Kafka source begins to read: the valid values of `starting_offsets`."""

from __future__ import annotations

import json

__all__ = ["offsets_help", "offsets_problem"]

_EARLIEST = -2
"""The offset that stands for the first record; -1 stands for the end."""


def offsets_problem(value: str, topic: str | None, name: str = "starting_offsets") -> str | None:
    """What is wrong with the value of the option `name`; None if it is valid. `topic` is the source's, if known.

    The form is Spark's: 'earliest', 'latest', or JSON with an offset for each partition of the topic.
    """
    if value in ("earliest", "latest"):
        return None
    if not value.lstrip().startswith("{"):
        return f"`{name}` cannot be '{value}'"
    try:
        topics = json.loads(value)
    except (ValueError, RecursionError):
        return f"`{name}` is not JSON"
    if len(topics) != 1 or topic not in (None, *topics):
        named = "one topic" if topic is None else f"the topic '{topic}'"
        return f"`{name}` has to name {named} and no other"
    (partitions,) = topics.values()
    if not isinstance(partitions, dict) or not partitions:
        return f"`{name}` names no partitions of the topic"
    for partition, offset in partitions.items():
        if not (partition.isascii() and partition.isdigit()):
            return f"'{partition}' in `{name}` is not the number of a partition"
        if type(offset) is not int or offset < _EARLIEST:
            return f"the offset of partition {partition} in `{name}` is not a number of -2 or more"
    return None


def offsets_help(topic: str | None) -> str:
    """Help that says what `starting_offsets` may be."""
    offsets = json.dumps({topic or "payments": {"0": 23, "1": _EARLIEST}})
    return (
        f"write 'earliest', 'latest', or an offset for each partition: '{offsets}' (-2 is the earliest, -1 the latest)"
    )
