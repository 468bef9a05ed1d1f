"""How many rows of committed state the operators visit: as many as their records ask for, however long it has run.

The epochs are those of Spark: an overlay above a map from which what was deleted is still to be passed, until the
epoch is committed. The clock is slow, so that many windows and many records that wait share their place in time.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import pairwise

import pytest

from tests.oracle import chunks
from tests.oracle.epochs import EpochRow
from vsc.compiler import compile_topology
from vsc.runtime.local import LocalRuntime
from vsc.runtime.state.kv import MemoryKV, OverlayKV

STREAM = "stream s (k string, v bigint, at bigint) from memory () key k timestamp at;"
TABLE = "table t (k string, g string, v bigint, at bigint) from memory () key k timestamp at"
QUEUES = {
    "tumbling": STREAM + """table x = aggregate s group by k window tumbling (size = 20 ms)
      select count(distinct v) as n;""",
    "final": STREAM + """table x = aggregate s group by k window hopping (size = 20 ms, advance = 10 ms) emit final
      select count(*) as n;""",
    "sliding": STREAM + "table x = aggregate s group by k window sliding (difference = 5 ms) select count(*) as n;",
    "closes": STREAM + """table w = aggregate s group by k window tumbling (size = 40 ms) select count(*) as n;
      table x = suppress w until window closes;""",
    "limit": STREAM + """table w = aggregate s group by k select count(*) as n;
      table x = suppress w until time limit 30 ms;""",
    "grace": TABLE + " materialize versioned (retention = 1 hour);" + STREAM + """
      stream x = join s with t grace 30 ms select s.v + t.v as v;""",
}  # fmt: skip
"""What leaves the state in the order of time."""
OTHERS = {
    "session": STREAM + "table x = aggregate s group by k window session (gap = 20 ms) select count(*) as n;",
    "first": TABLE + "; table x = aggregate t group by g select first(v) as n;",
    "last": TABLE + "; table x = aggregate t group by g select last(v) as n;",
    "min": TABLE + "; table x = aggregate t group by g select min(v) as n;",
    "max": TABLE + "; table x = aggregate t group by g select max(v) as n;",
    "versioned": TABLE + " materialize versioned (retention = 50 ms); table x = map t select v + 1 as v;",
}  # fmt: skip
KEYS, ROWS = 150, 300
MOST = 5
"""Rows a record."""
DEAD = b"deleted"


class Tombstones(MemoryKV):
    """Counts the rows that scans pass, those too that were deleted in earlier epochs: a compaction may be far away."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.visited = 0
        self.dead = MemoryKV()

    def scan(self, start: bytes, end: bytes | None, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        live, dead = super().scan(start, end, reverse), self.dead.scan(start, end, reverse)
        for key, value in merge(live, dead, reverse=reverse):
            self.visited += 1
            if value is not DEAD:
                self.live += 1
                yield key, value

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        delete_ranges: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        put, deleted = list(puts), list(deletes)
        self.dead.write([(key, DEAD) for key in deleted], [key for key, _ in put])
        super().write(put, deleted, delete_ranges)


def visited(text: str) -> list[list[int]]:
    """For each epoch how many rows were visited: live ones, and all."""
    plan = compile_topology(text + " sink x to memory ();", path="t.vdsl")
    bases: dict[tuple[int, int], Tombstones] = {}
    rng, clock, found = random.Random(3), 0, []
    for epoch in range(6):
        overlays: dict[tuple[int, int], OverlayKV] = {}

        def opened(stage: int, partition: int, overlays: dict[tuple[int, int], OverlayKV] = overlays) -> OverlayKV:
            base = bases.setdefault((stage, partition), Tombstones())
            return overlays.setdefault((stage, partition), OverlayKV(base))

        runtime, rows = LocalRuntime(plan, opened, ["x"]), []
        for offset in range(epoch * ROWS, (epoch + 1) * ROWS):
            clock += rng.random() < 0.2
            at = max(0, clock - rng.choice((0, 0, 3)))
            row = {"k": f"k{offset % KEYS}", "g": "g", "v": -offset if "max" in text else offset, "at": at}
            rows.append(EpochRow("s" if "stream s" in text else "t", "", offset, row, at))
        runtime.process(chunks(plan, rows))
        for overlay in overlays.values():
            overlay.commit()
        found.append([sum(base.live for base in bases.values()), sum(base.visited for base in bases.values())])
    return [[b - a for a, b in zip(*pair, strict=True)] for pair in pairwise(found)]


@pytest.mark.parametrize("form", QUEUES)
def test_what_has_left_a_queue_is_not_passed_again(form: str) -> None:
    counts = visited(QUEUES[form])
    assert max(all_ for _, all_ in counts) <= MOST * ROWS, counts


@pytest.mark.parametrize("form", OTHERS)
def test_rows_are_visited_a_few_times_each(form: str) -> None:
    counts = visited(OTHERS[form])
    assert max(live for live, _ in counts) <= MOST * ROWS, counts
