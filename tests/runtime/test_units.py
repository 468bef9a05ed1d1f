"""In which unit times are, and the clause that heeds it: it compiles, and is right to the millisecond."""

from __future__ import annotations

import random

import numpy as np
import pytest

from vsc.compiler import compile_topology
from vsc.plan.nodes import Source
from vsc.plan.types import TIMESTAMP
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.operators.source.stage_zero import StageZero
from vsc.runtime.records import Origin
from vsc.runtime.units import likely_unit, unit_help
from vsc.runtime.values import to_array

NOW = 1_790_000_000_000
SOURCE = "stream s ({columns}) from memory () {clause}; sink s to noop ();"

CASES = [
    ("at bigint", "at", 1_000, "seconds", "timestamp at * 1000"),
    ("at bigint", "at", 1 / 1000, "microseconds", "timestamp cast(at / 1000.0 as bigint)"),
    ("at bigint", "at", 1 / 1_000_000, "nanoseconds", "timestamp cast(at / 1000000.0 as bigint)"),
    ("at bigint", "at + 0", 1_000, "seconds", "timestamp (at + 0) * 1000"),
    ("`a t` bigint", "`a t`", 1_000, "seconds", "timestamp `a t` * 1000"),
    ("at bigint", "cast(at as timestamp)", 1, "milliseconds", "timestamp at"),
    ("`a t` bigint", "cast(`a t` as timestamp)", 1, "milliseconds", "timestamp `a t`"),
    ("at bigint", "cast(at as timestamp)", 1 / 1000, "microseconds", "timestamp cast(at / 1000.0 as bigint)"),
    ("at timestamp", "at", 1_000, "seconds", "timestamp unix_millis(at) * 1000"),
    ("at timestamp", "at", 1 / 1000, "microseconds", "timestamp cast(unix_millis(at) / 1000.0 as bigint)"),
]


@pytest.mark.parametrize(("columns", "text", "factor", "unit", "clause"), CASES)
def test_the_clause_that_is_told_gives_the_times_that_were_meant(
    columns: str, text: str, factor: float, unit: str, clause: str
) -> None:
    source = compile_topology(SOURCE.format(columns=columns, clause=f"timestamp {text}")).node("s").operation
    assert isinstance(source, Source) and source.timestamp is not None
    chance = random.Random(1)
    meant = sorted(chance.randrange(700_000_000, NOW // 1000) * 1000 for _ in range(200))
    raw = [round(ms / factor) for ms in meant] if factor >= 1 else [ms * round(1 / factor) for ms in meant]
    scale = 1000 if "cast(" in text else 1
    assert unit_help(source.timestamp, raw[0] * scale, raw[-1] * scale, NOW) == (unit, clause)
    plan = compile_topology(SOURCE.format(columns=columns, clause=clause))
    (column,) = plan.node("s").schema.value
    values = [number * 1000 for number in raw] if column.type == TIMESTAMP else raw
    rows = SourceRows(Origin("s", 0, ""), (to_array(values, column.type),), np.arange(len(raw)))
    ((_, batch),) = StageZero(plan, RunOptions(), frozenset({"s"})).process("s", rows).batches
    assert batch.timestamps.tolist() == meant


@pytest.mark.parametrize(
    ("lowest", "highest"),
    [(0, 0), (0, 5000), (1, NOW // 1000), (NOW - 1, NOW), (10**13, 10**14), (473_000_000_000, NOW), (2**62, 2**62)],
)
def test_times_that_are_plausible_or_so_in_no_unit_get_no_help(lowest: int, highest: int) -> None:
    source = compile_topology(SOURCE.format(columns="at bigint", clause="timestamp at")).node("s").operation
    assert isinstance(source, Source) and source.timestamp is not None
    assert unit_help(source.timestamp, lowest, highest, NOW) is None


def test_a_unit_is_that_of_every_number() -> None:
    assert likely_unit(NOW // 1000 - 5, NOW // 1000, NOW) == "seconds"
    assert likely_unit(NOW // 1000, NOW // 1000 + 1, NOW) is None
    assert likely_unit(631_152_000, NOW // 1000, NOW) == "seconds"
    assert likely_unit(631_151_999, NOW // 1000, NOW) is None
    assert likely_unit(NOW * 1000, NOW * 1000, NOW) == "microseconds"
    assert likely_unit(NOW * 1_000_000 - 7, NOW * 1_000_000, NOW) == "nanoseconds"
