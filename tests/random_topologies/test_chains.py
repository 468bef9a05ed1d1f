"""Chains of corrected joins are right in the end: order lines with price, customer and exchange rate, whose versions
come late in any order, give what batch SQL gives over all input. DuckDB computes that by its own ASOF JOIN.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import duckdb
import pytest

from tests.oracle import Stores
from tests.oracle.epochs import EpochRow
from tests.random_topologies.seeds import seeds
from tests.random_topologies.test_corrected import CALLS, newest, window_of
from tests.runtime.operators.carry.carrying import carried
from tests.runtime.operators.carry.test_random import played
from vsc.compiler import compile_topology
from vsc.testing import TopologyTestDriver

TEXT = """
table prices (sku string, price int, at bigint, gone boolean)
from memory () key sku timestamp at delete when gone materialize versioned (retention = 1 hour);
table customers (customer string, country string, at bigint, gone boolean)
from memory () key customer timestamp at delete when gone materialize versioned (retention = 1 hour);
table rates (country string, rate int, at bigint, gone boolean)
from memory () key country timestamp at delete when gone materialize versioned (retention = 1 hour);
stream lines (id int, sku string, customer string, n int, at bigint) from memory ()
key id timestamp at {reorder};

table priced = {modes[0]} join lines with prices on sku {grace} correct by id within {within[0]} ms {before[0]}
  select customer, n * price as amount;
table placed = {modes[1]} join priced with customers on customer correct {by} within {within[1]} ms {before[1]}
  select priced.customer as buyer, country, amount;
{between}
table done = {modes[2]} join {of} with rates on country correct within {within[2]} ms {before[2]}
  select buyer, {of}.country as c, amount * rate as usd;
table sums = aggregate done group by coalesce(c, '-') as c select count(*) as n, sum(usd) as usd;
table windows = aggregate done group by coalesce(c, '-') as c window {window} emit final select {calls};

stream waited0 = {modes[0]} join lines with prices on sku grace {within[0]} ms {before[0]}
  select id, customer, n * price as amount;
stream waited1 = {modes[1]} join waited0 with customers on customer grace {within[1]} ms {before[1]}
  select id, country, amount, waited0.customer as buyer;
{between_streams}
stream waited2 = {modes[2]} join {of_stream} with rates on country grace {within[2]} ms {before[2]}
  select id, {of_stream}.country as c, amount * rate as usd;
table same = aggregate waited2 group by coalesce(c, '-') as c window {window} emit final select {calls};
sink priced to memory (); sink placed to memory (); sink done to memory (); sink sums to memory ();
sink windows to memory (); sink same to memory ();
"""
BETWEEN = """
{kind} doubled{n} = map {of} select {more}country, amount * 2 as amount;
{kind} some{n} = filter doubled{n} where coalesce(amount, 1) % 3 > 0;
"""
SQL = """
create view priced as
  select l.id, l.customer, l.n * if(r.gone, null, r.price) as amount, l.t, {found} as found
  from lines l asof left join prices r on l.sku = r.sku and l.t {signs[0]} r.t {where[0]};
create view placed as
  select l.id, l.customer as buyer, if(r.gone, null, r.country) as country, l.amount, l.t, {found} as found
  from priced l asof left join customers r on l.customer = r.customer and l.t {signs[1]} r.t {where[1]};
create view kept as {kept};
create view done as
  select l.id, l.buyer, l.country as c, l.amount * if(r.gone, null, r.rate) as usd, l.t, {found} as found
  from kept l asof left join rates r on l.country = r.country and l.t {signs[2]} r.t {where[2]};
create view joined as select coalesce(c, '-') as currency, t, usd from done;
"""
FOUND = "(r.t is not null and not r.gone)"
COLUMNS = {"prices": ("sku", "price"), "customers": ("customer", "country"), "rates": ("country", "rate")}
TABLES = {"prices": ("a", "b", "c"), "customers": ("x", "y"), "rates": ("DE", "US")}


class Setting(NamedTuple):
    """What a seed decides about the topology: for each of the joins its mode, its length, whether it is `strictly
    before`; whether there is something between the joins, and how late lines come."""

    modes: Sequence[str]
    within: Sequence[int]
    before: Sequence[str]
    between: bool
    disorder: int
    grace: str
    reorder: str
    window: tuple[str, str]

    @classmethod
    def of(cls, rng: random.Random, seed: int) -> Setting:
        """A random one."""
        within, disorder = [rng.choice((10, 30, 60)) for _ in range(3)], rng.choice((0, 5, 10))
        modes = [rng.choice(("left", "left", "")) for _ in range(3)]
        before = [rng.choice(("", "", "strictly before")) for _ in range(3)]
        grace = rng.choice(("", "", f"grace {rng.randint(0, within[0])} ms"))
        reorder = rng.choice(("", f"reorder within {rng.randint(disorder, 20)} ms"))
        window = window_of(rng, seed, disorder)
        return cls(modes, within, before, rng.random() < 0.5, disorder, grace, reorder, window)

    def text(self, rng: random.Random) -> str:
        """The topology."""
        forms = [BETWEEN.format(kind=k, n=n, of=of, more=more) if self.between else "" for k, n, of, more in
                 (("table", "", "placed", "buyer, "), ("stream", "s", "waited1", "id, buyer, "))]  # fmt: skip
        return TEXT.format(
            **self._asdict() | {"between": forms[0], "window": self.window[0]}, calls=CALLS,
            between_streams=forms[1], by=rng.choice(("", "by id")),
            of="some" if self.between else "placed", of_stream="somes" if self.between else "waited1",
        )  # fmt: skip

    def sql(self) -> str:
        """The views that give what tables end as."""
        signs, where = (
            [">" if one else ">=" for one in self.before],
            ["" if one else f"where {FOUND}" for one in self.modes],
        )
        doubled = "select * replace (amount * 2 as amount) from placed where coalesce(amount * 2, 1) % 3 > 0"
        kept = doubled if self.between else "select * from placed"
        return SQL.format(signs=signs, where=where, kept=kept, found=FOUND)


class Arrived(NamedTuple):
    """A row of a source, and when it comes."""

    at: int
    source: str
    row: dict[str, Any]


def rows_of(rng: random.Random, setting: Setting, lengths: Sequence[int]) -> list[Arrived]:
    """Lines and versions as they come: versions as late as their join, and those before it, allow."""
    found: list[tuple[int, int, str, dict[str, Any]]] = []
    late = 0
    for (table, keys), within in zip(TABLES.items(), lengths, strict=True):
        late += within
        for key in keys:
            for at in rng.sample(range(160), 8):
                value = rng.choice(TABLES["rates"]) if table == "customers" else rng.randint(1, 9)
                row: dict[str, Any] = dict(zip(COLUMNS[table], (key, value), strict=True))
                row |= {"at": at, "gone": rng.random() < 0.15}
                found.append((at + rng.choice((0, rng.randrange(late))), len(found), table, row))
    for number in range(40):
        at, customer = rng.randrange(170), rng.choice((*TABLES["customers"], *TABLES["customers"], None))
        row = {
            "id": number,
            "sku": rng.choice(TABLES["prices"]),
            "customer": customer,
            "n": rng.randint(1, 9),
            "at": at,
        }
        found.append((at + rng.randint(0, setting.disorder), len(found), "lines", row))
    return [Arrived(at, source, row) for at, _, source, row in sorted(found, key=lambda one: one[:2])]


@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 6))
@pytest.mark.slow
@pytest.mark.long
def test_a_chain_of_corrected_joins_ends_as_batch_sql_and_its_windows_are_those_of_grace(seed: int) -> None:
    rng = random.Random(seed)
    setting = Setting.of(rng, seed)
    rows = rows_of(rng, setting, setting.within)
    left = list(rows)
    with TopologyTestDriver(setting.text(rng), partitions=rng.choice((1, 2, 2, 3, 4, 8))) as driver:
        while left:
            count = rng.choice((1, 3, 20, 40))
            if rng.random() < 0.2:
                driver.restart()
            if rng.random() < 0.1:
                driver.quiet(left[0].at)
            with driver.batch():
                for _, source, row in left[:count]:
                    driver.pipe(source, row)
            del left[:count]
        driver.drain()
        counted = driver.metrics()
        ends = {node: newest(driver, node) for node in ("priced", "placed", "done", "sums")}
        final, same = ([(r.key, r.value, r.timestamp) for r in driver.read(n)] for n in ("windows", "same"))
    assert not counted["late_versions"].keys() & {"priced", "placed", "done"}
    expected = batch(rows, setting)
    windows = {tuple(key.values()): tuple((value or {}).values()) for key, value, _ in final}
    assert {**ends, "windows": windows} == expected
    assert len(final) == len(windows)
    assert sorted(final, key=str) == sorted(same, key=str)


@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 4))
@pytest.mark.slow
@pytest.mark.long
def test_it_ends_so_when_the_lengths_change_on_the_way_as_well(seed: int) -> None:
    rng = random.Random(seed)
    setting = Setting.of(rng, seed)
    other = Setting.of(rng, seed)
    changed = setting._replace(
        within=other.within, grace=f"grace {rng.randint(0, min(setting.within[0], other.within[0]))} ms"
    )
    if setting.grace:
        setting = setting._replace(grace=f"grace {rng.randint(0, min(setting.within[0], other.within[0]))} ms")
    rows = rows_of(rng, setting, [min(both) for both in zip(setting.within, other.within, strict=True)])
    old, new = (compile_topology(one.text(random.Random(seed)), path="t.vdsl") for one in (setting, changed))
    at, before, after = rng.randrange(len(rows)), rng.randint(1, 4), rng.randint(1, 4)
    epochs = [[EpochRow(source, "", number, row, row["at"])] for number, (_, source, row) in enumerate(rows)]
    first, stores = _epochs(rng, epochs[:at]), Stores()
    sent = played(old, first, stores, before, drain=False)
    stores = carried(old, new, stores, before, after)
    behind = played(new, _epochs(rng, epochs[at:]), stores, after, drain=True)
    expected = batch(rows, setting)
    for node in ("priced", "placed", "done", "sums"):
        last = {key: found[-1][1] for one in (sent, behind) for key, found in one.get(node, {}).items()}
        assert {key: value for key, value in last.items() if value is not None} == {
            repr(key): repr(value) for key, value in expected[node].items()
        }, node
    final = [value for one in (sent, behind) for found in one.get("windows", {}).values() for _, value in found]
    assert sorted(final) == sorted(map(repr, expected["windows"].values()))


def _epochs(rng: random.Random, rows: Sequence[list[EpochRow]]) -> list[list[EpochRow]]:
    """The rows in epochs of random sizes."""
    found: list[list[EpochRow]] = []
    for row in rows:
        if not found or rng.random() < 0.05:
            found.append([])
        found[-1] += row
    return found


def batch(rows: Sequence[Arrived], setting: Setting) -> dict[str, dict[Any, Any]]:
    """What tables end as, by SQL over all rows."""
    with duckdb.connect(config={"threads": 1}) as db:
        db.execute("create table prices (sku text, price int, t bigint, gone boolean)")
        db.execute("create table customers (customer text, country text, t bigint, gone boolean)")
        db.execute("create table rates (country text, rate int, t bigint, gone boolean)")
        db.execute("create table lines (id int, sku text, customer text, n int, t bigint)")
        for _, source, row in rows:
            db.execute(f"insert into {source} values ({', '.join('?' * len(row))})", list(row.values()))
        for view in setting.sql().split(";")[:-1]:
            db.execute(view)
        columns = {"priced": "customer, amount", "placed": "buyer, country, amount", "done": "buyer, c, usd"}
        found = {table: db.sql(f"select id, {names} from {table}").fetchall() for table, names in columns.items()}
        sums = db.sql("select coalesce(c, '-'), count(*), sum(usd)::bigint from done group by 1").fetchall()
        windows = db.sql(setting.window[1]).fetchall()

    def moment(ms: int) -> datetime:
        return datetime.fromtimestamp(ms / 1000, UTC)

    return {
        **{table: {(id,): tuple(values) for id, *values in given} for table, given in found.items()},
        "sums": {(c,): (n, usd) for c, n, usd in sums},
        "windows": {(c, moment(begin), moment(end)): tuple(values) for c, begin, end, *values in windows},
    }
