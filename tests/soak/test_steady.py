"""What a run through many epochs must not let grow is seen, and its topology is one. No Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from soak.steady import STEADY, Measure, lines, verdict
from vsc.compiler import compile_topology

NUMBERS = {"CPU s": 40.0, "MiB, JVM": 900.0, "threads, JVM": 90.0, "open files, JVM": 400.0, "files, ck/offsets": 200.0}
MEASURES = [Measure(100 * n, (0.4, 0.5), NUMBERS) for n in range(1, 11)]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, None),
        ({"CPU s": 50.0, "MiB, JVM": 1100.0, "files, ck/offsets": 255.0}, None),
        ({"CPU s": 54.0}, "CPU s: 40.0 by epoch 300, 54.0 by epoch 1000"),
        ({"MiB, JVM": 1150.0}, "MiB, JVM: 900.0 by epoch 300, 1,150.0 by epoch 1000"),
        ({"files, ck/offsets": 270.0}, "files, ck/offsets: 200.0 by epoch 300, 270.0 by epoch 1000"),
        ({"files, tmp": 21.0}, "files, tmp: 0.0 by epoch 300, 21.0 by epoch 1000"),
    ],
)
def test_what_has_grown_since_the_third_hundred_is_a_fault(changed: dict[str, float], fault: str | None) -> None:
    last = Measure(1000, (0.4, 0.5), NUMBERS | changed)
    assert verdict([*MEASURES[:-1], last], 1000, 0) == ([] if fault is None else [fault])


def test_a_run_that_ends_early_is_a_fault() -> None:
    early = "the run ended with status {} after {} epochs and some, not 1,000"
    assert verdict(MEASURES[:4], 1000, 0) == [early.format(0, 400)]
    assert verdict([], 1000, 1) == [early.format(1, 0)]
    assert verdict(MEASURES, 1000, 3) == [early.format(3, "1,000")]
    assert verdict(MEASURES, 1050, 0) == []


def test_the_table_has_a_column_for_each_hundred() -> None:
    table = lines(MEASURES[:2])
    assert table[0].split() == ["by", "epoch", "100", "200"]
    assert table[1].split() == ["p50", "s", "0.45", "0.45"]
    assert next(line for line in table if line.startswith("CPU s")).split() == ["CPU", "s", "40", "40"]


def test_the_input_is_a_second_of_each_source_an_epoch(tmp_path: Path) -> None:
    STEADY.write(tmp_path, 3, 1)
    text = (tmp_path / "topology.vdsl").read_text()
    assert len(compile_topology(text, path="steady.vdsl", variables={"in": "i", "out": "o"}).stages) == 3
    for source in ("rates", "payments"):
        files = sorted((tmp_path / "in" / source).iterdir(), key=lambda path: path.stat().st_mtime)
        assert [path.name for path in files] == ["00000.parquet", "00001.parquet", "00002.parquet"]
        seconds = [{at.second for at in pq.read_table(path)["at"].to_pylist()} for path in files]
        assert seconds == [{0}, {1}, {2}]
