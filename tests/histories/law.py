"""The law of complete histories, as a test: random rows in any order, and what batch SQL says of every moment.

For every key and every time t from the clock less the retention on, a complete table as of t is its operation over its
inputs as of t: in its store, and in what was sent, if each record counts as a put. The right answers come from DuckDB,
which gets the rows that each source takes, and computes every statement over the rows valid at each of all moments.

Many seeds share a run, since starting one costs more than their rows: each has keys and groups of its own, a world.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from tests.histories.shapes import APART, SHAPES, Shape
from tests.oracle import Stores, chunks
from tests.oracle.epochs import EpochRow
from tests.runtime.operators.carry.carrying import carried
from vsc.compiler import compile_topology
from vsc.plan.nodes import Column, Plan
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.views import Question, Status
from vsc.runtime.operators.views.catalog import open_view, stores_of
from vsc.runtime.records import Batch
from vsc.runtime.values import displayed, to_values

__all__ = ["Case", "broken"]

ROWS = pa.schema(
    [
        ("k", pa.string()),
        ("f", pa.string()),
        ("n", pa.int64()),
        ("since", pa.int64()),
        ("gone", pa.bool_()),
        ("seq", pa.int64()),
    ]
)
SOURCE = """table {name} (k string, f string, n bigint, at bigint, gone boolean) from memory ()
key k timestamp at delete when gone materialize versioned (retention = {retention} ms);"""


@dataclass(frozen=True)
class Case:
    """One run: by epoch its rows of sources, on how many partitions it runs, and whether a restart is behind it; the
    next epoch may run on others then."""

    shape: str
    retention: int
    epochs: Sequence[Sequence[tuple[str, dict[str, Any]]]]
    partitions: Sequence[int]
    restarts: Sequence[bool]

    @staticmethod
    def of(seeds: range, shape: str) -> Case:
        """The worlds of some seeds in one run."""
        rng = random.Random(f"{shape} {seeds}")
        worlds = ((clock, seed, name, row) for seed in seeds for clock, name, row in world(seed, shape))
        rows = [(name, row) for _, _, name, row in sorted(worlds, key=lambda one: one[:2])]
        retention = rng.choice([0, 5, 20, 50, 1000, 1000])
        count = min(rng.choice([0, 1, 4, 10, 20]), len(rows) - 1)
        first = rng.randint(1, len(rows) - count)
        cuts = range(first, first + count) if rng.random() < 0.3 else sorted(rng.sample(range(1, len(rows)), count))
        epochs = [rows[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
        partitions = [rng.choice((1, 2, 2, 3, 5, 8))]
        restarts = [rng.random() < 0.3 for _ in epochs]
        for restart in restarts[:-1]:
            partitions.append(rng.randint(1, 8) if restart and rng.random() < 0.5 else partitions[-1])
        return Case(shape, retention, epochs, partitions, restarts)

    @property
    def text(self) -> str:
        """The topology."""
        shape = SHAPES[self.shape]
        sources = [SOURCE.format(name=name, retention=self.retention) for name in sorted(shape.reads)]
        clause = f"materialize versioned (retention = {self.retention} ms, history = 'complete')"
        sinks = [f"sink {name} to memory ();" for name in shape.complete]
        return "\n".join([*sources, shape.text.format(complete=clause, retention=self.retention), *sinks])


def world(seed: int, shape: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The rows of a seed: when each comes, of which source, and itself. The seed is in its key and group."""
    rng = random.Random(f"{shape} {seed}")
    disorder, ties = rng.choice([0, 3, 10, 30]), rng.random() < 0.5
    keys, groups = "pqrst"[: rng.randint(1, 5)], "pqxy"[: rng.randint(1, 4)]
    clock = 0
    for _ in range(rng.randint(5, 60)):
        clock += rng.choice([0, 1, 1, 2, 7]) if ties else rng.choice([1, 2, 7])
        group = rng.choice([*groups, None]) if rng.random() < 0.3 else rng.choice(groups)
        row = {
            "k": f"{rng.choice(keys)}{seed}",
            "f": group and f"{group}{seed}",
            "n": rng.choice([None, *range(4)]) if rng.random() < 0.2 else rng.randint(0, 3),
            "at": max(0, clock - rng.randint(0, disorder)),
            "gone": rng.random() < 0.2,
        }
        yield clock, rng.choice(sorted(SHAPES[shape].reads)), row


class _Run:
    """A case as it is run."""

    def __init__(self, case: Case) -> None:
        self.plan, self._stores = _compiled(case.text), Stores()
        tables = {store.node: store for store in stores_of(self.plan) if store.is_table and store.canonical}
        self._tables = {name: tables[name] for name in SHAPES[case.shape].complete}
        self._offset = 0
        self._start(case.partitions[0])

    def _start(self, partitions: int) -> None:
        self._partitions, options = partitions, RunOptions(on_error="drop")
        self._runtime = LocalRuntime(
            self.plan, self._stores, self._tables, partitions, options, starts=self._stores.starts
        )

    def process(self, rows: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Batch]:
        """What an epoch sends."""
        given = [EpochRow(name, "", n, row, row["at"]) for n, (name, row) in enumerate(rows, self._offset)]
        self._offset += len(given)
        sent = self._runtime.process(chunks(self.plan, given))
        self._stores.starts = self._runtime.starts
        return sent

    def restart(self, partitions: int) -> None:
        """Starts again, perhaps on other partitions."""
        if partitions != self._partitions:
            self._stores = carried(self.plan, self.plan, self._stores, self._partitions, partitions)
        self._start(partitions)

    def look_up(self, name: str, key: Any, time: int) -> Any:
        """The row that a table's store has for a key as of a time."""
        entry, columns = self._runtime.look_up(self._tables[name], [key], time), self.plan.node(name).schema.value
        return None if entry.value is None else _shown(columns, entry.value)

    def kept(self, name: str) -> dict[Any, list[tuple[int, Any]]]:
        """By key the rows that a table's store has, None for a tombstone, from when they are valid, in that order."""
        store, columns = self._tables[name], self.plan.node(name).schema.value
        found: dict[Any, list[tuple[int, Any]]] = {}
        for partition in range(self._partitions):
            view = open_view(self.plan, store, self._stores(store.stage, partition), self._runtime.starts)
            for entry in view.answer(Question(history=True)):
                if entry.status in (Status.VERSION, Status.TOMBSTONE):
                    value = None if entry.value is None else _shown(columns, entry.value)
                    found.setdefault(entry.key[0], []).append((entry.extra[0] or 0, value))
        return {key: sorted(rows, key=lambda row: row[0]) for key, rows in found.items()}


@cache
def _compiled(text: str) -> Plan:
    return compile_topology(text, path="t.vdsl")


def _shown(columns: Sequence[Column], row: Sequence[Any]) -> dict[str, Any]:
    return {column.name: displayed(value, column.type) for column, value in zip(columns, row, strict=True)}


def _records(batch: Batch) -> Iterator[tuple[Any, int, Any]]:
    """Of each record its key, time, and value."""
    columns = batch.schema.value
    (keys,) = (to_values(a, c.type) for a, c in zip(batch.keys, batch.schema.key, strict=True))
    values = zip(*(to_values(a, c.type) for a, c in zip(batch.values, columns, strict=True)), strict=True)
    for key, time, present, row in zip(keys, batch.timestamps.tolist(), batch.present.tolist(), values, strict=True):
        yield key, time, _shown(columns, row) if present else None


def broken(case: Case) -> Iterator[str]:
    """Where the law does not hold."""
    shape, chance = SHAPES[case.shape], random.Random(0)
    given: dict[str, list[tuple[Any, ...]]] = {name: [] for name in shape.reads}
    times = dict.fromkeys(shape.reads, 0)
    sent: dict[str, dict[Any, dict[int, Any]]] = {name: {} for name in shape.complete}
    run = _Run(case)
    with duckdb.connect(config={"threads": 1}) as db:
        for number, (rows, restart) in enumerate(zip(case.epochs, case.restarts, strict=True)):
            for name, row in rows:
                times[name] = max(times[name], row["at"])
                if row["at"] >= times[name] - case.retention:
                    since = shape.base(row["k"]) + row["at"]
                    given[name].append((*(row | {"at": since}).values(), len(given[name])))
            for name, batch in run.process(rows).items():
                for key, time, value in _records(batch):
                    sent[name].setdefault(key, {})[time] = value
            last = number == len(case.epochs) - 1
            if restart and not last:
                run.restart(case.partitions[number + 1])
            clock = max(times.values())
            first = max(0, clock - case.retention)
            moments: dict[int, set[int]] = {}  # by world; between two of its times, nothing changes
            for since in (row[3] for rows in given.values() for row in rows):
                base, at = since // APART * APART, since % APART
                moments.setdefault(base, {first, clock + 1}).update({at} if at >= first else ())
            right = answers(db, shape, given, [base + at for base, ats in moments.items() for at in ats])
            for name, expected in right.items():
                puts = {key: sorted(found.items()) for key, found in sent[name].items()}
                kept = run.kept(name)
                for k in sorted({*puts, *(k for _, k in expected)}):
                    base = shape.base(k)
                    for t in sorted(moments.get(base, ())):
                        wanted = expected.get((base + t, k))
                        answered = {"sent": _as_of(puts.get(k, ()), t), "store": _as_of(kept.get(k, ()), t)}
                        if chance.random() < 0.02:
                            answered["look-up"] = run.look_up(name, k, t)
                        for what, came in answered.items():
                            if came != wanted:
                                yield f"epoch {number}, {what} of {name}, {k} as of {t}: {came}, not {wanted}"


def _as_of(rows: Sequence[tuple[int, Any]], time: int) -> Any:
    """The last of the rows that is valid at the time."""
    place = bisect_right(rows, time, key=lambda row: row[0])
    return rows[place - 1][1] if place else None


def answers(
    db: duckdb.DuckDBPyConnection,
    defined: Shape,
    given: Mapping[str, Sequence[tuple[Any, ...]]],
    moments: Sequence[int],
) -> dict[str, dict[tuple[int, Any], dict[str, Any]]]:
    """By table: its row at each moment and key."""
    db.execute("create or replace table moments as select unnest(?::bigint[]) as t", [list(moments)])
    for name, rows in given.items():
        columns = [*zip(*rows, strict=True)] or [()] * len(ROWS)
        db.register(
            f"{name}_rows", pa.table([pa.array(c, f.type) for c, f in zip(columns, ROWS, strict=True)], schema=ROWS)
        )
        db.execute(
            f"create or replace table {name} as "
            f"select t, k, f, n, since % {APART} as since, seq "
            f"from moments m join {name}_rows r on m.t // {APART} = r.since // {APART} and r.since <= m.t "
            "qualify row_number() over (partition by t, k order by r.since desc, seq desc) = 1 and not gone"
        )
    for name, view in defined.views.items():
        db.execute(f"create or replace table {name} as {view}")
    found = {}
    for name, (key, shown) in defined.complete.items():
        result = db.execute(f"select t, {key}, {shown} from {name}")
        names, valid = [column[0] for column in result.description or ()][2:], result.fetchall()
        found[name] = {(t, k): dict(zip(names, values, strict=True)) for t, k, *values in valid}
        assert len(found[name]) == len(valid)
    return found
