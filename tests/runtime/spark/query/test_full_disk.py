"""A full disk ends the query with an error that says so; with space there it goes on, and the sinks hold the same."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.errors import VscRuntimeError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.query.failures import explained
from vsc.runtime.spark.query.preflight import check
from vsc.runtime.spark.query.written_folders import written_folders

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPOLOGY = """
stream s (k string, n bigint, at bigint) from files (path = '${in}', format = 'json') timestamp at;
table sums = aggregate s group by k select sum(n) as n, count(*) as c;
sink sums to files (path = '${out}', format = 'parquet');
"""


class Disk:
    """A small file system of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Leaves no space at all."""
        with self._ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                return

    def free(self) -> None:
        self._ballast.unlink()


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    folder = tmp_path_factory.mktemp("small")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("no small file system can be mounted here")
    yield Disk(folder)
    subprocess.run(["umount", "--lazy", folder], check=True)


class Case:
    """A job, one of whose folders is on the small disk."""

    def __init__(self, spark: Any, folder: Path, disk: Disk, small: str) -> None:
        self.spark, self.plan, self.input = spark, compiled(TOPOLOGY), folder / "in"
        places = {name: folder / name for name in ("checkpoint", "sink", "local")}
        places[small] = disk.folder / small
        self.checkpoint, self.out, self.local = places["checkpoint"], places["sink"], places["local"]

    def add(self, number: int) -> None:
        rows = [{"k": f"key {i:05}", "n": number, "at": number} for i in range(2000)]
        write_json(self.input / f"{number}.json", rows, number)

    def run(self) -> None:
        variables = {"in": str(self.input), "out": str(self.out)}
        run_once(
            self.plan, self.spark, self.checkpoint, partitions=1, variables=variables, local_dir=str(self.local)
        )  # fmt: skip

    def failure(self) -> VscRuntimeError | None:
        """What a run fails with, as `vsc run` tells it."""
        try:
            self.run()
        except VscRuntimeError as error:
            return error
        except Exception as error:
            variables = {"in": str(self.input), "out": str(self.out)}
            places = written_folders(
                check(self.plan, variables, "available-now"), str(self.checkpoint), str(self.local)
            )
            return explained(error, SparkLogs(Files(self.spark, str(self.checkpoint))), places)
        raise AssertionError("it did not fail")


@pytest.mark.parametrize("small", ["local", "sink", "checkpoint"])
def test_a_full_disk(spark: Any, tmp_path: Path, disk: Disk, small: str) -> None:
    case = Case(spark, tmp_path, disk, small)
    case.add(0)
    case.run()
    case.add(1)
    disk.fill()
    try:
        error = case.failure()
        assert error is not None
        assert "no space left" in str(error).lower(), error
        assert error.help is not None and "free some space" in error.help
        assert str(disk.folder / small) in error.message, error
        assert len(parquet_rows(case.out)) == 2000
    finally:
        disk.free()
    case.run()
    rows = parquet_rows(case.out)
    assert [(r["n"], r["c"]) for r in rows] == [(0, 1)] * 2000 + [(1, 2)] * 2000
    assert len({r["k"] for r in rows[2000:]}) == 2000
