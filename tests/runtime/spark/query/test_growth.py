"""State that has an end leaves: after a thousand times the retention local and remote size are what they were."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.runtime.spark.state.test_protocol import Blobs
from tests.runtime.spark.support import compiled
from vsc.plan.nodes import Plan, Source
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.records import Origin
from vsc.runtime.spark.state import protocol
from vsc.runtime.spark.state.local_folder import opened
from vsc.runtime.spark.state.protocol import PartitionState
from vsc.runtime.state import kv_rocks
from vsc.runtime.state.kv import LowerKV, MemoryKV

EPOCHS, STEP = 126, 8_000
"""Every retention, window and gap below is at most a second: 1,008 of them."""

STREAM = "stream s (k string, v bigint) from memory () key k;"
TABLE = "table t (k string, v bigint) from memory () key k materialize versioned (retention = 1 second);"
WINDOWS = {
    "tumbling": "window tumbling (size = 1 second) select sum(v) as v",
    "hopping": "window hopping (size = 1 second, advance = 500 ms) emit final select sum(v) as v",
    "sliding": "window sliding (difference = 1 second) select max(v) as v, collect_list(v) as l",
    "session": "window session (gap = 300 ms) select sum(v) as v, count(distinct v) as c",
    "session, final": "window session (gap = 300 ms) emit final select sum(v) as v",
    "grace": "window tumbling (size = 1 second, grace = 1 second) select count(distinct v) as v",
}
TOPOLOGIES = {
    "versioned, grace": f"{STREAM}{TABLE} stream x = join s with t grace 1 second select s.v as a, t.v as b;",
    "foreign key": f"{STREAM}{TABLE} table u = to_table s;"
    "table x = join u with t on concat('k', cast(v % 10 as string)) select u.v as a, t.v as b;",
    "time limit": f"{STREAM} table u = to_table s; table x = suppress u until time limit 1 second;",
    "taken back": f"{TABLE} table x = aggregate t group by v % 3 as g select min(v) as v, collect_list(v) as l;",
    "suppressed": f"{STREAM} table w = aggregate s group by k {WINDOWS['grace']};"
    "table x = suppress w until window closes;",
    "windowed join": f"{STREAM} table v = aggregate s group by k {WINDOWS['tumbling']};"
    "table w = aggregate s group by k window tumbling (size = 1 second) select count(*) as c;"
    "table x = outer join v with w select v, c;",
    **{name: f"{STREAM} table x = aggregate s group by k {window};" for name, window in WINDOWS.items()},
}


class Query:
    """A plan through the state protocol, epoch by epoch, with simulated blobs."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.chance = random.Random(11)
        self.sources = [n.name for n in plan.nodes if isinstance(n.operation, Source)]
        self.blobs = {stage.id: Blobs() for stage in plan.stages[1:]}
        self.starts: Mapping[str, int] = {}

    def epoch(self, number: int, bases: Mapping[int, LowerKV], keys: list[str], rows: int = 6) -> None:
        states = {stage: PartitionState.open(b, bases[stage], b.loaded) for stage, b in self.blobs.items()}
        runtime = LocalRuntime(self.plan, lambda stage, partition: states[stage].kv, (), starts=self.starts)
        times = sorted(number * STEP + self.chance.randrange(STEP) for _ in range(rows))
        runtime.process([(source, self.rows(source, number, times, keys)) for source in self.sources])
        self.starts = runtime.starts
        for stage, state in states.items():
            state.commit(f"{number}-{stage}-0-x")

    def rows(self, source: str, number: int, times: list[int], keys: list[str]) -> SourceRows:
        """Some of a table's rows are tombstones."""
        columns = (
            pa.array([self.chance.choice(keys) for _ in times]),
            pa.array([self.chance.randrange(99) for _ in times]),
        )
        gone = np.array([source == "t" and self.chance.random() < 0.3 for _ in times])
        offsets = np.arange(len(times), dtype=np.int64) + 100 * number
        origin = Origin(source, 0 if source == "t" else 1, "0")
        return SourceRows(origin, columns, offsets, np.array(times, dtype=np.int64), gone)

    @property
    def remote(self) -> int:
        """Bytes in Spark's state store."""
        return sum(len(c) for b in self.blobs.values() for c in b.chunks.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_what_has_an_end_leaves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "FOLD_BYTES", 4000)
    windowed = "window" in TOPOLOGIES[name]
    query = Query(compiled(f"{TOPOLOGIES[name]} sink x to noop ();"))
    local = {stage: MemoryKV() for stage in query.blobs}
    sizes = []
    for number in range(EPOCHS):
        # A table keeps the newest row of every key; what is windowed keeps nothing of keys that do not come again.
        keys = [f"n{number}", "k1"] if windowed else [f"k{i}" for i in range(10)]
        query.epoch(number, dict(local), keys)
        sizes.append((sum(map(len, local.values())), query.remote))
    early, late = sizes[EPOCHS // 6 : EPOCHS // 3], sizes[-EPOCHS // 6 :]
    for size in (0, 1):
        assert max(s[size] for s in late) <= 1.15 * max(s[size] for s in early) + 12


def test_the_folder_on_disk_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "FOLD_BYTES", 4000)
    monkeypatch.setattr(kv_rocks, "_IDLE_SECONDS", 1)  # a busy machine may begin a compaction late
    query = Query(compiled(f"{TOPOLOGIES['versioned, grace']} sink x to noop ();"))
    folder = tmp_path / "db"
    sizes = []
    for number in range(60):
        with opened(folder, query.blobs[1].loaded) as base:
            query.epoch(number, {1: base}, [f"k{i}" for i in range(10)])
        sizes.append(sum(file.stat().st_size for file in folder.iterdir() if not file.name.startswith("LOG")))
    assert max(sizes[-15:]) <= 1.3 * max(sizes[15:35])
