"""What a run says of sources and sinks that are not as one would expect: one line each, or an error at its end."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, write_json
from vsc.runtime.errors import UnusableInputError
from vsc.runtime.spark.base.job import Run
from vsc.runtime.spark.query.preflight import prepare
from vsc.runtime.spark.query.run import run
from vsc.runtime.spark.report.displays import display

pytestmark = pytest.mark.spark

TOPOLOGY = """
stream orders (id bigint, at timestamp) from files (path = '${in}/orders', format = 'json') key id timestamp at;
stream others (id bigint, at timestamp) from files (path = '${in}/others', format = 'json') key id timestamp at;
sink orders to files (path = '${out}', format = 'json');
sink others to noop ();
"""


def row(number: int | None) -> dict[str, Any]:
    return {"id": number, "at": "2026-05-04T00:00:00Z"}


def test_no_files_and_lost_files_get_a_line_and_rows_of_no_use_an_error(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def said() -> list[str]:
        caplog.clear()
        variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
        job = Run(compiled(TOPOLOGY), str(tmp_path / "ck"), variables, partitions=2)
        run(prepare(job), spark, display("none", sys.stderr))
        return [record.getMessage() for record in caplog.records if record.name.startswith("vsc.")]

    orders, others = tmp_path / "in/orders", tmp_path / "in/others"
    write_json(orders / "0.json", [row(1), row(2)], 0)
    write_json(others / "_hidden/0.json", [row(1)], 0)
    (others / ".crc").touch()
    assert said() == [f"source 'others' (line 3) has nothing to read: there are no files in '{others}'"]

    write_json(orders / "1.json", [row(3)], 1)
    write_json(others / "day/1.json", [row(1)], 1)
    shutil.rmtree(tmp_path / "out")
    assert said() == [
        f"the sink of 'orders' (line 4): the files that this checkpoint wrote to '{tmp_path / 'out'}' are gone; "
        "only new results are written (for all of them, run with a new checkpoint)"
    ]
    [file] = (tmp_path / "out").glob("part-*")
    assert file.read_text().startswith('{"id":3,')

    write_json(orders / "2.json", [row(None), row(None)], 2)
    write_json(others / "2.json", [row(None), row(2)], 2)
    with pytest.raises(UnusableInputError) as error:
        said()
    assert error.value.message == (
        "source 'orders' (line 2): all 2 rows that this run read from it had to be dropped (2 null_key)"
    )
    assert said() == []  # nothing was read
