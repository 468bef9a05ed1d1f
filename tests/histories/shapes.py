"""Shapes of complete histories: statements that make tables, and the same in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["APART", "SHAPES", "Shape"]

APART = 1_000_000
"""How far apart the times of worlds are in SQL, so that rows of one are not those of the moments of another."""


@dataclass(frozen=True)
class Shape:
    """Statements that make tables, with the same in SQL; `{complete}` stands for the clause of a complete history.

    `complete` has the tables whose history is checked, with their key and the columns of their values. In the SQL,
    each table is read with the moment `t`; its rows have `since`, from when they are valid, and `seq`, their arrival.
    `apart`: all keys and groups belong to a world.
    """

    text: str
    views: Mapping[str, str]
    complete: Mapping[str, tuple[str, str]]
    reads: frozenset[str] = field(default=frozenset("ab"))
    apart: bool = True

    @property
    def together(self) -> int:
        """How many seeds a run has: groups that worlds share make each of them slower."""
        return 40 if self.apart else 5

    def base(self, key: Any) -> int:
        """From where on times of the key's world are in SQL."""
        return APART * int(key[1:]) if self.apart else 0


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
        apart=False,
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
        apart=False,
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
