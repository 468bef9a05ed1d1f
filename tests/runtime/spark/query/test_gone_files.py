"""Files that are removed after Spark has listed them, before their epoch: the run stops, or says what is left out. Of
those that have changed, it says so."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.runtime.spark.support import compiled, parquet_rows, write_json
from vsc.plan import Plan
from vsc.runtime.errors import SourceError
from vsc.runtime.spark import start
from vsc.runtime.spark.query.running_query import QueryFailedError

pytestmark = pytest.mark.spark


def topology(form: str, more: str = "") -> Plan:
    return compiled(f"""
stream rows (id int) from files (path = '${{in}}', format = '{form}', 'maxFilesPerTrigger' = '2'{more}) key id;
sink rows to files (path = '${{out}}', format = 'parquet');
""")


class Case:
    """Five files of two rows, of which one is removed when the first epoch is done."""

    def __init__(self, spark: Any, folder: Path, form: str) -> None:
        self.spark, self.folder = spark, folder
        for number in range(5):
            rows = [{"id": 2 * number}, {"id": 2 * number + 1}]
            path = folder / "in" / f"{number} a.{form}"
            write_json(path, rows, number)
            if form == "parquet":
                pq.write_table(pa.Table.from_pylist(rows, pa.schema([("id", pa.int32())])), path)

    def run(self, plan: Plan, remove: str | None, change: Callable[[Path], object] | None = None) -> None:
        def done(report: Any) -> None:
            if remove is not None:
                (self.folder / "in" / remove).unlink(missing_ok=True)
            if change is not None and report.epoch == 0:
                change(self.folder / "in")

        variables = {"in": str(self.folder / "in"), "out": str(self.folder / "out")}
        start(plan, self.spark, checkpoint=self.folder / "ck", variables=variables, on_epoch=done).awaitTermination()

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in parquet_rows(self.folder / "out"))


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_the_run_stops_until_the_file_is_back(spark: Any, tmp_path: Path, form: str) -> None:
    case, gone = Case(spark, tmp_path, form), f"4 a.{form}"
    kept = (tmp_path / "in" / gone).read_bytes()
    for _ in range(2):  # an epoch that is repeated does not go without it either
        with pytest.raises(QueryFailedError) as caught:
            case.run(topology(form), gone)
        assert isinstance(caught.value.error, SourceError)
        assert caught.value.error.message == (
            f"source 'rows' (line 2): 1 file that Spark had listed for this epoch is gone: file://{tmp_path}/in/{gone}"
        )
        assert case.ids() == list(range(8))
    (tmp_path / "in" / gone).write_bytes(kept)
    case.run(topology(form), None)
    assert case.ids() == list(range(10))


def test_a_source_may_go_on_without_it(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    case = Case(spark, tmp_path, "json")
    with caplog.at_level(logging.WARNING, "vsc"):
        case.run(topology("json", ", 'ignoreMissingFiles' = 'true'"), "4 a.json")
    assert case.ids() == list(range(8))
    assert [record.getMessage() for record in caplog.records if record.name.startswith("vsc")] == [
        "source 'rows' (line 2): 1 file that Spark had listed for this epoch is gone, with all rows: "
        f"file://{tmp_path}/in/4 a.json"
    ]


def test_files_that_have_changed_are_named(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Cut off, replaced: their rows were never seen, so that nothing else can tell."""

    def change(folder: Path) -> None:
        (folder / "2 a.json").write_bytes(b"")
        (folder / "4 a.json").write_text('{"id": 100}\n')

    case = Case(spark, tmp_path, "json")
    with caplog.at_level(logging.WARNING, "vsc"):
        case.run(topology("json"), None, change)
    assert case.ids() == [0, 1, 2, 3, 6, 7, 100]
    assert [record.getMessage() for record in caplog.records if record.name.startswith("vsc")] == [
        "source 'rows' (line 2): 1 file changed after Spark had listed what this epoch reads, and what is there now "
        f"counts: file://{tmp_path}/in/{number} a.json"
        for number in (2, 4)
    ]


def test_a_folder_in_the_place_of_a_file_is_none(spark: Any, tmp_path: Path) -> None:
    def change(folder: Path) -> None:
        (folder / "4 a.json").unlink()
        write_json(folder / "4 a.json" / "x.json", [{"id": 100}], 9)

    case = Case(spark, tmp_path, "json")
    with pytest.raises(QueryFailedError, match=r"is gone: .*/4 a\.json"):
        case.run(topology("json"), None, change)
    assert case.ids() == list(range(8))
