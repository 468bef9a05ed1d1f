"""`distinct`: against a flat model, record by record, over restarts; what is counted, kept and forgotten."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import difference, oracle, shipped
from tests.oracle.epochs import EpochRow, order_epoch
from tests.runtime.operators.driving import dropped, rows
from vsc.compiler import compile_topology
from vsc.plan.nodes import Node
from vsc.runtime.errors import StateError
from vsc.runtime.operators.views.catalog import find_store, open_view
from vsc.runtime.operators.views.question import question
from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.state.passed import PassedTimes
from vsc.testing import TopologyTestDriver

STREAM = "stream s (k string, v bigint, at bigint) from memory () key k timestamp at;"
BY_KEY = STREAM + "stream d = distinct s within 10 ms grace 4 ms;"
BY_VALUE = STREAM + "stream d = distinct s by v within 10 ms grace 4 ms;"

Row = tuple[str, int | None, int]
"""Key, value, event time."""


def play(text: str, given: list[Row], node: str = "d", **options: Any) -> tuple[list[Row], Any]:
    with TopologyTestDriver(text, **options) as driver:
        for k, v, at in given:
            driver.pipe("s", {"k": k, "v": v, "at": at})
        return [(key["k"], value["v"], at) for key, value, at in rows(driver, node)], dropped(driver)


def test_a_record_passes_that_is_far_enough_from_all_that_passed() -> None:
    rows: list[Row] = [("a", 1, 100), ("a", 2, 109), ("a", 3, 110), ("b", 4, 105), ("a", 5, 120), ("a", 6, 115)]
    assert play(BY_KEY, rows) == (
        [("a", 1, 100), ("a", 3, 110), ("b", 4, 105), ("a", 5, 120)], {"d": {"duplicate": 2}},
    )  # fmt: skip


def test_what_was_dropped_hides_nothing() -> None:
    assert play(BY_KEY, [("a", 1, 0), ("a", 2, 9), ("a", 3, 18)]) == (
        [("a", 1, 0), ("a", 3, 18)], {"d": {"duplicate": 1}},
    )  # fmt: skip


def test_a_late_record_is_compared_with_what_came_after_it_in_time() -> None:
    rows: list[Row] = [("a", 1, 20), ("a", 2, 11), ("a", 3, 10), ("a", 4, 9)]
    assert play(BY_KEY, rows) == ([("a", 1, 20), ("a", 3, 10)], {"d": {"duplicate": 2}})


def test_a_record_is_expired_behind_within_and_grace() -> None:
    rows: list[Row] = [("a", 1, 100), ("b", 2, 86), ("b", 3, 85), ("c", 4, 85)]
    assert play(BY_KEY, rows) == ([("a", 1, 100), ("b", 2, 86)], {"d": {"expired": 2}})


def test_no_repeat_passes_however_far_stream_time_has_gone() -> None:
    # Stream time is more than `within` + `grace` past the first record, and the last is still in time.
    rows: list[Row] = [("a", 1, 0), ("b", 2, 15), ("a", 3, 5)]
    assert play(BY_KEY, rows) == ([("a", 1, 0), ("b", 2, 15)], {"d": {"duplicate": 1}})


def test_by_a_value_over_all_keys_with_the_streams_own_key() -> None:
    rows: list[Row] = [("a", 1, 0), ("b", 1, 5), ("b", 2, 5), ("c", None, 5), ("a", 1, 10)]
    for partitions in (1, 3):
        found, lost = play(BY_VALUE, rows, partitions=partitions)
        assert sorted(found) == [("a", 1, 0), ("a", 1, 10), ("b", 2, 5)]
        assert lost == {"d": {"duplicate": 1, "null_join_key": 1}}


def test_by_the_key_itself_nothing_is_moved() -> None:
    plan = compile_topology(STREAM + "stream d = distinct s by k within 1 ms;", path="t.vdsl")
    assert [node.name for node in plan.nodes] == ["s", "d"]


def test_what_comes_next_goes_by_the_streams_own_key() -> None:
    text = BY_VALUE + "table n = aggregate d group by k select count(*) as c; stream o = to_stream n;"
    with TopologyTestDriver(text, partitions=3) as driver:
        for number, k in enumerate(("a", "b", "a", "b", "a")):
            driver.pipe("s", {"k": k, "v": number // 2, "at": 0})
        assert {key["k"]: value["c"] for key, value, _ in rows(driver, "o")} == {"a": 3}


def test_a_stream_without_key_and_a_record_without_value() -> None:
    text = "stream s (v bigint) from memory (); stream d = distinct s by v within 10 ms;"
    with TopologyTestDriver(text) as driver:
        for v, at in ((1, 0), (1, 1), (2, 2)):
            driver.pipe("s", {"v": v}, timestamp=at)
        assert [(r.key, r.value) for r in driver.read("d")] == [({}, {"v": 1}), ({}, {"v": 2})]
    with TopologyTestDriver(BY_KEY) as driver:
        for at in (0, 5, 10):
            driver.delete("s", {"k": "a"}, timestamp=at)
        assert [(r.key["k"], r.value, r.timestamp) for r in driver.read("d")] == [("a", None, 0), ("a", None, 10)]


def test_what_is_remembered_can_be_seen_and_is_bounded() -> None:
    with TopologyTestDriver(BY_KEY) as driver:
        store = find_store(driver.plan, "d")
        assert (store.name, store.kind, store.names) == ("d#passed", "passed", ("k", "_status", "_timestamp", "_due"))

        def seen(**asked: Any) -> list[Any]:
            view = open_view(driver.plan, store, driver._stores[0])
            return [(e.status.value, e.key, *e.extra) for e in view.answer(question(store, **asked))]

        for number in range(100):
            driver.pipe("s", {"k": f"k{number % 5}", "v": 0, "at": number})
        assert open_view(driver.plan, store, driver._stores[0]).rows() <= 5 * 3
        driver.pipe("s", {"k": "a", "v": 0, "at": 1000})
        driver.pipe("s", {"k": "a", "v": 0, "at": 990})
        assert seen() == [("row", ("a",), 990, 1014), ("row", ("a",), 1000, 1024)]
        assert seen(key={"k": "b"}) == []
        driver.pipe("s", {"k": "b", "v": 0, "at": 1014})
        assert seen() == [("row", ("a",), 1000, 1024), ("row", ("b",), 1014, 1038)]
        assert open_view(driver.plan, store, driver._stores[0]).stream_time == 1014


def test_state_of_something_else_is_refused() -> None:
    kv = MemoryKV()
    PassedTimes(kv, b"p").write({b"a": [3]}, [(3, b"a")], 3, 0)
    assert (PassedTimes(kv, b"p").stream_time, PassedTimes(kv, b"p").get_many([b"a", b"b"])) == (3, [[3], []])
    kv.write([(b"\0\1pm", b"VSTX")])
    with pytest.raises(StateError, match="not the memory of a distinct"):
        PassedTimes(kv, b"p")


def test_the_grace_that_late_records_need_is_told() -> None:
    with TopologyTestDriver(BY_KEY) as driver:
        for at in (100, 80, 96, 85):  # within 10 ms, grace 4 ms
            driver.pipe("s", {"k": "a", "v": 1, "at": at})
        assert driver.metrics()["grace_needed"] == {"d": 10}
    with TopologyTestDriver(BY_KEY.replace("grace 4 ms", "grace 10 ms")) as driver:
        for at in (100, 80, 96, 85):
            driver.pipe("s", {"k": "a", "v": 1, "at": at})
        assert [record.timestamp for record in driver.read("d")] == [100, 80]
        assert "grace_needed" not in driver.metrics()


# ---------------------------------------------------------------------------------------------------------- the model


def model(rows: list[Row], by_value: bool, within: int = 10, grace: int = 4) -> tuple[list[Row], dict[str, int]]:
    passed: dict[Any, list[int]] = {}
    clock, found, lost = -1, [], {"duplicate": 0, "expired": 0, "null_join_key": 0}
    for k, v, at in rows:
        if by_value and v is None:
            lost["null_join_key"] += 1
            continue
        clock, times = max(clock, at), passed.setdefault(v if by_value else k, [])
        if clock > at + within + grace:
            lost["expired"] += 1
        elif any(abs(at - other) < within for other in times):
            lost["duplicate"] += 1
        else:
            times.append(at)
            found.append((k, v, at))
    return found, lost


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    one = st.tuples(st.sampled_from(["a", "b", "", "a\0"]), st.none() | st.integers(0, 2), st.integers(-22, 9))
    clock, found = 30, []
    for k, v, moved in draw(st.lists(one, min_size=1, max_size=60)):
        found.append((k, v, max(0, clock + moved)))
        clock = max(clock, clock + moved)
    return found


@pytest.mark.quick(1)
@pytest.mark.parametrize("text", [BY_KEY, BY_VALUE], ids=["by the key", "by a value"])
@settings(max_examples=60, deadline=None)
@given(rows=histories(), cuts=st.lists(st.integers(0, 60), max_size=3))
def test_batches_give_what_the_model_and_records_do(text: str, rows: list[Row], cuts: list[int]) -> None:
    plan = compile_topology(text + "sink d to memory ();", path="t.vdsl")
    every = [EpochRow("s", "", i, {"k": k, "v": v, "at": at}, at) for i, (k, v, at) in enumerate(rows)]
    marks = sorted({0, len(every), *(min(cut, len(every)) for cut in cuts)})
    epochs = [every[a:b] for a, b in pairwise(marks)]
    whole = shipped(plan, epochs, ["d"])
    assert not difference(whole, oracle(plan, epochs, ["d"]), in_sequence=True)
    in_order = [row for epoch in epochs for row in order_epoch(plan, epoch)]
    found, lost = model([(r.row["k"], r.row["v"], r.row["at"]) for r in in_order], text is BY_VALUE)
    assert [(key, at) for key, at, _ in whole.outcome.get("d", [])] == [(str((k,)), at) for k, _, at in found]
    counted = whole.metrics["dropped_records"].get("d", {})
    assert counted == {reason: n for reason, n in lost.items() if n}


def test_the_plan_moves_records_to_the_values_and_back() -> None:
    plan = compile_topology(BY_VALUE, path="t.vdsl")
    nodes: dict[str, Node] = {node.name: node for node in plan.nodes}
    assert (nodes["d#rekey"].owner, nodes["d"].inputs, nodes["d"].schema) == ("d", ("d#rekey",), nodes["s"].schema)
    assert [stage.moved for stage in plan.stages] == [("d#rekey",), ("d",)]
