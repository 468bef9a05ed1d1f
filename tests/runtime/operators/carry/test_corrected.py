"""`correct` that comes, goes or changes in an upgrade while records are in flight: what is corrected after it, by hand.

Before the upgrade rates of EUR@1 and records of 20, 30, 38 and 40 have come; after it a rate of 25 that corrects what
can be corrected then, and records of 50 and 100.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import Stores, chunks
from tests.oracle.epochs import EpochRow
from tests.runtime.operators.carry.carrying import carried, run
from vsc.changes import compare
from vsc.compiler import compile_topology
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.context import RunOptions

TEXT = """
table rates (currency string, rate int, at bigint) from files (path = 'r', format = 'json')
key currency timestamp at materialize versioned (retention = 1 hour);
stream payments (id string, other string, currency string, amount int, at bigint)
from files (path = 'p', format = 'json') key id timestamp at;
{kind} priced = left join payments with rates on currency {clauses} select {items};
{behind}
sink priced to files (path = 'o', format = 'json');
"""
ITEMS = "payments.currency as c, amount * rates.rate as usd"
CORRECT = "correct by id within {} ms"


def text(clauses: str, items: str = ITEMS, behind: str = "") -> str:
    """A topology with these clauses in its join."""
    kind = "table" if "correct" in clauses else "stream"
    return TEXT.format(kind=kind, clauses=clauses, items=items, behind=behind)


def rate(rate: int, at: int) -> EpochRow:
    """A version."""
    return EpochRow("rates", "f", at, {"currency": "EUR", "rate": rate, "at": at}, at)


def payment(id: str, at: int) -> EpochRow:
    """A payment of 10."""
    return EpochRow("payments", "f", at, {"id": id, "other": id * 2, "currency": "EUR", "amount": 10, "at": at}, at)


FIRST = [rate(1, 1), payment("a", 20), payment("b", 30), payment("c", 38), payment("d", 40)]
SECOND = [rate(2, 25), payment("e", 50), payment("f", 100)]


def stores_of(before: str, after: str) -> dict[str, str]:
    """The verdicts on stores that are not kept."""
    found = compare(*(compile_topology(one, path="t.vdsl") for one in (before, after)))
    return {one.name: one.verdict.value for one in found if one.kind == "store" and one.verdict.value != "keep"}


def upgraded(before: str, after: str, reset: tuple[str, ...] = (), accept: tuple[str, ...] = ()) -> dict[str, Any]:
    """What comes out of `priced` behind the upgrade, by key the second column and the time."""
    old, new = (compile_topology(one, path="t.vdsl") for one in (before, after))
    stores = Stores()
    run(old, [FIRST], stores, 2)
    state = carried(old, new, stores, 2, 3, reset, accept)
    sent = run(new, [SECOND], state, 3, drain=True)
    return {eval(key)[0]: rows for key, rows in sent.get("priced", {}).items()}


NEW = {"e": [(50, "('EUR', 20)")], "f": [(100, "('EUR', 20)")]}
CORRECTED = {name: [(at, "('EUR', 20)")] for name, at in (("b", 30), ("c", 38), ("d", 40))} | NEW


def test_what_was_joined_before_is_corrected_after_an_upgrade_that_changes_nothing() -> None:
    assert upgraded(text(CORRECT.format(20)), text(CORRECT.format(20))) == CORRECTED


@pytest.mark.parametrize(
    ("before", "after", "corrected"),
    [
        (20, 8, "cd"),  # 40 - 30 is more than 8
        (8, 20, "cd"),  # `b` was final
        (8, 9, "cd"),
        (20, 12, "bcd"),
    ],
)
def test_another_length_goes_from_then_on_and_what_was_final_stays_so(before: int, after: int, corrected: str) -> None:
    old, new = (text(CORRECT.format(length)) for length in (before, after))
    assert stores_of(old, new) == {"priced#corrected": "limits"}
    assert upgraded(old, new) == {name: rows for name, rows in CORRECTED.items() if name in corrected} | NEW


@pytest.mark.parametrize(("after", "not_corrected"), [(8, 2), (20, 1), (21, 1), (60, 1)])
def test_what_comes_for_results_that_were_final_before_counts(after: int, not_corrected: int) -> None:
    """When the clock is 40 at the upgrade, records from before 20 are final: those of the versions of 5 and 19."""
    old, new = (compile_topology(text(CORRECT.format(length)), path="t.vdsl") for length in (20, after))
    stores = Stores()
    run(old, [FIRST], stores, 2)
    state = carried(old, new, stores, 2, 3)
    runtime = LocalRuntime(new, state, [], 3, RunOptions(), starts=state.starts)
    runtime.process(chunks(new, [rate(3, 5), rate(4, 19), payment("x", 19), payment("y", 20)]))
    counted = runtime.metrics.as_dict()
    assert counted["late_versions"] == {"priced": 2}
    assert counted["grace_needed"] == {"priced": 36}
    assert counted["missed_lookups"] == {"priced": {"not_corrected": not_corrected}}


def test_records_of_before_are_not_corrected_by_a_correct_that_is_new() -> None:
    plain = text("")
    assert stores_of(plain, text(CORRECT.format(20))) == {"priced#corrected": "new"}
    assert upgraded(plain, text(CORRECT.format(20))) == NEW


def test_what_is_kept_is_left_behind_when_correct_goes() -> None:
    plain = text("")
    assert stores_of(text(CORRECT.format(20)), plain) == {"priced#corrected": "dropped"}
    assert upgraded(text(CORRECT.format(20)), plain) == {"EUR": [(50, "('EUR', 20)"), (100, "('EUR', 20)")]}


@pytest.mark.parametrize("adds", [True, False])
def test_what_waits_in_a_grace_is_decided_on_when_correct_comes_or_goes(adds: bool) -> None:
    both = text("grace 5 ms"), text(f"grace 5 ms {CORRECT.format(20)}")
    before, after = both if adds else both[::-1]
    assert stores_of(before, after)["priced#waiting"] == "rebuild"
    sent = upgraded(before, after, reset=("priced#waiting",))
    assert sent == (NEW if adds else {"EUR": [(50, "('EUR', 20)"), (100, "('EUR', 20)")]})


def test_a_grace_that_comes_goes_or_changes_in_a_corrected_join_loses_nothing() -> None:
    waiting, plain = text(f"grace 5 ms {CORRECT.format(20)}"), text(CORRECT.format(20))
    assert upgraded(waiting, waiting.replace("5 ms", "9 ms")) == CORRECTED
    assert upgraded(plain, waiting) == CORRECTED
    prompt = waiting.replace("5 ms", "0 ms")  # `c` and `d`, which have waited, go out first
    first = {name: [(at, "('EUR', 10)"), (at, "('EUR', 20)")] for name, at in (("c", 38), ("d", 40))}
    assert upgraded(waiting, prompt) == CORRECTED | first
    assert stores_of(waiting, plain) == {"priced#waiting": "rebuild"}


OTHER = CORRECT.format(20).replace("by id", "by other")
RENAMED = CORRECT.format(20).replace("by id", "by id as name")


@pytest.mark.parametrize("after", [text(OTHER), text(RENAMED)])
def test_records_whose_results_get_another_key_cannot_be_kept(after: str) -> None:
    before = text(CORRECT.format(20))
    assert stores_of(before, after) == {"priced#corrected": "rebuild"}
    with pytest.raises(ConfigurationError, match="cannot be kept"):
        upgraded(before, after, accept=("priced#corrected",))
    sent = upgraded(before, after, reset=("priced#corrected",))
    assert [at for rows in sent.values() for at, _ in rows] == [50, 100]


def test_results_that_are_kept_by_choice_are_corrected_by_the_new_items() -> None:
    before = text(CORRECT.format(20))
    after = text(CORRECT.format(20), ITEMS.replace("amount * rates.rate", "amount + rates.rate"))
    assert stores_of(before, after) == {"priced#corrected": "rebuild"}
    sent = upgraded(before, after, accept=("priced#corrected",))
    assert sent == {name: [(at, "('EUR', 12)")] for name, ((at, _),) in CORRECTED.items()}


CHAIN = """
table again = left join priced with rates on c correct within 20 ms select usd * rates.rate as usd;
sink again to files (path = 'a', format = 'json');
"""
SUMS = "table sums = aggregate priced group by c select count(*) as n, sum(usd) as usd; sink sums to noop ();"


def test_an_aggregate_is_not_filled_from_a_table_that_has_forgotten_rows() -> None:
    chain = text(CORRECT.format(20), behind=CHAIN)
    both = text(CORRECT.format(20), behind=CHAIN + SUMS)
    found = stores_of(chain, both)
    assert (found["priced"], found["sums"], found["sums#groups"]) == ("limits", "rebuild", "rebuild")
    assert (found["priced#expiring"], stores_of(both, chain)["priced#expiring"]) == ("dropped", "new")
    assert stores_of(both, chain)["priced"] == "limits"


@pytest.mark.parametrize("adds", [True, False])
def test_a_chain_goes_on_when_its_tables_begin_to_forget_or_do_so_no_longer(adds: bool) -> None:
    chain, both = text(CORRECT.format(20), behind=CHAIN), text(CORRECT.format(20), behind=CHAIN + SUMS)
    before, after = (chain, both) if adds else (both, chain)
    sent = upgraded(before, after, reset=("sums#groups", "sums") if adds else ())
    assert sent == CORRECTED
