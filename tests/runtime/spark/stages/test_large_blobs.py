"""Large blobs on one machine: they go from task to task in files, which are gone when their epoch is over."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once
from vsc.runtime.spark.exchange.blob_files import BlobFiles

pytestmark = pytest.mark.spark

TOPOLOGY = """
stream s (k string, n bigint, at bigint)
from files (path = '${in}', format = 'parquet', 'maxFilesPerTrigger' = '1') timestamp at;
stream by_k = rekey s by k;
table counts = aggregate by_k group by k select count(*) as c;
stream kept = filter by_k where n >= 0;
sink kept to files (path = '${out}/kept', format = 'parquet');
sink counts to files (path = '${out}/counts', format = 'parquet');
"""
ROWS = 20_000


def test_their_files_are_gone_when_their_epoch_is_over(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        rows = [{"k": f"key {i % 7}", "n": number * ROWS + i, "at": i} for i in range(ROWS)]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in" / f"{number}.parquet")
    sizes, clear = [], BlobFiles.clear

    def seen(files: BlobFiles) -> None:
        sizes.append([path.stat().st_size > 64 << 10 for path in Path(files.folder).iterdir()])
        clear(files)

    monkeypatch.setattr(BlobFiles, "clear", seen)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    run_once(
        compiled(TOPOLOGY), spark, tmp_path / "ck", partitions=2, variables=variables, local_dir=tmp_path / "local"
    )
    assert [len(found) >= 2 and all(found) for found in sizes] == [True, True], sizes
    assert list((tmp_path / "local").glob("*/blobs/*")) == []
    assert sorted(row["n"] for row in parquet_rows(tmp_path / "out" / "kept")) == list(range(2 * ROWS))
    newest: Counter[str] = Counter()
    for row in parquet_rows(tmp_path / "out" / "counts"):
        newest[row["k"]] = max(newest[row["k"]], row["c"])
    assert newest == Counter(f"key {i % 7}" for _ in range(2) for i in range(ROWS))
