"""The law of complete histories, as a test: random rows in any order, and what batch SQL says of every moment.

For every key and every time t from the clock less the retention on, a complete table as of t is its operation over its
inputs as of t: in its store, and in what was sent, if each record counts as a put. The right answers come from DuckDB,
which gets the rows that each source takes, and computes every statement over the rows valid at each of all moments.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from vsc.testing import TopologyTestDriver

__all__ = ["SHAPES", "Case", "Shape", "broken"]

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
class Shape:
    """Statements that make tables, with the same in SQL; `{complete}` stands for the clause of a complete history.

    `complete` has the tables whose history is checked, with their key and the columns of their values. In the SQL,
    each table is read with the moment `t`; its rows have `since`, from when they are valid, and `seq`, their arrival.
    """

    text: str
    views: Mapping[str, str]
    complete: Mapping[str, tuple[str, str]]
    reads: frozenset[str] = field(default=frozenset("ab"))


@dataclass(frozen=True)
class Case:
    """One run: rows of sources by epoch, on how many partitions, and after which epochs it is restarted."""

    shape: str
    retention: int
    epochs: Sequence[Sequence[tuple[str, dict[str, Any]]]]
    partitions: int
    restarts: Sequence[bool]

    @staticmethod
    def of(seed: int, shape: str) -> Case:
        rng = random.Random(f"{shape} {seed}")
        retention = rng.choice([0, 5, 20, 20, 1000])
        disorder, ties = rng.choice([0, 3, 10, 30]), rng.random() < 0.5
        keys, groups = "pqrst"[: rng.randint(1, 5)], "pqxy"[: rng.randint(1, 4)]
        clock, rows = 0, []
        for _ in range(rng.randint(5, 60)):
            clock += rng.choice([0, 1, 1, 2, 7]) if ties else rng.choice([1, 2, 7])
            rows.append(
                (
                    rng.choice(sorted(SHAPES[shape].reads)),
                    {
                        "k": rng.choice(keys),
                        "f": rng.choice([*groups, None]) if rng.random() < 0.3 else rng.choice(groups),
                        "n": rng.choice([None, *range(4)]) if rng.random() < 0.2 else rng.randint(0, 3),
                        "at": max(0, clock - rng.randint(0, disorder)),
                        "gone": rng.random() < 0.2,
                    },
                )
            )
        cuts = sorted(rng.sample(range(1, len(rows)), min(rng.choice([0, 1, 4, len(rows) - 1]), len(rows) - 1)))
        epochs = [rows[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
        return Case(shape, retention, epochs, rng.randint(1, 8), [rng.random() < 0.3 for _ in epochs])

    @property
    def text(self) -> str:
        """The topology."""
        shape = SHAPES[self.shape]
        sources = [SOURCE.format(name=name, retention=self.retention) for name in sorted(shape.reads)]
        clause = f"materialize versioned (retention = {self.retention} ms, history = 'complete')"
        sinks = [f"sink {name} to memory ();" for name in shape.complete]
        return "\n".join([*sources, shape.text.format(complete=clause, retention=self.retention), *sinks])


def broken(case: Case) -> Iterator[str]:
    """Where the law does not hold."""
    shape = SHAPES[case.shape]
    given: dict[str, list[tuple[Any, ...]]] = {name: [] for name in shape.reads}
    times = dict.fromkeys(shape.reads, 0)
    sent: dict[str, dict[Any, dict[int, Any]]] = {name: {} for name in shape.complete}
    with (
        TopologyTestDriver(case.text, partitions=case.partitions, on_error="drop") as driver,
        duckdb.connect(config={"threads": 1}) as db,
    ):
        for number, (rows, restart) in enumerate(zip(case.epochs, case.restarts, strict=True)):
            with driver.batch():
                for name, row in rows:
                    driver.pipe(name, row)
                    times[name] = max(times[name], row["at"])
                    if row["at"] >= times[name] - case.retention:
                        given[name].append((*row.values(), len(given[name])))
            if restart:
                driver.restart()
            for name, into in sent.items():
                for record in driver.read(name):
                    into.setdefault(record.key[shape.complete[name][0]], {})[record.timestamp] = record.value
            if not restart and number < len(case.epochs) - 1:
                continue
            clock = max(times.values())
            began = {row[3] for rows in given.values() for row in rows}
            first = max(0, clock - case.retention)
            moments = sorted({first, clock + 1, *(at for at in began if at >= first)})  # between two, nothing changes
            right = answers(db, shape, given, moments)
            for name, (key, _) in shape.complete.items():
                expected = right[name]
                for k in sorted({*sent[name], *(k for _, k in expected)}):
                    puts = sent[name].get(k, {})
                    for t in moments:
                        as_of = max((at for at in puts if at <= t), default=None)
                        came = None if as_of is None else puts[as_of]
                        wanted = expected.get((t, k))
                        if came != wanted:
                            yield f"epoch {number}, sent of {name}, {k} as of {t}: {came}, not {wanted}"
                        version = driver.store(name).get({key: k}, as_of=t)
                        stored = None if version is None else version.value
                        if stored != wanted:
                            yield f"epoch {number}, store of {name}, {k} as of {t}: {stored}, not {wanted}"


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
            f"create or replace view {name} as "
            f"select t, k, f, n, since, seq from moments join {name}_rows on since <= t "
            "qualify row_number() over (partition by t, k order by since desc, seq desc) = 1 and not gone"
        )
    for name, view in defined.views.items():
        db.execute(f"create or replace view {name} as {view}")
    found = {}
    for name, (key, shown) in defined.complete.items():
        result = db.execute(f"select t, {key}, {shown} from {name}")
        names, valid = [column[0] for column in result.description or ()][2:], result.fetchall()
        found[name] = {(t, k): dict(zip(names, values, strict=True)) for t, k, *values in valid}
        assert len(found[name]) == len(valid)
    return found


_SIDES = "a.n as x, b.n as y, coalesce(a.f, '-') as z"
SHAPES: dict[str, Shape] = {
    **{
        f"{mode or 'inner'} join": Shape(
            f"table j = {mode} join a with b select {_SIDES} {{complete}};",
            {"j": f"select t, coalesce(a.k, b.k) as k, {_SIDES} from a {sql} join b using (t, k)"},
            {"j": ("k", "x, y, z")},
        )
        for mode, sql in (("", ""), ("left", "left"), ("outer", "full"))
    },
    "rows": Shape(
        "table big = filter a where n > 0; table twice = map b select n * 2 as n, at as since;"
        "table j = left join big with twice select big.n as x, twice.n as y, twice.since as s {complete};",
        {
            "big": "select * from a where n > 0",
            "twice": "select t, k, n * 2 as n, since from b",
            "j": "select t, k, big.n as x, twice.n as y, twice.since as s from big left join twice using (t, k)",
        },
        {"j": ("k", "x, y, s")},
    ),
    "kept again": Shape(
        "table j = outer join a with b select a.n as x, b.n as y {complete};"
        "table m = materialize j versioned (retention = {retention} ms);"
        "table f = filter m where x > 0 materialize versioned (retention = {retention} ms);"
        "table g = aggregate f group by x select count(*) as n, sum(y) as s {complete};",
        {
            "j": "select t, coalesce(a.k, b.k) as k, a.n as x, b.n as y from a full join b using (t, k)",
            "m": "select * from j",
            "f": "select * from m where x > 0",
            "g": "select t, x, count(*) as n, sum(y) as s from f group by t, x",
        },
        {"j": ("k", "x, y"), "m": ("k", "x, y"), "f": ("k", "x, y"), "g": ("x", "n, s")},
    ),
    "with itself": Shape(
        "table big = filter a where n > 1; table j = left join a with big select a.n as x, big.f as y {complete};",
        {
            "big": "select * from a where n > 1",
            "j": "select t, k, a.n as x, big.f as y from a left join big using (t, k)",
        },
        {"j": ("k", "x, y")},
        frozenset("a"),
    ),
    "join of joins": Shape(
        "table j = outer join a with b select a.n as x, b.n as y {complete};"
        "table known = filter j where coalesce(x, 1) > 0;"
        "table l = left join c with known select c.n as n, known.x as x, known.y as y {complete};",
        {
            "j": "select t, coalesce(a.k, b.k) as k, a.n as x, b.n as y from a full join b using (t, k)",
            "known": "select * from j where coalesce(x, 1) > 0",
            "l": "select t, k, c.n as n, x, y from c left join known using (t, k)",
        },
        {"j": ("k", "x, y"), "l": ("k", "n, x, y")},
        frozenset("abc"),
    ),
    **{
        f"{mode or 'inner'} join by a foreign key": Shape(
            f"table j = {mode} join a with b on f select {_SIDES} {{complete}};",
            {"j": f"select a.t, a.k, {_SIDES} from a {mode} join b on a.t = b.t and a.f = b.k"},
            {"j": ("k", "x, y, z")},
        )
        for mode in ("", "left")
    },
    "foreign keys of itself": Shape(
        "table j = left join a with a as boss on f select a.n as x, boss.n as y {complete};"
        "table big = filter a where n > 1; table i = join big with j on f select big.n as x, j.y as y {complete};",
        {
            "j": "select a.t, a.k, a.n as x, boss.n as y from a left join a as boss on a.t = boss.t and a.f = boss.k",
            "big": "select * from a where n > 1",
            "i": "select big.t, big.k, big.n as x, j.y from big join j on big.t = j.t and big.f = j.k",
        },
        {"j": ("k", "x, y"), "i": ("k", "x, y")},
        frozenset("a"),
    ),
    "sums": Shape(
        "table g = aggregate a group by f select count(*) as n, sum(n) as s, min(n) as low, max(n) as high, "
        "count(distinct n) as d, avg(n) as m {complete};",
        {
            "g": "select t, f, count(*) as n, sum(n) as s, min(n) as low, max(n) as high, "
            "count(distinct n) as d, avg(n) as m from a where f is not null group by t, f"
        },
        {"g": ("f", "n, s, low, high, d, m")},
        frozenset("a"),
    ),
    "failures": Shape(
        "table small = filter a where 2 / n < 2;"
        "table j = left join small with b select small.n as n, 6 / b.n as m {complete};"
        "table g = aggregate a group by f select count(*) as n, sum(6 / n) as s, 1 / (count(*) - 2) as r {complete};",
        {
            "small": "select * from a where n <> 0 and 2 / n < 2",
            "j": "select t, k, small.n as n, 6 / b.n as m from small left join b using (t, k) "
            "where b.n is distinct from 0",
            "g": "select t, f, count(*) as n, sum(6 / n) as s, 1 / (count(*) - 2) as r from a "
            "where f is not null and n is distinct from 0 group by t, f having count(*) <> 2",
        },
        {"j": ("k", "n, m"), "g": ("f", "n, s, r")},
    ),
    "results of results": Shape(
        "table j = left join a with b select a.f as f, b.n as n {complete};"
        "table g = aggregate j group by f select count(*) as n, sum(n) as s, min(n) as low {complete};"
        "table more = map g select n + 1 as n;"
        "table l = left join c with more select c.n as c, more.n as n {complete};"
        "table h = aggregate g group by n select count(*) as groups, max(s) as most {complete};",
        {
            "j": "select t, k, a.f as f, b.n as n from a left join b using (t, k)",
            "g": "select t, f, count(*) as n, sum(n) as s, min(n) as low from j where f is not null group by t, f",
            "more": "select t, f, n + 1 as n from g",
            "l": "select c.t, c.k, c.n as c, more.n as n from c left join more on c.t = more.t and c.k = more.f",
            "h": "select t, n, count(*) as groups, max(s) as most from g group by t, n",
        },
        {"j": ("k", "f, n"), "g": ("f", "n, s, low"), "l": ("k", "c, n"), "h": ("n", "groups, most")},
        frozenset("abc"),
    ),
    "lists": Shape(
        "table g = aggregate a group by f select first(n) as one, last(n) as other, "
        "first(n) ignore nulls as known, last(n) ignore nulls as least, collect_list(n) as l, "
        "sort_array(collect_set(n)) as u, max_by(n, k) as b, collect_top(k, 2 by n desc) as top {complete};",
        {
            "g": "select t, f, first(n order by since, seq) as one, last(n order by since, seq) as other, "
            "first(n order by since, seq) filter (n is not null) as known, "
            "last(n order by since, seq) filter (n is not null) as least, "
            "coalesce(list(n order by since, seq) filter (n is not null), []) as l, "
            "coalesce(list_sort(list(distinct n) filter (n is not null)), []) as u, "
            "arg_max_null(n, k) as b, "
            "coalesce(list(k order by n desc, seq) filter (n is not null)[:2], []) as top "
            "from a where f is not null group by t, f"
        },
        {"g": ("f", "one, other, known, least, l, u, b, top")},
        frozenset("a"),
    ),
}
