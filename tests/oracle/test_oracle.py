"""The net itself: it sees what differs, it pins what it says, and whole columns are really at work in it."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from tests.oracle import Deleted, difference, oracle, shipped
from tests.oracle.engines import by_record
from tests.oracle.epochs import EpochRow
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan, Source
from vsc.runtime.operators.later_stage import LaterStage

SOURCES = {
    "s": "stream s (k string, f string, n bigint, at bigint) from memory () key k timestamp at;",
    "t": """table t (k string, f string, n bigint, at bigint) from memory () key k timestamp at
      materialize versioned (retention = 1 second);""",
    "u": "table u (k string, n bigint, at bigint) from memory () key k timestamp at;",
    "j": "stream j = join s with t select s.n as n, t.f as f;",
}
FORMS = {
    "filter": "stream x = filter j where 10 % n > 2;",
    "map": "stream x = map j select 10 % n as m, k as c;",
    "stream join": "stream x = join s with t select 10 % s.n + t.n as m;",
    "table join": "table x = left join t with u select 10 % t.n as m, u.n as n;",
    "foreign key": "table x = join t with u on t.f select 10 % t.n + u.n as m;",
    "table map": "table x = map t select 10 % n as m materialize unversioned;",
    "table filter": "table x = filter t where 10 % n > 2 materialize versioned (retention = 1 second);",
    "to_table": "table x = to_table j delete when 10 % n > 2;",
    "aggregate": "table x = aggregate s group by k select sum(10 % n) as m, count(*) as c;",
    "result": "table x = aggregate s group by k select 10 % sum(n % 5) as m;",
    "windows": "table x = aggregate s group by k window tumbling (size = 20 ms) select max(10 % n) as m;",
    "final": """table x = aggregate s group by k window hopping (size = 20 ms, advance = 10 ms) emit final
      select 10 % sum(n % 5) as m, min(n) as n;""",
}
ON_COLUMNS = ("stream join", "table join", "foreign key", "aggregate", "windows")


def plan_of(form: str) -> Plan:
    statements = FORMS[form]
    for name in "jsut":  # what the form reads, and what that reads
        if re.search(rf"\b{name}\b", statements):
            statements = SOURCES[name] + statements
    return compile_topology(statements + "sink x to memory ();", path="t.vdsl")


def epochs(plan: Plan, seed: int, zeros: float) -> list[list[EpochRow]]:
    rng, clock, found = random.Random(seed), 0, []
    sources = [n.name for n in plan.nodes if isinstance(n.operation, Source)]
    for _ in range(2):
        epoch = []
        for offset in range(700):
            clock += rng.random() < 0.3
            source = sources[offset % len(sources)]
            number = 0 if rng.random() < zeros else rng.choice((1, 2, 3, 7, None))
            key, at = rng.choice(("", "a", "ß", *map(str, range(20)))), max(0, clock - rng.choice((0, 0, 0, 9)))
            row = {"k": key, "f": rng.choice(("", "a", None, "3")), "n": number, "at": at}
            epoch.append(EpochRow(source, "", offset, Deleted(k=key) if rng.random() < 0.05 else row, at))
        found.append(epoch)
    return found


@pytest.mark.quick(8)
@pytest.mark.parametrize("on_error", ["drop", "fail"])
@pytest.mark.parametrize("form", FORMS)
def test_expressions_that_fail_on_a_few_rows(form: str, on_error: str) -> None:
    plan = plan_of(form)
    history = epochs(plan, 1, 0.02)
    expected = oracle(plan, history, ["x"], on_error=on_error, single=False)
    assert (expected.failure is not None) == (on_error == "fail")
    assert not difference(shipped(plan, history, ["x"], on_error=on_error), expected, in_sequence=True)
    if on_error == "drop":
        assert expected.metrics["dropped_records"]["x"]["expression_failed"] > 0


@pytest.mark.parametrize("form", ON_COLUMNS)
def test_whole_columns_are_at_work(form: str) -> None:
    plan = plan_of(form)
    history = epochs(plan, 2, 0)
    found = shipped(plan, history, ["x"])
    assert found.ran.largest > 512
    assert found.ran.columns.total() > 1000
    assert not found.ran.records.total()
    expected = oracle(plan, history, ["x"], single=False)
    assert expected.ran.records.total() > 1000
    assert not difference(found, expected, in_sequence=True)


def test_a_difference_is_seen_in_results_order_metrics_and_state() -> None:
    plan = plan_of("aggregate")
    history = epochs(plan, 3, 0)
    found, again = shipped(plan, history, ["x"]), shipped(plan, history, ["x"])
    assert not difference(found, again, in_sequence=True)
    last = again.outcome["x"]
    last[0], last[1] = last[1], last[0]
    assert difference(found, again, in_sequence=True).startswith("x: ")
    assert not difference(found, again, in_sequence=False)
    less = shipped(plan, history[:1], ["x"])
    assert "records, not" in difference(less, found, in_sequence=False)
    assert difference(replace(found, metrics={}), found, True).startswith("metrics")
    assert difference(replace(found, state=({}, {})), found, True).startswith("state of (1, 0, 'x', 'beside')")


def test_the_wrong_engine_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of("aggregate")
    history = epochs(plan, 4, 0)
    monkeypatch.setattr("tests.oracle.playing.on_columns", by_record)
    with pytest.raises(AssertionError):
        shipped(plan, history, ["x"])
    monkeypatch.undo()
    monkeypatch.setattr(LaterStage, "process", lambda self, inputs, drain: pytest.fail("not by record"))
    oracle(plan, history[:1], ["x"])
