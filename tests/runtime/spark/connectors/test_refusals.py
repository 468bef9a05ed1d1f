"""Rows that the system of a sink refuses become dead letters, without Spark."""

from __future__ import annotations

from typing import Any

from vsc.compiler import compile_topology
from vsc.plan.nodes import DEAD_LETTER
from vsc.runtime.records import Batch
from vsc.runtime.spark.connectors.refusals import Refusals, RefusedRow, keeps_refused
from vsc.runtime.spark.exchange.counters import EpochReport

TEXT = """
stream s (k string, n int, at bigint) from memory () key k timestamp at;
stream t = filter s where n > 0;
sink dropped to memory ();
sink s to noop ();
sink t to noop ();
sink dropped of s to memory ();
"""


class Frame:
    """A data frame as far as it is asked: its rows, and what is added."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows, self.sparkSession = rows, self

    def createDataFrame(self, rows: list[Any], schema: str) -> Frame:
        return Frame(rows)

    def coalesce(self, count: int) -> Frame:
        return self

    def unionAll(self, other: Frame) -> Frame:
        return Frame(self.rows + other.rows)


def test_they_join_what_the_epoch_gives() -> None:
    plan = compile_topology(TEXT)
    report, refusals, kept = EpochReport(7), Refusals(plan, 2), Frame([])
    report.written["sink-0"] = 5
    found = [
        ("sink-1", [RefusedRow('{"k":"a"}', '{"n":1}', "too long"), RefusedRow('{"k":"b"}', "{}", "no")]),
        ("sink-2", [RefusedRow('{"k":"c"}', None, "twice")]),
    ]
    joined: Any = refusals.joined(kept, report, found)  # type: ignore[arg-type]
    letters: dict[str, list[Any]] = {}
    for _, _, sink, _, _, payload in joined.rows:
        columns = [column.to_pylist() for column in Batch.from_ipc(payload, DEAD_LETTER).values]
        letters.setdefault(sink, []).extend(zip(*columns, strict=True))
    none = (None, None)
    of_s = [
        ("s", "refused", "s", *none, '{"k":"a"}', '{"n":1}', None, "too long"),
        ("s", "refused", "s", *none, '{"k":"b"}', "{}", None, "no"),
    ]
    of_t = [("t", "refused", "s", *none, '{"k":"c"}', None, None, "twice")]
    assert letters == {"sink-0": of_s + of_t, "sink-3": of_s}
    assert report.written == {"sink-0": 8, "sink-3": 2}
    assert report.metrics.as_dict()["dropped_records"] == {"s": {"refused": 2}, "t": {"refused": 1}}
    assert report.digests["sink-3"] and report.digests["sink-0"] != report.digests["sink-3"]


def test_without_refused_rows_nothing_is_done() -> None:
    plan, kept = compile_topology(TEXT), Frame([])
    assert Refusals(plan, 2).joined(kept, EpochReport(1), [("sink-1", ())]) is kept  # type: ignore[arg-type, comparison-overlap]


def test_which_sinks_keep_them() -> None:
    plan = compile_topology(TEXT)
    assert [keeps_refused(plan, sink.id) for sink in plan.sinks] == [False, True, True, False]
    alone = compile_topology(TEXT.replace("sink dropped to memory ();", ""))
    assert [keeps_refused(alone, sink.id) for sink in alone.sinks] == [True, False, False]
