"""Control rows: what stages learn beside their records, and the control source that sends it to all of them.

The control source is a folder of small files inside the checkpoint, each line of which reaches every partition. Spark
calls a stage only for keys that have rows, and sources cannot be added to a checkpoint later. So every query reads this
folder from epoch 0 on: its first line calls every partition, as does a line ``wake``; ``drain`` moves clocks to their
end, ``quiet`` those of sources that bring nothing to a time. Source tasks tell the stages how far their source has
come, in rows of the same kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from vsc.runtime.spark.exchange.wire import WireRow, record_batches, slots
from vsc.runtime.spark.state.seeds import seed_row

__all__ = ["DRAIN", "START", "WAKE", "broadcast", "clock_rows", "clocks", "is_drain", "quiet_line", "quieted"]

START = "start"
DRAIN = "drain"
WAKE = "wake"

_CLOCK = b"clock "
_QUIET = b"quiet "


def is_drain(payload: bytes) -> bool:
    """Whether a control row asks its stage to move its clocks to the end."""
    return payload == DRAIN.encode()


def quiet_line(time: int, sources: Iterable[str]) -> str:
    """The line that moves the clocks of `sources` to `time`, in ms."""
    return _QUIET.decode() + json.dumps([time, sorted(sources)], separators=(",", ":"))


def quieted(payloads: Iterable[bytes]) -> dict[str, int]:
    """By source, the time to which the control rows `payloads` move its clock, since it brings nothing."""
    found: dict[str, int] = {}
    for payload in payloads:
        if payload.startswith(_QUIET):
            time, sources = json.loads(payload[len(_QUIET) :])
            found |= {source: max(time, found.get(source, time)) for source in sources}
    return found


def clock_rows(source: str, time: int, stages: Iterable[int], partitions: int) -> list[WireRow]:
    """Rows that tell each of `stages`, in each partition, that `source` has come to `time` (-1: to nothing)."""
    payload = _CLOCK + json.dumps([source, time]).encode()
    return [WireRow(stage, "", partition, payload) for stage in stages for partition in range(partitions)]


def clocks(payloads: Iterable[bytes]) -> dict[str, int]:
    """How far each source has come, of those that the control rows `payloads` tell about."""
    found: dict[str, int] = {}
    for payload in payloads:
        if payload.startswith(_CLOCK):
            source, time = json.loads(payload[len(_CLOCK) :])
            found[source] = max(time, found.get(source, -1))
    return found


def broadcast(
    stages: tuple[int, ...], partitions: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For mapInArrow over lines of text: one row for each line, stage (of those >= 1) and partition; of a line that
    carries a seed (`vsc.runtime.spark.state.seeds`) one row, for its stage and partition."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            lines = [line.strip().encode() for line in batch.column(0).to_pylist() if line.strip()]
            found: list[WireRow] = []
            for line in lines:
                seed = seed_row(line)
                everywhere = (WireRow(s, "", p, line) for s in stages for p in range(partitions))
                found += everywhere if seed is None else (seed,)
            yield from record_batches(found, slots(partitions))

    rows.__name__ = "control"  # Spark's plan shows it
    return rows
