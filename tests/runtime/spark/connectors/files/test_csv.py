"""CSV files read by a query: what Spark hands over of a file, bad rows and files of another kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.runtime.spark.support import compiled, parquet_rows, run_once
from vsc.plan import Plan
from vsc.runtime.errors import SourceError
from vsc.runtime.metrics import Dropped, Group
from vsc.runtime.spark.base.options import resolve_plan
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.query.failures import translated

pytestmark = [pytest.mark.spark, pytest.mark.release]


def topology(columns: str, options: str = "") -> Plan:
    return compiled(f"""
stream rows ({columns}) from files (path = '${{in}}', format = 'csv'{options}) timestamp at;
sink rows to files (path = '${{out}}', format = 'parquet', with_timestamp = true);
""")


def run(spark: Any, folder: Path, plan: Plan, *files: bytes) -> tuple[list[tuple[Any, ...]], int]:
    """The values of the rows by event time, which is left out, and how many rows could not be read."""
    (folder / "in").mkdir()
    for number, data in enumerate(files):
        (folder / "in" / f"{number}.csv").write_bytes(data)
    variables = {"in": str(folder / "in"), "out": str(folder / "out")}
    (report,) = run_once(plan, spark, folder / "ck", variables=variables)
    rows = sorted(parquet_rows(folder / "out"), key=lambda row: row["_timestamp"])
    found = [tuple(value for name, value in row.items() if name not in ("at", "_timestamp")) for row in rows]
    return found, report.metrics.get("rows", Group.DROPPED_RECORDS, Dropped.UNREADABLE)


def test_line_breaks_and_empty_cells_at_the_end(spark: Any, tmp_path: Path) -> None:
    found, unreadable = run(
        spark,
        tmp_path,
        topology("a string, at bigint, n int"),
        b'a,at,n\r\n"1\r\n2",1,7\r\n"3\n4",2,\r\n"5\r6",3,',
        b'at,a,n\n4,"","8"\n5,"z",',
        b"at,a,n\r6,,\r7,x,9",
    )
    assert found == [("1\r\n2", 7), ("3\n4", None), ("5\r6", None), ("", 8), ("z", None), (None, None), ("x", 9)]
    assert unreadable == 0


@pytest.mark.parametrize("end", ["\\r", "\\r\\n"])
def test_the_line_end_may_be_given(spark: Any, tmp_path: Path, end: str) -> None:
    plan = topology("a string, at bigint", f", 'lineSep' = '{end}', 'sep' = '\\t'")
    found, unreadable = run(spark, tmp_path, plan, b'a\tat\r\nx\t1\r\n"y\nz"\t2\r\nq\r\nw\t3')
    assert (found, unreadable) == ([("x",), ("y\nz",), ("w",)], 1)


def test_bytes_that_are_no_text_are_unreadable(spark: Any, tmp_path: Path) -> None:
    plan = topology("a string, at bigint")
    found, unreadable = run(spark, tmp_path, plan, "at,a,b\n1,ü,x\n".encode() + b"2,\xfc,x\n3,y,\xfc\n")
    assert (found, unreadable) == ([("ü",), ("y",)], 1)


def test_a_file_with_another_separator_is_named(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        run(spark, tmp_path, topology("a string, at bigint"), b"a;at\nx;1\n")
    assert caught.value.message == (
        f"source 'rows' (line 2): the header of file:{tmp_path}/in/0.csv is the single cell 'a;at': "
        "its columns seem to be separated by ';', not by ','"
    )
    assert caught.value.help == "write 'sep' = ';' among the options of the source"


@pytest.mark.parametrize("lenient", [False, True])
def test_a_file_without_a_header_is_named(spark: Any, tmp_path: Path, lenient: bool) -> None:
    """Its first row would be gone, and the others null."""
    plan = topology("a string, at bigint", ", missing_columns = 'null'" if lenient else "")
    files = b"a,at\nx,1\n", b"y,2\nz,3\n", b"at,more\n4,\n"
    if lenient:
        assert run(spark, tmp_path, plan, *files)[0] == [("x",), (None,)]  # z has no event time
        return
    with pytest.raises(StreamingQueryException) as caught:
        run(spark, tmp_path, plan, *files)
    known = translated(caught.value)
    assert known is not None and known.help is not None
    assert known.message == (
        f"source 'rows' (line 2): the header of file:{tmp_path}/in/1.csv names none of the declared columns: it is "
        "'y,2'"
    )
    assert known.help.startswith("write a header into the file; or remove it, and add 'ignoreMissingFiles' = 'true'")


def test_a_dialect_that_cannot_be_is_refused_at_the_start(tmp_path: Path) -> None:
    plan = topology("a string, at bigint", ", 'sep' = '${sep}'")
    with pytest.raises(SourceError, match=r"source 'rows' \(line 2\): 'sep' is a single ASCII character, not '::'"):
        Ends(resolve_plan(plan, {"in": str(tmp_path), "out": "-", "sep": "::"})).check(True)
