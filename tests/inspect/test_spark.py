"""What ``vsc inspect`` writes about files is true on Spark: every row is read, with its values and times."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once
from vsc.cli import main
from vsc.runtime.metrics import Metrics

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
TIMES = [START + timedelta(minutes=m, milliseconds=m) for m in (0, 30, 20, 60)]
MILLIS = [int(t.timestamp() * 1000) for t in TIMES]


def write_all(folder: Path) -> None:
    """Four rows in each of six sources; `id` counts them."""
    for name in ("columns", "stripes", "documents", "cells", "german", "nanos"):
        (folder / name).mkdir()
    ids, at = pa.array(["a", "b", "c", "d"]), pa.array(TIMES, pa.timestamp("us", "UTC"))
    parquet = {
        "id": ids, "at": at, "dec": pa.array([Decimal("1.50")] * 4), "u": pa.array([2**32 - 1] * 4, pa.uint32()),
        "tags": pa.array([["x", "y"]] * 4), "order-id": pa.array([7] * 4, pa.int16()), "nothing": pa.nulls(4),
        "inner": pa.array([{"end": 1, "x y": "z"}] * 4),
    }  # fmt: skip
    pq.write_table(pa.table(parquet), folder / "columns/a.parquet")
    rows = {"id": ids, "at": at.cast(pa.timestamp("us")), "n": pa.array([1, None, 3, 4], pa.int32())}
    orc.write_table(pa.table(rows), folder / "stripes/a.orc")
    nanos = {"id": ids, "ts": pa.array([t * 1_000_000 for t in MILLIS], pa.timestamp("ns"))}
    pq.write_table(pa.table(nanos), folder / "nanos/a.parquet")
    documents: list[dict[str, Any]] = [
        {"id": "a", "epoch_ms": MILLIS[0], "mixed": 1, "p": {"x": 1.5, "from": [1]}, "big": 2**64},
        {"id": "b", "epoch_ms": MILLIS[1], "mixed": {"k": "v"}, "p": None},
        {"id": "c", "epoch_ms": MILLIS[2], "mixed": "x", "p": {"x": 2}, "Id": 9},
        {"id": "d", "epoch_ms": MILLIS[3], "mixed": [1.50]},
    ]
    (folder / "documents/a.json").write_text("".join(json.dumps(one) + "\n" for one in documents))
    cells = "\n".join(
        f"{i};{t / 1000:.3f};0{i};{v}" for i, t, v in zip(range(4), MILLIS, ("1", "NA", "3", "4"), strict=True)
    )
    (folder / "cells/a.csv").write_text(f"id;ts;code;n\n{cells}\n")
    german = "\n".join(f'k{i},{t:%d.%m.%Y %H:%M},"x\n""y"""' for i, t in enumerate(TIMES))
    (folder / "german/a.csv").write_text(f"Nr,Zeit,Text\n{german}\n")
    (folder / "german/README.md").write_text("about\nthis\n")


def _number(row: dict[str, Any]) -> Any:
    """The row's place in its file, which its key tells; of rows with other keys no order is promised."""
    return row["Nr"] if "Nr" in row else row["id"]


def test_every_row_is_read_with_what_the_statement_declares(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_all(tmp_path)
    names = ("columns", "stripes", "nanos", "documents", "cells", "german")
    assert main(["inspect", *(str(tmp_path / name) for name in names)]) == 0
    text = capsys.readouterr().out
    for name in names:
        text += f"stream {name}_all = map {name} select *;\n"
        text += (
            f"sink {name}_all to files (path = '{tmp_path}/out/{name}', format = 'parquet', with_timestamp = true);\n"
        )
    reports = run_once(compiled(text), spark, tmp_path / "ck")
    metrics = Metrics()
    for report in reports:
        metrics.merge(report.metrics)
    assert metrics == Metrics()
    read = {name: sorted(parquet_rows(tmp_path / "out" / name), key=_number) for name in names}
    minutes = [t // 60_000 * 60_000 for t in MILLIS]
    times = {name: [row["_timestamp"] for row in rows] for name, rows in read.items()}
    assert times == {name: minutes if name == "german" else MILLIS for name in names}
    first = read["columns"][0]
    assert (first["dec"], first["u"], first["tags"], first["order-id"], first["inner"]) == (
        Decimal("1.50"), 2**32 - 1, ["x", "y"], 7, {"end": 1, "x y": "z"},
    )  # fmt: skip
    assert [row["n"] for row in read["stripes"]] == [1, None, 3, 4]
    assert [row["mixed"] for row in read["documents"]] == ["1", '{"k": "v"}', "x", "[1.5]"]
    assert read["documents"][0]["p"] == {"x": 1.5, "from": [1]} and read["documents"][0]["big"] == Decimal(2**64)
    assert [(row["id"], row["code"], row["n"]) for row in read["cells"]] == [
        (0, "00", 1), (1, "01", None), (2, "02", 3), (3, "03", 4),
    ]  # fmt: skip
    assert [(row["Nr"], row["Text"]) for row in read["german"]] == [(f"k{i}", 'x\n"y"') for i in range(4)]
