"""What random topologies have found, each as small as it gets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.oracle import oracle, shipped
from tests.oracle.epochs import EpochRow
from vsc.compiler import compile_topology
from vsc.runtime.expressions.forms import full


def rows(*found: tuple[str, dict[str, Any]]) -> list[EpochRow]:
    return [EpochRow(source, "", offset, row, row["at"]) for offset, (source, row) in enumerate(found)]


def test_the_place_of_a_record_does_not_depend_on_what_else_enters_its_stage() -> None:
    # The right table of a foreign-key join is the left one of another: its change goes both ways and meets itself.
    text = """
    table a (k bigint, s string, at bigint) from memory () key k timestamp at;
    table b (k string, j bigint, at bigint) from memory () key k timestamp at;
    table ab = left join b with a on j select a.s;
    table aba = join a with ab on s select ab.s as t;
    sink aba to memory ();
    """
    plan = compile_topology(text, path="found.vdsl")
    epoch = rows(("b", {"k": "x", "j": 0, "at": 0}), ("a", {"k": 0, "s": "x", "at": 50}))
    whole, single = shipped(plan, [epoch], ["aba"]), oracle(plan, [epoch], ["aba"])
    assert whole.outcome == single.outcome == {"aba": [("(0,)", 50, "('x',)")]}


def test_late_records_are_counted_once_however_many_windows_are_drained() -> None:
    text = """
    stream s (k string, at bigint) from memory () key k timestamp at;
    table w = aggregate s group by k window tumbling (size = 5 ms) emit final select count(*) as n;
    sink w to memory ();
    """
    plan = compile_topology(text, path="found.vdsl")
    epoch = rows(*(("s", {"k": k, "at": at}) for k, at in (("a", 20), ("b", 21), ("c", 22), ("a", 3))))
    assert oracle(plan, [epoch], ["w"]).metrics["dropped_records"] == {"w": {"window_closed": 1}}


def test_a_constant_list_for_no_rows() -> None:
    assert full(pa.scalar(["x"]), 0).type == pa.list_(pa.string())
