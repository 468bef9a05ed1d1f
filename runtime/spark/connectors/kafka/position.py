"""Where a source of Kafka begins: an offset for each partition of its topic."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from vsc.plan.nodes import Node
from vsc.plan.offsets import offsets_help, offsets_problem
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.client import offset_ranges
from vsc.runtime.spark.connectors.position import SourceNotes, refused_position

__all__ = ["settled_offsets", "write_offsets"]

_EARLIEST, _LATEST = -2, -1


def settled_offsets(node: Node, options: Options, value: str) -> str:
    """The offset of each partition, as Spark's JSON."""
    topic = options.text("topic")
    problem = offsets_problem(value, topic, "--position")
    if problem is not None:
        raise refused_position(node, problem, offsets_help(topic))
    ranges = offset_ranges(options)
    if value in ("earliest", "latest"):
        wanted = dict.fromkeys(ranges, _EARLIEST if value == "earliest" else _LATEST)
    else:
        wanted = {int(partition): offset for partition, offset in json.loads(value)[topic].items()}
    problem = next(_misfits(topic, wanted, ranges), None)
    if problem is not None:
        there = "; ".join(f"{number}: {low} to {high}" for number, (low, high) in sorted(ranges.items()))
        raise refused_position(node, problem, f"give each partition an offset that it has: {there}")
    ends = {n: {_EARLIEST: low, _LATEST: high} for n, (low, high) in ranges.items()}
    return json.dumps({topic: {str(n): ends[n].get(wanted[n], wanted[n]) for n in sorted(wanted)}})


def write_offsets(notes: SourceNotes, offsets: object) -> None:
    """Notes the offsets at which a source begins; Spark begins new partitions at their beginning."""
    notes.write("0", f"\0v1\n{json.dumps(offsets)}")  # the first byte is for Spark 2.1


def _misfits(topic: str, wanted: Mapping[int, int], ranges: Mapping[int, tuple[int, int]]) -> Iterator[str]:
    for number, offset in wanted.items():
        if number not in ranges:
            yield f"the topic {topic!r} has no partition {number}"
        elif offset >= 0 and not ranges[number][0] <= offset <= ranges[number][1]:
            low, high = ranges[number]
            yield f"partition {number} of the topic {topic!r} has the offsets {low} to {high}, {offset} is outside"
    for number in ranges:
        if number not in wanted:
            yield f"partition {number} of the topic {topic!r} has no offset"
