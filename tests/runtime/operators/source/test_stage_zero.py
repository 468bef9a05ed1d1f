"""Stage 0 on whole columns: what is dropped, which times and which order records get, what is handed on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.errors import BadRowError, ExpressionError
from vsc.runtime.metrics import BadRow
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.source.rows import EventTimes, SourceRows
from vsc.runtime.operators.source.stage_zero import StageZero
from vsc.runtime.records import MOVED, Batch, Origin
from vsc.runtime.times import LAST

TEXT = """
topology t (clock = 'records');
stream s (k string, n bigint, at timestamp) from memory () key k timestamp at;
table t (k string, v string, gone boolean) from memory () key k delete when gone
  materialize versioned (retention = 1 minute);
stream f = filter s where n > 1;
stream m = map f select n * 2 as n;
stream j = left join m with t on cast(n as string) select n, t.v;
stream j2 = left join s with t select s.n;
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return compile_topology(TEXT, path="t.vdsl")


def stream(keys: list[str | None], numbers: list[int | None], times: list[int | None], **more: Any) -> SourceRows:
    """Rows of `s`; times in microseconds."""
    columns = (
        pa.array(keys, pa.string()), pa.array(numbers, pa.int64()), pa.array(times, pa.timestamp("us", "UTC")),
    )  # fmt: skip
    return SourceRows(Origin("s", 1, "p0"), columns, np.arange(10, 10 + len(keys)), **more)


def table(
    keys: list[str], values: list[str | None], gone: list[bool | None], times: list[int], **more: Any
) -> SourceRows:
    columns = (pa.array(keys, pa.string()), pa.array(values, pa.string()), pa.array(gone, pa.bool_()))
    offsets = np.arange(len(keys))
    return SourceRows(Origin("t", 0, "p0"), columns, offsets, np.array(times, dtype=np.int64), **more)


def batches(plan: Plan, source: str, rows: SourceRows, observe: frozenset[str] = frozenset()) -> dict[str, Batch]:
    return dict(StageZero(plan, RunOptions(), observe).process(source, rows).batches)


def test_floors_times_and_keeps_a_running_maximum(plan: Plan) -> None:
    task = StageZero(plan, RunOptions())
    result = task.process("s", stream(["a", "b", "c"], [1, 2, 3], [5999, 2000, 7001]))
    batch = dict(result.batches)["s"]
    assert batch.timestamps.tolist() == [5, 2, 7]
    assert batch.order.time.tolist() == [5, 5, 7]
    assert batch.order.offset.tolist() == [10, 11, 12]
    assert batch.origins == (Origin("s", 1, "p0"),)
    assert result.clock == 7
    later = task.process("s", stream(["a", "b"], [1, 2], [0, 9000]), result.clock)
    assert dict(later.batches)["s"].order.time.tolist() == [7, 9]
    assert later.clock == 9


@pytest.mark.parametrize(
    ("observe", "places"),
    [
        (frozenset(), {"s": [1, 2, 1, 2], "j#rekey": [3, 4, 3]}),
        (frozenset({"f"}), {"f": [1, 3, 2], "s": [2, 4, 1, 3], "j#rekey": [5, 6, 4]}),
    ],
)
def test_rows_of_one_offset_are_records_of_one_cause(
    plan: Plan, observe: frozenset[str], places: dict[str, list[int]]
) -> None:
    rows = replace(stream(["a", "b", "c", "d"], [2, 2, 1, 2], [5000, 5000, 6000, 6000]), offsets=np.array([7, 7, 8, 8]))
    found = {name: batch.order for name, batch in batches(plan, "s", rows, observe).items()}
    assert {name: (order.path[:, 0] % MOVED).tolist() for name, order in found.items()} == places
    assert {name: (order.path[:, 0] // MOVED).tolist() for name, order in found.items()} == {
        name: [int(name == "j#rekey")] * len(of) for name, of in places.items()
    }
    assert found["s"].offset.tolist() == [7, 7, 8, 8]


def test_a_call_without_usable_rows_keeps_the_clock(plan: Plan) -> None:
    task = StageZero(plan, RunOptions())
    assert task.process("s", stream([None], [1], [0])).clock is None
    assert task.process("s", stream([], [], []), 4).clock == 4


def test_drops_and_counts_in_the_order_unreadable_key_time(plan: Plan) -> None:
    rows = stream(
        [None, None, "a", "b", "c"], [1, 1, 1, 1, 1], [-1, 0, None, -1, 3000],
        unreadable=np.array([True, False, False, False, False]),
    )  # fmt: skip
    result = StageZero(plan, RunOptions()).process("s", rows)
    assert result.metrics.as_dict()["dropped_records"] == {
        "s": {"unreadable": 1, "null_key": 1, "null_timestamp": 1, "negative_timestamp": 1}
    }
    batch = dict(result.batches)["s"]
    assert batch.keys[0].to_pylist() == ["c"]
    assert batch.order.offset.tolist() == [14]


def test_a_floored_negative_time_is_negative(plan: Plan) -> None:
    result = StageZero(plan, RunOptions()).process("s", stream(["a"], [1], [-1]))
    assert result.metrics.as_dict()["dropped_records"] == {"s": {"negative_timestamp": 1}}


def test_a_bad_row_can_stop_the_run(plan: Plan) -> None:
    task = StageZero(plan, RunOptions(on_bad_row="fail"))
    with pytest.raises(BadRowError, match="source 's': row 11 of p0 has a null key column"):
        task.process("s", stream(["a", None], [1, 1], [0, 0]))


def test_nodes_behind_a_source_in_order_re_keyed_last(plan: Plan) -> None:
    found = batches(plan, "s", stream(["a", "b", "c"], [1, 2, 3], [1000, 2000, 3000]), frozenset({"f", "m"}))
    # s leaves for the later join j2, behind what its filter gives; the re-keyed records come last
    places = {name: int(b.order.path[-1, 0]) for name, b in found.items()}
    assert sorted(places, key=places.__getitem__) == ["f", "m", "s", "j#rekey"]
    assert places["j#rekey"] > MOVED > places["s"]
    assert found["f"].values[0].to_pylist() == [2, 3]
    assert found["m"].values[0].to_pylist() == [4, 6]
    assert found["j#rekey"].keys[0].to_pylist() == ["4", "6"]
    assert found["j#rekey"].timestamps.tolist() == [2, 3]


def test_only_what_is_asked_for_is_handed_out(plan: Plan) -> None:
    assert set(batches(plan, "s", stream(["a"], [5], [0]))) == {"s", "j#rekey"}
    assert set(batches(plan, "t", table(["a"], ["x"], [None], [0]), frozenset({"t"}))) == {"t"}


def test_tombstones_by_delete_when_and_by_null_values(plan: Plan) -> None:
    rows = table(
        ["a", "b", "c", "d"], ["x", "y", "z", None], [None, True, False, None], [1, 2, 3, 4],
        deleted=np.array([False, False, False, True]),
    )  # fmt: skip
    batch = batches(plan, "t", rows)["t"]
    assert batch.present.tolist() == [True, False, True, False]
    assert batch.values[0].to_pylist() == ["x", None, "z", None]
    assert batch.timestamps.tolist() == [1, 2, 3, 4]


def test_a_null_value_takes_the_records_own_time(plan: Plan) -> None:
    rows = stream(
        ["a", "b"], [1, None], [5000, None], record_time=np.array([77, 88]), deleted=np.array([False, True])
    )  # fmt: skip
    batch = batches(plan, "s", rows)["s"]
    assert batch.timestamps.tolist() == [5, 88]
    assert batch.present.tolist() == [True, False]


@pytest.mark.parametrize(
    ("join", "keys", "lost"),
    [("join", ["x"], {"null_join_key": 1, "no_value": 1}), ("left join", ["x", None], {"no_value": 1})],
)
def test_a_re_key_drops_records_without_value_and_null_keys(
    join: str, keys: list[str | None], lost: dict[str, int], plan: Plan
) -> None:
    text = (
        "stream s (k string, n string) from memory () key k; table t (k string, v string) from memory () key k;"
        f"stream j = {join} s with t on n select n, t.v;"
    )
    rows = SourceRows(
        Origin("s", 1, ""), (pa.array(["a", "b", "c"]), pa.array(["x", None, None], pa.string())), np.arange(3),
        np.array([1, 2, 3]), np.array([False, False, True]),
    )  # fmt: skip
    result = StageZero(compile_topology(text, path="t.vdsl"), RunOptions()).process("s", rows)
    (out,) = (batch for name, batch in result.batches if name == "j#rekey")
    assert out.keys[0].to_pylist() == keys
    assert result.metrics.as_dict()["dropped_records"] == {"j": lost}


def test_a_source_without_time_is_a_mistake_of_the_caller(plan: Plan) -> None:
    with pytest.raises(ValueError, match="'t'"):
        batches(plan, "t", SourceRows(Origin("t", 0, ""), table(["a"], ["x"], [None], [0]).columns, np.arange(1)))


def test_a_failure_behind_rows_without_value_names_its_own_row() -> None:
    text = "stream s (k string, n bigint) from memory () key k; stream m = map s select 10 / n as v;"
    topology = compile_topology(text, path="t.vdsl")
    rows = SourceRows(
        Origin("s", 0, "p"), (pa.array(["a", "b", "c", "d"]), pa.array([None, 5, 0, 2], pa.int64())), np.arange(4),
        np.array([1, 2, 3, 4]), np.array([True, False, False, False]),
    )  # fmt: skip
    with pytest.raises(ExpressionError, match="record 2 of p of source 's'"):
        StageZero(topology, RunOptions(), frozenset({"m"})).process("s", rows)
    result = StageZero(topology, RunOptions(on_error="drop"), frozenset({"m"})).process("s", rows)
    batch = dict(result.batches)["m"]
    assert batch.order.offset.tolist() == [0, 1, 3]
    assert batch.values[0].to_pylist() == [None, 2.0, 5.0]
    assert result.metrics.as_dict()["dropped_records"] == {"m": {"expression_failed": 1}}


def test_rows_too_far_in_the_future_are_counted_and_move_no_clock(plan: Plan) -> None:
    rows = stream(["a", "b", "c", "d"], [1, 2, 3, 4], [1_000, 9_001_000, 5_999, 8_000_000])
    result = StageZero(plan, RunOptions(), latest={"s": 5}).process("s", rows)
    batch = dict(result.batches)["s"]
    assert batch.timestamps.tolist() == batch.order.time.tolist() == [1, 5]
    assert batch.order.offset.tolist() == [10, 12]
    assert result.clock == 5
    assert result.metrics.as_dict()["dropped_records"] == {"s": {"in_the_future": 2}}
    assert result.seen == EventTimes(4, 1, 9001)
    why = "has the event time 1970-01-01 00:00:09.001, later than 1970-01-01 00:00:00.005"
    assert result.metrics.examples() == {("s", "in_the_future"): BadRow("p0", 11, why)}


def test_the_bound_itself_is_not_too_far_and_other_sources_have_none(plan: Plan) -> None:
    rows = stream(["a", "b"], [1, 2], [5_999, 5_000])
    result = StageZero(plan, RunOptions(), latest={"s": 5, "t": 0}).process("s", rows)
    assert (len(dict(result.batches)["s"]), result.seen) == (2, EventTimes(2, 5, 5))
    result = StageZero(plan, RunOptions(), latest={"s": 5}).process("t", table(["a"], ["v"], [False], [LAST]))
    assert (result.clock, result.seen) == (LAST, EventTimes(1, LAST, LAST))


@pytest.mark.parametrize("latest", [{}, {"t": 2**60}])
def test_no_row_is_later_than_the_year_9999(plan: Plan, latest: dict[str, int]) -> None:
    rows = table(["a", "b", "c"], ["v", "w", "x"], [False] * 3, [LAST, LAST + 1, 2**63 - 1])
    result = StageZero(plan, RunOptions(), latest=latest).process("t", rows)
    assert dict(result.batches)["t"].timestamps.tolist() == [LAST]
    assert (result.clock, result.seen) == (LAST, EventTimes(3, LAST, 2**63 - 1))
    assert result.metrics.as_dict()["dropped_records"] == {"t": {"in_the_future": 2}}
    why = "has the event time 253402300800000 ms, later than 9999-12-31 23:59:59.999"
    assert result.metrics.examples() == {("t", "in_the_future"): BadRow("p0", 1, why)}


def test_a_record_s_own_time_is_bounded_too(plan: Plan) -> None:
    rows = table(["a", "b"], ["v", "w"], [False, True], [7, 8], deleted=np.array([False, True]))
    result = StageZero(plan, RunOptions(), latest={"t": 7}).process("t", rows)
    assert dict(result.batches)["t"].timestamps.tolist() == [7]
    assert result.metrics.as_dict()["dropped_records"] == {"t": {"in_the_future": 1}}


def test_event_times_of_several_batches_are_merged() -> None:
    one, two = EventTimes(2, 5, 9), EventTimes(1, 3, 8)
    assert one.merged(two) == two.merged(one) == EventTimes(3, 3, 9)


def test_a_row_too_far_in_the_future_stops_the_run_if_asked_to(plan: Plan) -> None:
    task = StageZero(plan, RunOptions(on_bad_row="fail"), latest={"s": 5})
    wanted = r"source 's': row 10 of p0 has the event time 1970-01-01 00:00:00.006, later than .* \(in_the_future\)"
    with pytest.raises(BadRowError, match=wanted):
        task.process("s", stream(["a"], [1], [6_000]))


def test_several_records_of_one_row_are_numbered_with_what_comes_of_each() -> None:
    text = (
        "stream s (k string, w string) from memory () key k; stream e = explode s by split(w, ' ') as w;"
        "stream f = filter e where w <> 'y'; stream g = map e select upper(w) as w;"
    )
    values = (pa.array(["a", "b"]), pa.array(["x y", "z"]))
    rows = SourceRows(Origin("s", 0, ""), values, np.arange(2), np.array([1, 2]))
    result = StageZero(compile_topology(text, path="t.vdsl"), RunOptions(), frozenset({"f", "g"})).process("s", rows)
    found = {name: (b.values[0].to_pylist(), b.order.path.tolist()) for name, b in result.batches}
    assert found == {"f": (["x", "z"], [[1], [1]]), "g": (["X", "Y", "Z"], [[2], [3], [2]])}
