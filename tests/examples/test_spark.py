"""The examples as their READMEs say, by ``vsc run``, and the flights beside pandas' own as-of join."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from tests.examples.expected import CORRECTED, HELD, LARGE, PRICED, Row
from tests.examples.test_features import wanted as features

pytestmark = pytest.mark.spark


def _run(root: Path, example: str, out: Path, *options: str) -> None:
    command = [sys.executable, "-m", "vsc", "run", f"examples/{example}/topology.vdsl"]
    command += ["--checkpoint", str(out / "checkpoint"), "--master", "local[2]", *options]
    command += ["--var", f"data=examples/{example}/data", "--var", f"out={out}", "--progress", "none"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr


def _written(folder: Path) -> list[Row]:
    """The rows of a JSON sink: every file with no part of its path beginning with ``_`` or ``.``."""
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not any(part[0] in "_." for part in file.relative_to(folder).parts)
    ]
    return [json.loads(line, parse_float=str) for file in files for line in file.read_text().splitlines()]


def _typed(
    row: Row, *, times: tuple[str, ...] = (), decimals: tuple[str, ...] = (), doubles: tuple[str, ...] = ()
) -> Row:
    readers: dict[str, Callable[[object], object]] = dict.fromkeys(
        times, lambda text: datetime.fromisoformat(str(text))
    )
    readers |= dict.fromkeys(decimals, lambda text: Decimal(str(text)))
    readers |= dict.fromkeys(doubles, lambda text: float(str(text)))
    return row | {name: read(row[name]) for name, read in readers.items() if row.get(name) is not None}


@pytest.mark.seam("the README")
def test_payments(root: Path, tmp_path: Path) -> None:
    _run(root, "payments", tmp_path)
    for sink, expected in [("priced", PRICED), ("large", LARGE)]:
        rows = [_typed(row, decimals=("amount",), doubles=("usd",)) for row in _written(tmp_path / sink)]
        nulls = {"account": None, "usd": None}  # Spark's JSON leaves out what is null
        assert sorted((nulls | row for row in rows), key=lambda row: str(row["id"])) == expected


@pytest.mark.slow
def test_features(root: Path, tmp_path: Path) -> None:
    """A table with a complete history and what came before each record, drained: the values are those of DuckDB."""
    _run(root, "features", tmp_path, "--drain")
    expected = features(root / "examples/features")
    decimals = tuple(name for name in expected[0] if name == "amount" or name.endswith(("_sum", "_max")))
    counts = tuple(name for name in expected[0] if name.endswith("_count"))
    nulls = dict.fromkeys(expected[0])  # Spark's JSON leaves out what is null
    rows = [nulls | _typed(row, times=("paid_at",), decimals=decimals) for row in _written(tmp_path / "features")]
    rows = [row | {name: int(str(row[name])) for name in counts} for row in rows]
    assert sorted(rows, key=lambda row: str(row["payment_id"])) == expected


@pytest.mark.slow
def test_sensors(root: Path, tmp_path: Path) -> None:
    _run(root, "sensors", tmp_path, "--partitions", "1")
    assert _corrected(tmp_path) == CORRECTED
    _run(root, "sensors", tmp_path, "--drain")
    assert _corrected(tmp_path) == [*CORRECTED[:2], HELD, *CORRECTED[2:]]


def _corrected(out: Path) -> list[Row]:
    written = _written(out / "corrected")
    rows = [_typed(row, times=("at", "since"), doubles=("raw", "corrected")) for row in written]
    return sorted(rows, key=lambda row: (str(row["sensor"]), str(row["at"])))


@pytest.mark.seam("the README")
@pytest.mark.slow
def test_flights_equal_an_as_of_join_by_pandas(root: Path, tmp_path: Path) -> None:
    from pandas.testing import assert_frame_equal

    from examples.flights import right
    from examples.flights.demo import FLIGHT

    _run(root, "flights", tmp_path)
    result, expected = right.written(tmp_path), right.departures(root / "examples/flights/data")
    assert len(result) == 160_748
    assert not result.duplicated(FLIGHT).any()
    assert_frame_equal(result, expected[list(result.columns)], check_dtype=False, check_exact=True)
