"""`query.status`: what it shows at which moment, and how what was shown stays current."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import vsc
from tests.runtime.spark.support import write_json
from vsc.notebook.displays import keep_current

pytestmark = [pytest.mark.spark, pytest.mark.release]

TOPOLOGY = """\
topology parts;
stream rows (id int, n int) from files (path = '${in}', format = 'json') key id;
stream parts = map rows select 12 / n as part;
sink parts to noop ();
"""


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    write_json(tmp_path / "in/a.json", [{"id": 1, "n": 4}, {"n": 3}], 0)
    return {"checkpoint": tmp_path / "ck", "variables": {"in": str(tmp_path / "in")}}


def test_a_query_that_has_ended(spark: SparkSession, given: dict[str, Any]) -> None:
    query = vsc.start(TOPOLOGY, spark, **given)
    query.awaitTermination()
    status = query.status
    assert status["isTriggerActive"] is False and status.keys() >= {"message", "isDataAvailable"}
    assert repr(status).splitlines() == [
        f"{query.name}: ended",
        "  done     1 epoch, 2 rows in, 1 out",
        "  read     rows 2",
        "  written  parts 1",
        "  dropped  1 null_key in 'rows'",
    ]
    assert '<td style="text-align:left">1 null_key in &#x27;rows&#x27;</td>' in status._repr_html_()


def test_a_query_that_has_failed(spark: SparkSession, tmp_path: Path, given: dict[str, Any]) -> None:
    write_json(tmp_path / "in/b.json", [{"id": 3, "n": 0}], 1)
    query = vsc.start(TOPOLOGY, spark, **given)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()
    first = repr(query.status).splitlines()[0]
    assert first.startswith(f"{query.name}: failed: [VSC902] 'parts': 12 / n failed on record 1 of ")


class Handle:
    """What was shown, one after the other."""

    def __init__(self) -> None:
        self.shown: list[list[str]] = []

    def update(self, bundle: dict[str, str], raw: bool) -> None:
        assert raw and bundle["text/html"].startswith("<table>")
        self.shown.append(bundle["text/plain"].splitlines())


def test_what_is_shown_stays_current_until_the_query_ends(spark: SparkSession, given: dict[str, Any]) -> None:
    query = vsc.start(TOPOLOGY, spark, trigger="1 second", **given)
    handle = Handle()
    shower = Thread(target=keep_current, args=(query, cast(Any, handle)))
    shower.start()
    query.processAllAvailable()
    assert repr(query.status).splitlines()[1] == "  done     1 epoch, 2 rows in, 1 out"
    query.stop()
    shower.join(200)
    assert not shower.is_alive()
    assert handle.shown[-1][:2] == [f"{query.name}: ended", "  done     1 epoch, 2 rows in, 1 out"]
