"""What is computed from corrected results is right in the end, too, whatever stands in front of their join: joins of
tables, also with a foreign key, elements of arrays, aggregates of aggregates. DuckDB computes it over all input.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import duckdb
import pytest

from tests.random_topologies.seeds import seeds
from tests.random_topologies.test_corrected import FOUND, JOINED, fed, newest, rows_of
from vsc.testing import TopologyTestDriver

FRONTS = {
    "as it is": "stream pay = map payments select currency, amount;",
    "distinct": "stream pay = distinct payments by id within 1 minute;",
    "reorder": "stream pay = reorder payments within 15 ms;",
    "a join that waits": "table n = filter people where name > 'm'; stream found = left join payments with rates on "
    "currency grace 7 ms select id, amount; stream pay = rekey found by id;",
    "two sources": "stream pay = merge payments, more;",
}
"""What stands in front of the join."""
RIGHTS = {
    "table r = map rates select rate;": ("r.rate", "r.gone"),
    "table r = filter rates where rate % 2 = 1;": ("r.rate", "(r.gone or r.rate % 2 = 0)"),
    "table m = map rates select rate * 10 as rate; table r = filter m where rate > 30;":
        ("r.rate * 10", "(r.gone or r.rate <= 3)"),
    "table o = filter rates where rate > 2; table r = materialize o versioned (retention = 1 hour);":
        ("r.rate", "(r.gone or r.rate <= 2)"),
}  # fmt: skip
"""What it looks up in: with its rate, and whether there is none, in SQL."""

TEXT = """
table rates (currency string, rate int, at bigint, gone boolean)
from memory () key currency timestamp at delete when gone materialize versioned (retention = 1 hour);
table people (id string, name string, at bigint) from memory () key id timestamp at;
table titles (c string, title string, at bigint) from memory () key c timestamp at;
stream payments (id string, currency string, amount int, at bigint) from memory () key id timestamp at;
stream more (id string, currency string, amount int, at bigint) from memory () key id timestamp at;
{front} {right}
table priced = {mode} join pay with r on currency {grace} correct by id within {within} ms {before}
  select pay.currency as c, pay.amount * r.rate as usd, array(pay.amount, r.rate) as parts;
table own = left join priced with people select c, usd, name;
table known = join priced with people select usd, name;
table every = outer join priced with people select usd, name;
table titled = left join priced with titles on c select usd, title;
table by_title = aggregate titled group by coalesce(title, '-') as title select count(*) as n, sum(usd) as usd;
table elements = explode priced by parts as (place, part);
table by_part = aggregate elements group by coalesce(part, 0) as part select count(*) as n;
table sums = aggregate priced group by c select count(*) as n, max(usd) as most, count(distinct usd) as d;
table of_sums = aggregate sums group by n select count(*) as k, sum(most) as most;
table twice = join priced with own select priced.usd as a, own.usd as b;
table seldom = suppress priced until time limit 9 ms;
stream changes = to_stream priced;
table again = to_table changes;
"""
EXPECTED = {
    "own": "select id, c, usd, name from priced left join people using (id)",
    "known": "select id, usd, name from priced join people using (id)",
    "every": "select id, usd, name from priced full join people using (id)",
    "titled": "select id, usd, title from priced left join titles using (c)",
    "by_title": "select coalesce(title, '-'), count(*), sum(usd)::bigint from priced left join titles using (c) "
    "group by 1",
    "by_part": "select coalesce(part, 0), count(*) from (select unnest([amount, rate]) as part from priced) group by 1",
    "sums": "select c, count(*), max(usd), count(distinct usd) from priced group by 1",
    "of_sums": "select n, count(*), sum(most)::bigint "
    "from (select count(*) as n, max(usd) as most from priced group by c) group by 1",
    "twice": "select id, usd, usd from priced",
    "seldom": "select id, c, usd, [amount, rate] from priced",
    "again": "select id, c, usd, [amount, rate] from priced",
}
"""In SQL: first what names a row."""


@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 5))
@pytest.mark.slow
@pytest.mark.long
def test_what_is_computed_from_corrected_results_ends_as_batch_sql(seed: int) -> None:
    rng = random.Random(seed)
    front, (right, sql) = list(FRONTS)[seed % len(FRONTS)], rng.choice(list(RIGHTS.items()))
    within, disorder, mode = rng.choice((15, 20, 60)), rng.choice((0, 5, 15)), rng.choice(("left", ""))
    before, grace = rng.choice(("", "strictly before")), rng.choice(("", f"grace {rng.randint(0, within)} ms"))
    text = TEXT.format(
        front=FRONTS[front], right=right, mode=mode, grace=grace, within=within, before=before
    ) + "".join(f"sink {node} to memory (); " for node in EXPECTED)
    rows = sources(rng, front, rows_of(rng, within, disorder))
    with TopologyTestDriver(text, partitions=rng.choice((1, 2, 3, 5))) as driver:
        fed(driver, rng, rows)
        assert "priced" not in driver.metrics()["late_versions"]
        ends = {node: newest(driver, node) for node in EXPECTED}
    assert ends == batch(rows, JOINED if mode else JOINED + FOUND, before, *sql)


def sources(rng: random.Random, front: str, rows: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """The rows, some of them of the other source or repeated, and among them those of the other tables."""
    found: list[tuple[str, dict[str, Any]]] = []
    for source, row in rows:
        if source == "payments":
            found.append(("more" if front == "two sources" and rng.random() < 0.5 else source, row))
            found += [(source, row)] * (front == "distinct" and rng.random() < 0.3)
            if rng.random() < 0.4:
                found.append(("people", {"id": f"p{rng.randrange(60)}", "name": rng.choice("lmn"), "at": row["at"]}))
        else:
            found.append((source, row))
            if rng.random() < 0.3:
                found.append(("titles", {"c": row["currency"], "title": rng.choice("TUV"), "at": row["at"]}))
    return found


def batch(
    rows: Sequence[tuple[str, dict[str, Any]]], joined: str, before: str, rate: str, gone: str
) -> dict[str, dict[Any, Any]]:
    """What tables end as, by SQL over all rows."""
    last = {(source, row.get("id", row.get("c"))): (source, row) for source, row in rows if source != "rates"}
    with duckdb.connect(config={"threads": 1}) as db:
        db.execute("create table rates (currency text, rate int, t bigint, gone boolean)")
        db.execute("create table payments (id text, currency text, amount int, t bigint)")
        db.execute("create table people (id text, name text, t bigint)")
        db.execute("create table titles (c text, title text, t bigint)")
        for source, row in [*(one for one in rows if one[0] == "rates"), *last.values()]:
            table = "payments" if source == "more" else source
            db.execute(f"insert into {table} values ({', '.join('?' * len(row))})", list(row.values()))
        text = joined.format(sign=">" if before else ">=").replace("r.rate", rate).replace("r.gone", gone)
        text = text.replace(
            "p.t\n", f"p.t, p.amount, if(r.t is null or {gone}, null, {rate}) as rate, p.currency as c\n"
        )
        db.execute(f"create view priced as {text}")
        return {node: {(key,): tuple(rest) for key, *rest in db.sql(sql).fetchall()} for node, sql in EXPECTED.items()}
