"""The rows before a table's changes, where the table has no store: what is computed from it is right."""

from __future__ import annotations

import pytest

from vsc.testing import TopologyTestDriver

TABLES = """
table t (k bigint, n bigint, at bigint) from memory () key k timestamp timestamp_millis(at) {materialized};
table u (k bigint, n bigint, at bigint) from memory () key k timestamp timestamp_millis(at);
"""
UNVERSIONED, VERSIONED = "materialize unversioned", "materialize versioned (retention = 1 day)"


def counted(text: str, rows: list[tuple[int, int]]) -> list[int]:
    """How often each value of `rows` is counted in the end, of one key with these (n, time)."""
    with TopologyTestDriver(text + "sink counts to memory ();", on_error="drop") as driver:
        driver.pipe("u", {"k": 1, "n": 1, "at": 0})
        for n, at in rows:
            driver.pipe("t", {"k": 1, "n": n, "at": at})
        last = {str(record.key): record.value for record in driver.read("counts")}
    return [row["n"] for row in last.values() if row is not None]


@pytest.mark.parametrize("materialized", [UNVERSIONED, VERSIONED])
@pytest.mark.parametrize(
    "form",
    [
        "map t select event_time() as w",
        "filter p where event_time() = w",
        "join t as l with u as r select event_time() as w",
        "outer join u as l with t as r select event_time() as w",
        "left join t as l with u as r on l.n select event_time(l) as w",
        "left join t as l with u as r on unix_millis(event_time()) select l.at as w",
    ],
)
def test_a_row_is_taken_back_with_the_event_time_that_it_had(form: str, materialized: str) -> None:
    text = TABLES.format(materialized=materialized) + "table p = map t select event_time() as w;\n"
    text += f"table m = {form};\ntable counts = aggregate m group by w as w select count(*) as n;\n"
    assert counted(text, [(7, 1), (7, 2), (7, 3)]) == [1]


def test_behind_a_suppress_too() -> None:
    text = TABLES.format(materialized=UNVERSIONED) + (
        "table held = suppress t until time limit 0 ms;\n"
        "table m = map held select event_time() as w;\n"
        "table counts = aggregate m group by w as w select count(*) as n;\n"
    )
    assert counted(text, [(7, 1), (7, 2), (7, 3)]) == [1]


def test_a_filter_by_the_event_time_sends_the_deletion_of_a_row_that_fails_it_now() -> None:
    text = (
        TABLES.format(materialized=UNVERSIONED) + "table counts = filter t where event_time() = timestamp_millis(1);\n"
    )
    assert counted(text, [(7, 1)]) == [7]
    assert counted(text, [(7, 1), (7, 2)]) == []


@pytest.mark.parametrize("materialized", [UNVERSIONED, VERSIONED])
@pytest.mark.parametrize(
    "form",
    [
        "map t select 10 / n as w",
        "filter t where 10 / n > 0",
        "join t as l with u as r select 10 / l.n as w",
        "join u as l with t as r select 10 / r.n as w",
        "left join t as l with u as r on cast(10 / l.n as bigint) select l.n as w",
    ],
)
def test_a_change_on_which_an_expression_fails_takes_back_the_row_before_it(form: str, materialized: str) -> None:
    text = TABLES.format(materialized=materialized)
    text += f"table m = {form};\ntable counts = aggregate m group by 1 as one select count(*) as n;\n"
    assert counted(text, [(1, 1), (0, 2)]) == []
    assert counted(text, [(1, 1), (0, 2), (2, 3)]) == [1]
    assert counted(text, [(0, 1), (2, 2)]) == [1]
