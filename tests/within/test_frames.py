"""What came before each record equals the window frames of DuckDB and PostgreSQL over all rows, on random rows.

No row is later than the grace, so what comes out in the end is what batch SQL gives. Set ``VSC_FRAMES`` to run more
seeds (``1000``) or others (``200:300``) than the usual few.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from servers.postgres import PostgresServer
from tests.random_topologies.seeds import seeds
from vsc.testing import TopologyTestDriver

COLUMNS = "(s string, id int, k string, n int, d decimal(10, 2), x double, t string, at timestamp)"
CALLS = {
    "count(*)": "count(*) {}", "count(r.n)": "count(n) {}", "sum(r.n)": "cast(sum(n) {} as bigint)",
    "sum(r.d)": "sum(d) {}", "sum(r.x)": "sum(x) {}", "avg(r.n)": "avg(cast(n as double precision)) {}",
    "min(r.n)": "min(n) {}", "max(r.n)": "max(n) {}", "min(r.d)": "min(d) {}", "max(r.d)": "max(d) {}",
    "min(r.x)": "min(x) {}", "max(r.x)": "max(x) {}", "min(r.t)": "min(t) {}", "max(r.at)": "max(ts) {}",
    "bool_or(r.n > 2)": "bool_or(n > 2) {}",
}  # fmt: skip
"""Calls, and the same in SQL."""
GRACE = 12


@dataclass(frozen=True)
class Case:
    """A join, and its rows in the order in which they come."""

    itself: bool
    left: bool
    strictly: bool
    before: int
    after: int
    calls: tuple[tuple[str, int], ...]
    rows: tuple[dict[str, Any], ...]
    partitions: int

    @staticmethod
    def of(seed: int) -> Case:
        rng = random.Random(seed)
        after = rng.choice([0, 0, 7])
        before = rng.choice([5, 20, 60]) if after == 0 or rng.random() < 0.8 else 0
        calls = [(call, rng.choice([before, rng.randint(1, before)]) if before else 0) for call in CALLS]
        times = [rng.randrange(300) for _ in range(rng.choice([5, 120]))]
        times.sort(key=lambda at: at + rng.choice([0, 0, 0, GRACE // 2, GRACE]))
        rows = [
            {
                "s": rng.choice("ab"), "id": number, "k": rng.choice("xyz"), "n": rng.choice([None, -3, 1, 2, 5]),
                "d": rng.choice([None, Decimal("0.10"), Decimal("-7.25"), Decimal("99999999.99")]),
                "x": rng.choice([None, -0.5, 0.25, 1024.0]), "t": rng.choice([None, "", "a", "b"]), "at": at,
            } for number, at in enumerate(times)
        ]  # fmt: skip
        return Case(
            rng.random() < 0.5, rng.random() < 0.7, after == 0 and rng.random() < 0.4, before, after,
            tuple(rng.sample(calls, 6)), tuple(rows), rng.randint(1, 4),
        )  # fmt: skip

    @property
    def topology(self) -> str:
        items = ", ".join(
            f"{call}{f' over {over} ms' if over else ''} as c{i}" for i, (call, over) in enumerate(self.calls)
        )
        left, right = ("rows", "rows") if self.itself else ("a", "b")
        parts = [f"stream {name} = filter rows where s = '{name}';" for name in "ab" if not self.itself]
        within = f"within (before = {self.before} ms, after = {self.after} ms) grace {GRACE} ms"
        return f"""
        stream rows {COLUMNS} from memory () key k timestamp at;
        {"".join(parts)}
        stream o = {"left" if self.left else ""} join {left} as l with {right} as r {within}
          {"strictly before" if self.strictly else ""} select l.id, {items};
        sink o to memory ();
        """

    def found(self) -> dict[int, tuple[Any, ...]]:
        """What goes out, by the `id` of the left record."""
        rng, sent = random.Random(len(self.rows)), dict[int, tuple[Any, ...]]()
        with TopologyTestDriver(self.topology, partitions=self.partitions) as driver:
            for row in self.rows:
                driver.pipe("rows", row)
                if rng.random() < 0.05:
                    driver.restart()
            driver.drain()
            for record in driver.read("o"):
                id, *values = (record.value or {}).values()
                assert id not in sent
                sent[id] = tuple(values)
        return sent

    @property
    def query(self) -> str:
        """The same in SQL."""
        last = (
            "interval '1 milliseconds' preceding"
            if self.strictly
            else f"interval '{self.after} milliseconds' following"
        )
        counts = "" if self.itself else " filter (where s = 'b')"
        frames = {
            over: f"(partition by k order by ts range between interval '{over} milliseconds' preceding and {last})"
            for over in (self.before, *(over for _, over in self.calls))
        }
        items = [
            f"{CALLS[call].format(counts + ' over ' + frames[over])} as c{i}"
            for i, (call, over) in enumerate(self.calls)
        ]
        items.append(f"count(*){counts} over {frames[self.before]} as met")
        names = ", ".join(f"c{i}" for i in range(len(self.calls)))
        wanted = [*([] if self.itself else ["s = 'a'"]), *([] if self.left else ["met > 0"])]
        where = f" where {' and '.join(wanted)}" if wanted else ""
        values = ", ".join(_literals(row) for row in self.rows)
        return (
            f"with given(s, id, k, n, d, x, t, ts) as (values {values}) "
            f"select id, {names} from (select *, {', '.join(items)} from given) every_row{where}"
        )


_TYPES = {"id": "int", "n": "int", "d": "decimal(10, 2)", "x": "double precision", "at": "timestamp"}


def _literals(row: dict[str, Any]) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=row["at"])
    values = {**row, "at": at.strftime("%Y-%m-%d %H:%M:%S.%f")}
    texts = {name: "null" if value is None else f"'{value}'" for name, value in values.items()}
    return "(" + ", ".join(f"cast({text} as {_TYPES.get(name, 'text')})" for name, text in texts.items()) + ")"


def _utc(rows: list[tuple[Any, ...]]) -> dict[int, tuple[Any, ...]]:
    return {id: tuple(v.replace(tzinfo=UTC) if isinstance(v, datetime) else v for v in values) for id, *values in rows}


@pytest.mark.long
@pytest.mark.quick(1)
@pytest.mark.parametrize("seed", seeds("VSC_FRAMES", 6))
def test_what_came_before_is_a_window_frame_of_duckdb(seed: int) -> None:
    case = Case.of(seed)
    with duckdb.connect(config={"threads": 1}) as db:
        assert case.found() == _utc(db.execute(case.query).fetchall())


@pytest.mark.slow
def test_what_came_before_is_a_window_frame_of_postgresql(server: PostgresServer) -> None:
    for seed in seeds("VSC_FRAMES", 6):
        case = Case.of(1000 + seed)
        assert case.found() == _utc(server.query(case.query)), f"seed {1000 + seed}"
