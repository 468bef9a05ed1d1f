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
table now = aggregate priced group by c window {window} select count(*) as n, sum(usd) as usd;
table final = aggregate priced group by c window {window} emit final select count(*) as n, sum(usd) as usd;
table closed = suppress now until window closes;
table same = aggregate waited group by c window {window} emit final select count(*) as n, sum(usd) as usd;
table gaps = aggregate priced group by c window {gap} select count(*) as n, sum(usd) as usd, max(usd) as most;
table gaps_closed = suppress gaps until window closes;
table gaps_final =
  aggregate priced group by c window {gap} emit final select count(*) as n, sum(usd) as usd, max(usd) as most;
table gaps_same =
  aggregate waited group by c window {gap} emit final select count(*) as n, sum(usd) as usd, max(usd) as most;
table slides = aggregate priced group by c window {slide} select count(*) as n, sum(usd) as usd, max(usd) as most;
table slides_closed = suppress slides until window closes;
table slides_final =
  aggregate priced group by c window {slide} emit final select count(*) as n, sum(usd) as usd, max(usd) as most;
table slides_same =
  aggregate waited group by c window {slide} emit final select count(*) as n, sum(usd) as usd, max(usd) as most;
sink priced to memory (); sink sums to memory (); sink final to memory (); sink same to memory ();
sink closed to memory (); sink gaps to memory (); sink gaps_closed to memory (); sink gaps_final to memory ();
sink gaps_same to memory (); sink slides to memory (); sink slides_closed to memory (); sink slides_final to memory ();
sink slides_same to memory ();
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
        for at in rng.sample(range(400), 25):
            row = {"currency": currency, "rate": rng.randint(1, 9), "at": at, "gone": rng.random() < 0.15}
            found.append((at + rng.choice((0, rng.randrange(within))), len(found), "rates", row))
    for number in range(150):
        at = rng.randrange(420)
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


@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 6))
@pytest.mark.quick(2)
@pytest.mark.long
def test_corrected_results_are_those_of_batch_sql_and_final_windows_those_of_grace(seed: int) -> None:
    rng = random.Random(seed)
    within, disorder, mode = rng.choice((20, 60)), rng.choice((0, 5, 15)), rng.choice(("left", ""))
    before, size = rng.choice(("", "strictly before")), rng.choice((10, 30))
    advance = rng.choice((size, size // 2))
    shape = f"tumbling (size = {size} ms" if advance == size else f"hopping (size = {size} ms, advance = {advance} ms"
    window = f"{shape}, grace = {disorder} ms)"
    grace = rng.choice(("", "", f"grace {rng.randint(0, within)} ms"))
    rows = rows_of(rng, within, disorder)
    left = list(rows)
    gap = rng.choice((2, 3, 5))
    gaps, slides = (f"{kind} = {gap} ms, grace = {disorder} ms)" for kind in ("session (gap", "sliding (difference"))
    text = TEXT.format(mode=mode, within=within, before=before, window=window, grace=grace, gap=gaps, slide=slides)
    with TopologyTestDriver(text, partitions=rng.randint(1, 8)) as driver:
        while left:
            count = rng.choice((1, 3, 20, 60))
            if rng.random() < 0.2:
                driver.restart()
            with driver.batch():
                for source, row in left[:count]:
                    driver.pipe(source, row)
            del left[:count]
        driver.drain()
        counted = driver.metrics()
        moving = ("gaps", "gaps_closed", "slides", "slides_closed")
        ends = {node: newest(driver, node) for node in ("priced", "sums", "closed", *moving)}
        final, same = ([(r.key, r.value, r.timestamp) for r in driver.read(n)] for n in ("final", "same"))
        finals = {kind: driver.read(f"{kind}_final") for kind in ("gaps", "slides")}
        sames = {kind: driver.read(f"{kind}_same") for kind in ("gaps", "slides")}
    assert not counted["dropped_records"].keys() - ({"priced", "waited"} if mode == "" else set())
    assert "priced" not in counted["late_versions"]
    expected = batch(rows, mode, before, size, advance, gap)
    assert ends["priced"] == expected["priced"]
    assert ends["sums"] == expected["sums"]
    assert ends["closed"] == expected["windows"]
    assert {tuple(key.values()): tuple((value or {}).values()) for key, value, _ in final} == expected["windows"]
    assert len(final) == len(expected["windows"])
    assert final == same
    for kind in ("gaps", "slides"):
        assert ends[kind] == ends[f"{kind}_closed"] == expected[kind]
        assert len(finals[kind]) == len(expected[kind])
        assert sorted(finals[kind], key=str) == sorted(sames[kind], key=str)  # those of one moment have no order


def batch(
    rows: Sequence[tuple[str, dict[str, Any]]], mode: str, before: str, size: int, advance: int, gap: int
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
        windows = db.sql(f"""
            select currency, start, start + {size}, count(*), sum(usd)::bigint
            from joined, generate_series(0, 500, {advance}) as s(start)
            where t >= start and t < start + {size} group by all
        """).fetchall()
        moving = {
            "gaps": db.sql(SESSIONS.format(gap=gap)).fetchall(),
            "slides": db.sql(SLIDING.format(size=gap)).fetchall(),
        }

    def moment(ms: int) -> datetime:
        return datetime.fromtimestamp(ms / 1000, UTC)

    return {
        "priced": {(id,): (c, usd) for id, c, usd in priced},
        "sums": {(c,): (n, usd) for c, n, usd in sums},
        "windows": {(c, moment(begin), moment(end)): (n, usd) for c, begin, end, n, usd in windows},
        **{
            kind: {(c, moment(begin), moment(end)): tuple(values) for c, begin, end, *values in found}
            for kind, found in moving.items()
        },
    }
