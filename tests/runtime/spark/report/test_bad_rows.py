"""Rows that cannot be used: which column and text it was, the first one told, and a bound that keeps a batch back."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once
from vsc.runtime.errors import BadRowError
from vsc.runtime.spark import start
from vsc.runtime.spark.query.running_query import QueryFailedError

pytestmark = [pytest.mark.spark, pytest.mark.release]


def topology(form: str, sink: str = "files (path = '${out}', format = 'parquet')", more: str = "") -> str:
    return f"""stream rows (id string, n int, at bigint)
    from files (path = '${{in}}', format = '{form}'{more}) key id timestamp at;
    stream kept = filter rows where true; sink kept to {sink};"""


GOOD_JSON = '{"id": "a", "n": 1, "at": 1}\n'
BAD_JSON = '{"id": "b", "n": "two", "at": 2}\n'


class Case:
    """A folder with files, and runs over it."""

    def __init__(self, spark: Any, folder: Path, **files: str) -> None:
        self.spark, self.folder = spark, folder
        (folder / "in").mkdir(parents=True)
        for name, text in files.items():
            (folder / "in" / name).write_text(text)

    @property
    def variables(self) -> dict[str, str]:
        return {"in": str(self.folder / "in"), "out": str(self.folder / "out")}

    def run(self, text: str, **arguments: Any) -> list[str]:
        run_once(compiled(text), self.spark, self.folder / "ck", variables=self.variables, **arguments)
        return sorted(row["id"] for row in parquet_rows(self.folder / "out"))

    def fails(self, text: str, **arguments: Any) -> BadRowError:
        query = start(compiled(text), self.spark, checkpoint=self.folder / "ck", variables=self.variables, **arguments)
        with pytest.raises(QueryFailedError) as caught:
            query.awaitTermination()
        assert isinstance(caught.value.error, BadRowError)
        return caught.value.error


@pytest.mark.parametrize(
    ("form", "text", "problem"),
    [
        ("csv", "id,n,at\na,1,1\nb,two,2\n", "column 'n' (int) cannot hold 'two'"),
        ("csv", "id,n,at\na,1,1\nb,2,2,2\n", "it has 4 cells, not 3"),
        ("csv", "id,n,at\na,1,1\nb," + "9" * 90 + ",2\n", f"column 'n' (int) cannot hold '{'9' * 77}...'"),
        ("json", GOOD_JSON + BAD_JSON, "column 'n' (int) cannot hold 'two'"),
        ("json", GOOD_JSON + '{"id": "b", "n": 3000000000, "at": 2}\n', "column 'n' (int) cannot hold '3000000000'"),
        ("json", GOOD_JSON + '{"id": "b", \n', '\'{"id": "b", \' is not JSON'),
    ],
)
def test_the_first_unreadable_row_is_told(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str, text: str, problem: str
) -> None:
    case = Case(spark, tmp_path, a=text)
    error = case.fails(topology(form), on_bad_row="fail")
    what = f"row 2 of file:{tmp_path}/in/a cannot be read: {problem}"
    assert error.message == f"source 'rows': {what} (unreadable)"
    with caplog.at_level(logging.WARNING, "vsc"):
        assert case.run(topology(form)) == ["a"]
    assert [record.getMessage() for record in caplog.records if record.name.startswith("vsc")] == [
        f"source 'rows' (line 1): {what}. Such rows are dropped, and counted as unreadable"
    ]


@pytest.mark.seam("bad records", first=1)
@pytest.mark.parametrize(
    "sinks", ["files (path = '${out}', format = 'parquet')", "console ()", "noop ()"], ids=["files", "console", "noop"]
)
def test_a_batch_with_too_many_bad_rows_is_not_written(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], sinks: str
) -> None:
    rows = GOOD_JSON * 8 + '{"n": 3, "at": 3}\n' + BAD_JSON
    case = Case(spark, tmp_path, a=rows)
    text = topology("json", sinks)
    for bound in ("19.9%", "1"):
        error = case.fails(text, max_bad=bound)
        assert error.message == (
            "source 'rows' (line 1): 2 bad rows among the 10 rows of epoch 0 (1 null_key, 1 unreadable), more than "
            f"--max-bad {bound} allows: nothing of the epoch is written. "
            f"The first: row 9 of file:{tmp_path}/in/a has a null key column"
        )
        assert parquet_rows(tmp_path / "out") == []
        assert "| a" not in capsys.readouterr().out
    run_once(compiled(text), spark, tmp_path / "ck", variables=case.variables, max_bad="20%")
    if "files" in sinks:
        assert [row["id"] for row in parquet_rows(tmp_path / "out")] == ["a"] * 8


def test_once_the_data_is_fixed_the_run_goes_on(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path, a=GOOD_JSON)
    text = topology("json") + "table counts = aggregate rows group by id select count(*) as c; sink counts to noop ();"
    assert case.run(text, max_bad="0") == ["a"]
    (tmp_path / "in/b").write_text(BAD_JSON)
    case.fails(text, max_bad="0%")
    assert len(list((tmp_path / "out").glob("part-*"))) == 1
    (tmp_path / "in/b").write_text('{"id": "b", "n": 2, "at": 2}\n')
    assert case.run(text, max_bad="0%") == ["a", "b"]
