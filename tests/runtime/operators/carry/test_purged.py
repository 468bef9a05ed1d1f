"""Keys that are purged: no byte of their rows stays, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import Stores
from tests.runtime.operators.carry.carrying import SENT, carried, compiled, content, epoch, run
from tests.runtime.operators.carry.test_carry import FIRST, NODES, SECOND, SOURCES, STREAM, text
from vsc.plan.nodes import Plan
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.carry import Carry, Purged, computed_from, purged
from vsc.runtime.operators.views.catalog import find_store, open_view, stores_of

PARTITIONS = 3
WORD = "key-of-a"
FOREIGN = SOURCES + "table named_ = left join t with p on cast(t.w as string) select t.w as tw, p.w as pw;\n"
BY_K = sorted(set(NODES) - {"by_v", "merged", "moved", "sums"})
"""The nodes whose stores all have the key k."""


def named(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows with keys that can be found among all bytes."""
    return [(source, f"key-of-{key}", *rest) for source, key, *rest in rows]


def mentions(plan: Plan, stores: Stores) -> int:
    """How many rows of all stores have the key that is purged anywhere, as key or in a value."""
    places = [(stage.id, partition) for stage in plan.stages[1:] for partition in range(PARTITIONS)]
    word = WORD.encode()
    return sum(word in key or word in value for place in places for key, value in stores(*place).scan(b"", None))


def left_out(plan: Plan, *stores: str, **key: Any) -> Purged:
    return purged(plan, [(find_store(plan, store), key or {"k": WORD}) for store in stores])


def by_k(plan: Plan) -> list[str]:
    return sorted({store.name for store in stores_of(plan) if store.key[0].name == "k"})


def after_first(plan: Plan) -> Stores:
    stores = Stores()
    run(plan, [epoch(plan, named(FIRST))], stores, PARTITIONS)
    assert mentions(plan, stores) > 0
    return stores


def held(plan: Plan, stores: Stores) -> dict[tuple[str, int], int]:
    """How much each store and partition says that it holds back."""
    return {
        (store.name, partition): open_view(plan, store, stores(store.stage, partition), stores.starts).held
        for store in stores_of(plan)
        for partition in range(PARTITIONS)
    }


def of_others(plan: Plan, stores: Stores) -> SENT:
    """What comes out later for all keys but the purged one."""
    sent = run(plan, [epoch(plan, named(SECOND), len(FIRST))], stores, PARTITIONS)
    return {node: {key: found for key, found in of.items() if WORD not in repr(key)} for node, of in sent.items()}


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", BY_K)
def test_no_byte_of_a_purged_key_stays_and_all_others_go_on_as_before(name: str) -> None:
    plan = compiled(text(*(("counts", "held") if name == "held" else (name,))))
    stores = after_first(plan)
    without = carried(plan, plan, stores, PARTITIONS, PARTITIONS, left_out=left_out(plan, *by_k(plan)))
    whole = carried(plan, plan, stores, PARTITIONS, PARTITIONS)
    assert mentions(plan, without) == 0
    kept = content(plan, whole, PARTITIONS)
    assert content(plan, without, PARTITIONS) == {
        store: [row for row in rows if WORD.encode() not in row[1]] for store, rows in kept.items()
    }
    never = Stores()
    run(plan, [epoch(plan, [row for row in named(FIRST) if row[1] != WORD])], never, PARTITIONS)
    assert held(plan, without) == held(plan, never)
    assert of_others(plan, without) == of_others(plan, whole)


@pytest.mark.parametrize("name", ["counts", "windows", "sessions", "finals", "sliding"])
def test_a_table_goes_with_all_that_its_node_keeps_under_the_key(name: str) -> None:
    plan = compiled(STREAM + NODES[name])
    without = carried(plan, plan, after_first(plan), PARTITIONS, PARTITIONS, left_out=left_out(plan, name))
    assert mentions(plan, without) == 0


def test_rows_of_the_left_table_travel_in_subscriptions_and_go_there_too() -> None:
    plan = compiled(FOREIGN)
    stores = after_first(plan)
    [of_subscriptions] = [store for store in stores_of(plan) if store.kind == "subscriptions"]
    only = left_out(plan, "t")
    without = carried(plan, plan, stores, PARTITIONS, PARTITIONS, left_out=only)
    before, after = (content(plan, one, PARTITIONS)[f"{of_subscriptions.name} in {of_subscriptions.stage}"]
                     for one in (carried(plan, plan, stores, PARTITIONS, PARTITIONS), without))  # fmt: skip
    assert [row for row in before if WORD not in row[2]] == after != before


@pytest.mark.parametrize("between", ["filter t where w >= 0", "map t select w"])
def test_also_where_the_left_table_is_computed_from_it_and_not_stored(between: str) -> None:
    some = (
        f"table some = {between};\ntable named_ = left join some with p on cast(some.w as string) select p.w as pw;\n"
    )
    plan = compiled(SOURCES + some)
    stores = after_first(plan)
    without = carried(plan, plan, stores, PARTITIONS, PARTITIONS, left_out=left_out(plan, "t", "p", "g"))
    assert mentions(plan, without) == 0


def test_a_row_of_a_global_table_counts_once() -> None:
    plan = compiled(text("named"))
    stores, only = after_first(plan), left_out(plan, "g")
    carry = Carry.of(plan, plan, PARTITIONS, PARTITIONS, frozenset(), frozenset(), purged=only)
    [stage] = {store.stage for store in stores_of(plan) if store.name == "g"}
    told = [carry.told(stage, partition, stores(stage, partition)).purged for partition in range(PARTITIONS)]
    assert told == [{"g": 1}, {}, {}]


def test_each_partition_counts_what_it_leaves_out() -> None:
    plan = compiled(text("joined"))
    stores, only = after_first(plan), left_out(plan, "t")
    without = carried(plan, plan, stores, PARTITIONS, PARTITIONS, left_out=only)
    carry = Carry.of(plan, plan, PARTITIONS, PARTITIONS, frozenset(), frozenset(), purged=only)
    [stage] = {store.stage for store in stores_of(plan) if store.name == "t"}
    counts = [carry.told(stage, partition, stores(stage, partition)).purged for partition in range(PARTITIONS)]
    assert sorted(count["t"] for count in counts) == [0, 0, mentions(plan, stores) - mentions(plan, without)]
    assert max(count["t"] for count in counts) == 2  # the newest version, and all older ones
    kept = [key for partition in range(PARTITIONS) for key, _ in without(stage, partition).scan(b"", None)]
    was = [key for partition in range(PARTITIONS) for key, _ in stores(stage, partition).scan(b"", None)]
    assert (sum(carry.is_purged(stage, key) for key in kept), sum(carry.is_purged(stage, key) for key in was)) == (0, 2)


def test_what_was_computed_from_such_rows_and_has_another_key_is_named() -> None:
    plan = compiled(text("sums", "joined"))
    assert computed_from(plan, left_out(plan, "t")) == ["sums", "sums#groups"]
    assert computed_from(plan, left_out(plan, "sums", w=1)) == []
    assert left_out(plan, "sums", w=1).sources(plan) == {"t"}


def test_a_key_that_begins_like_a_purged_one_stays() -> None:
    plan = compiled(text("counts"))
    stores = Stores()
    run(plan, [epoch(plan, [("s", key, 1, 1) for key in ("key-of-a", "key-of-ab", "key-of-")])], stores, PARTITIONS)
    without = carried(plan, plan, stores, PARTITIONS, PARTITIONS, left_out=left_out(plan, "counts"))
    whole = carried(plan, plan, stores, PARTITIONS, PARTITIONS)
    assert mentions(plan, without) == mentions(plan, whole) / 2 == 3


def test_all_windows_of_a_key_go_and_none_alone() -> None:
    plan = compiled(text("windows"))
    with pytest.raises(ConfigurationError, match="window_start is a bound of the windows of 'windows'") as error:
        left_out(plan, "windows", k=WORD, window_start=0, window_end=10)
    assert error.value.help == "leave out window_start and window_end: all windows of the key go"


@pytest.mark.parametrize(("key", "message"), [({"z": 1}, "has no key column 'z'"), ({"k": 5}, "key column 'k'")])
def test_a_key_that_the_store_cannot_have_is_refused(key: dict[str, Any], message: str) -> None:
    plan = compiled(text("counts"))
    with pytest.raises(ConfigurationError, match=message):
        left_out(plan, "counts", **key)
