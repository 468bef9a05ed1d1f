"""Corrected joins are right in the end: random rows, with versions that come up to D late, give what batch SQL gives.

DuckDB computes the expected rows over all input at once, by its own ASOF JOIN and GROUP BY. And what final windows give
behind `correct` is, record by record, what they give behind `grace D`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest

from tests.random_topologies.seeds import seeds
from vsc.testing import TopologyTestDriver

TEXT = """
table rates (currency string, rate int, at bigint, gone boolean)
from memory () key currency timestamp at delete when gone
materialize versioned (retention = 1 hour);
stream payments (id string, currency string, amount int, at bigint) from memory () key id timestamp at;
table priced =
  {mode} join payments with rates on currency {grace} correct by id within {within} ms {before}
  select payments.currency as c, amount * rates.rate as usd;
stream waited =
  {mode} join payments with rates on currency grace {within} ms {before}
  select payments.currency as c, amount * rates.rate as usd;
table sums = aggregate priced group by c select count(*) as n, sum(usd) as usd;
table now = aggregate priced group by c window {window} select {calls};
table closed = suppress now until window closes;
table final = aggregate priced group by c window {window} emit final select {calls};
table same = aggregate waited group by c window {window} emit final select {calls};
sink priced to memory (); sink sums to memory (); sink now to memory (); sink closed to memory ();
sink final to memory (); sink same to memory ();
"""
CALLS = "count(*) as n, sum(usd) as usd, max(usd) as most"
WINDOWS = """
select currency, start, start + {size}, count(*), sum(usd)::bigint, max(usd)
from joined, generate_series(0, 500, {advance}) as s(start)
where t >= start and t < start + {size} group by all
"""
SESSIONS = """
select c, min(t), max(t), count(*), sum(usd)::bigint, max(usd) from (
  select *, sum(begins) over (partition by c order by t) as number from (
    select currency as c, t, usd, (t - lag(t) over (partition by currency order by t) > {gap}) is not false as begins
    from joined))
group by c, number
"""
SLIDING = """
select s.c, start, start + {size}, count(*), sum(usd)::bigint, max(usd)
from (
  select currency as c, greatest(t - {size}, 0) as start from joined
  union select a.currency, a.t + 1 from joined a join joined b
    on a.currency = b.currency and b.t between a.t + 1 and a.t + 1 + {size}
) s join joined j on j.currency = s.c and j.t between start and start + {size}
group by all
"""
JOINED = """
select p.id, p.currency, p.amount * if(r.gone, null, r.rate) as usd, p.t
from payments p asof left join rates r on p.currency = r.currency and p.t {sign} r.t
"""
FOUND = "where r.t is not null and not r.gone"
CURRENCIES = ("EUR", "USD", "GBP")


def rows_of(rng: random.Random, within: int, disorder: int) -> list[tuple[str, dict[str, Any]]]:
    """Rates and payments as they come: versions up to `within` late, payments up to `disorder`."""
    found: list[tuple[int, int, str, dict[str, Any]]] = []
    for currency in CURRENCIES:
        for at in rng.sample(range(140), 9):
            row = {"currency": currency, "rate": rng.randint(1, 9), "at": at, "gone": rng.random() < 0.15}
            found.append((at + rng.choice((0, rng.randrange(within))), len(found), "rates", row))
    for number in range(50):
        at = rng.randrange(150)
        row = {"id": f"p{number}", "currency": rng.choice(CURRENCIES), "amount": rng.randint(1, 99), "at": at}
        found.append((at + rng.randint(0, disorder), len(found), "payments", row))
    return [(source, row) for _, _, source, row in sorted(found, key=lambda one: one[:2])]


def newest(driver: TopologyTestDriver, node: str) -> dict[Any, Any]:
    """What a table ends as: by key its values, and the time if it has no groups."""
    found: dict[Any, Any] = {}
    for record in driver.read(node):
        key = tuple(record.key.values())
        if record.value is None:
            found.pop(key, None)
        else:
            found[key] = tuple(record.value.values())
    return found


def fed(driver: TopologyTestDriver, rng: random.Random, rows: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Hands the rows to the driver in random epochs, with restarts between some of them, to the end of the input."""
    left = list(rows)
    while left:
        count = rng.choice((1, 3, 20, 40))
        if rng.random() < 0.2:
            driver.restart()
        with driver.batch():
            for source, row in left[:count]:
                driver.pipe(source, row)
        del left[:count]
    driver.drain()


def window_of(rng: random.Random, seed: int, disorder: int) -> tuple[str, str]:
    """The clause of a window, and its rows in SQL: seeds have tumbling or hopping, session and sliding ones in turn."""
    gap, size = rng.choice((2, 3, 5)), rng.choice((10, 30))
    advance = rng.choice((size, size // 2))
    shape, sql = (
        (f"tumbling (size = {size} ms", WINDOWS.format(size=size, advance=size))
        if advance == size
        else (f"hopping (size = {size} ms, advance = {advance} ms", WINDOWS.format(size=size, advance=advance)),
        (f"session (gap = {gap} ms", SESSIONS.format(gap=gap)),
        (f"sliding (difference = {gap} ms", SLIDING.format(size=gap)),
    )[seed % 3]
    return f"{shape}, grace = {disorder} ms)", sql


@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 6))
@pytest.mark.quick(1)
@pytest.mark.long
def test_corrected_results_are_those_of_batch_sql_and_final_windows_those_of_grace(seed: int) -> None:
    rng = random.Random(seed)
    within, disorder, mode = rng.choice((20, 60)), rng.choice((0, 5, 15)), rng.choice(("left", ""))
    before = rng.choice(("", "strictly before"))
    window, sql = window_of(rng, seed, disorder)
    grace = rng.choice(("", "", f"grace {rng.randint(0, within)} ms"))
    rows = rows_of(rng, within, disorder)
    text = TEXT.format(mode=mode, within=within, before=before, window=window, grace=grace, calls=CALLS)
    with TopologyTestDriver(text, partitions=rng.choice((1, 2, 2, 3, 4, 8))) as driver:
        fed(driver, rng, rows)
        counted = driver.metrics()
        ends = {node: newest(driver, node) for node in ("priced", "sums", "now", "closed")}
        final, same = ([(r.key, r.value, r.timestamp) for r in driver.read(n)] for n in ("final", "same"))
    assert not counted["dropped_records"].keys() - ({"priced", "waited"} if mode == "" else set())
    assert "priced" not in counted["late_versions"]
    expected = batch(rows, mode, before, sql)
    windows = {tuple(key.values()): tuple((value or {}).values()) for key, value, _ in final}
    assert {**ends, "final": windows} == {**expected, "now": expected["closed"], "final": expected["closed"]}
    assert len(final) == len(windows)
    if seed % 3 == 0:
        assert final == same
    assert sorted(final, key=str) == sorted(same, key=str)  # sessions and sliding windows of one moment have no order


def batch(
    rows: Sequence[tuple[str, dict[str, Any]]], mode: str, before: str, windows: str
) -> dict[str, dict[Any, Any]]:
    """What tables end as, by SQL over all rows."""
    with duckdb.connect(config={"threads": 1}) as db:
        db.execute("create table rates (currency text, rate int, t bigint, gone boolean)")
        db.execute("create table payments (id text, currency text, amount int, t bigint)")
        for source, row in rows:
            db.execute(f"insert into {source} values (?, ?, ?, ?)", list(row.values()))
        joined = JOINED.format(sign=">" if before else ">=")
        db.execute(f"create view joined as {joined if mode == 'left' else joined + FOUND}")
        priced = db.sql("select id, currency, usd from joined").fetchall()
        sums = db.sql("select currency, count(*), sum(usd)::bigint from joined group by 1").fetchall()
        closed = db.sql(windows).fetchall()

    def moment(ms: int) -> datetime:
        return datetime.fromtimestamp(ms / 1000, UTC)

    return {
        "priced": {(id,): (c, usd) for id, c, usd in priced},
        "sums": {(c,): (n, usd) for c, n, usd in sums},
        "closed": {(c, moment(begin), moment(end)): tuple(values) for c, begin, end, *values in closed},
    }
