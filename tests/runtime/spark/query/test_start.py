"""`vsc.start` in a session of the user's: what it takes, and in whose words a query fails."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import vsc
from tests.runtime.spark.support import parquet_rows, write_json
from vsc.runtime.errors import CheckpointError, ConfigurationError, ExpressionError, VscRuntimeError
from vsc.runtime.spark import QueryFailedError
from vsc.runtime.spark.query.running_query import RunningQuery

pytestmark = [pytest.mark.spark, pytest.mark.release]

STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions"
ROOT = Path(__file__).resolve().parents[4]
TOPOLOGY = """\
topology parts;
stream rows (id int, n int) from files (path = '${in}', format = 'json') key id;
stream parts = map rows select 12 / n as part;
sink parts to files (path = '${out}', format = 'parquet');
"""


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """The arguments of a run over two rows."""
    write_json(tmp_path / "in/a.json", [{"id": 1, "n": 4}, {"id": 2, "n": 3}], 0)
    names = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    return {"checkpoint": tmp_path / "ck", "variables": names}


@pytest.fixture
def failing(tmp_path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """The same, with a third row that cannot be computed."""
    write_json(tmp_path / "in/b.json", [{"id": 3, "n": 0}], 1)
    return given


def test_a_path_and_the_active_session_are_enough(spark: SparkSession, tmp_path: Path, given: dict[str, Any]) -> None:
    path = tmp_path / "parts.vdsl"
    path.write_text(TOPOLOGY)
    spark.conf.set(STATE_PARTITIONS, "1")  # as it is in a query's own session, which may be the active one
    query = vsc.start(path, **given)
    spark.conf.unset(STATE_PARTITIONS)
    assert isinstance(query, StreamingQuery)
    assert query.awaitTermination() is None
    assert query.exception() is None
    assert [row["part"] for row in parquet_rows(tmp_path / "out")] == [3.0, 4.0]
    again = vsc.start(vsc.compile(str(path)), spark, **given)
    again.processAllAvailable()
    assert again.awaitTermination(200) is True


@pytest.mark.seam("the README")
def test_what_the_readme_shows_runs(spark: SparkSession, tmp_path: Path) -> None:
    _, block = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    there = block.replace('"examples/', f'"{ROOT}/examples/').replace(
        '"out/', f'"{tmp_path}/out/'
    )  # not the JVM's folder
    exec(compile(there, "README.md", "exec"), {})
    written = "".join(file.read_text() for file in (tmp_path / "out/payments/priced").glob("part-*.json"))
    assert sorted(json.loads(line)["id"] for line in written.splitlines()) == ["p1", "p2", "p3", "p4", "p5", "p6"]


@pytest.mark.seam("failures")
def test_a_query_fails_in_the_words_of_vsc(spark: SparkSession, failing: dict[str, Any]) -> None:
    query = vsc.start(TOPOLOGY, spark, **failing)
    waits: tuple[Callable[[], object], ...] = (
        query.awaitTermination, lambda: query.awaitTermination(60), query.processAllAvailable,
    )  # fmt: skip
    for wait in waits:
        with pytest.raises(StreamingQueryException) as caught:
            wait()
        _check_failure(caught.value)
    _check_failure(query.exception())


def _check_failure(failure: BaseException | None) -> None:
    assert isinstance(failure, QueryFailedError)
    first, help = str(failure).splitlines()
    assert first.startswith("[VSC902] ") and "parts" in first and "division by zero" in first.lower()
    assert help.startswith("  help: ")
    assert failure.getMessage() == str(failure)
    assert isinstance(failure.error, ExpressionError)
    assert isinstance(failure.__cause__, StreamingQueryException)
    assert "Traceback" in str(failure.__cause__)


def test_what_vsc_does_not_know_is_left_as_it_is(spark: SparkSession, failing: dict[str, Any]) -> None:
    asked: list[BaseException] = []

    def why(failure: BaseException) -> VscRuntimeError | None:
        asked.append(failure)
        return None

    given = vsc.start(TOPOLOGY, spark, **failing)
    query = RunningQuery(given, why, lambda *_: given.status)
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    assert not isinstance(caught.value, QueryFailedError)
    assert asked == [caught.value]


def test_no_session_and_one_of_another_kind(
    spark: SparkSession, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other: Any = "local[*]"
    with pytest.raises(ConfigurationError, match=r"`spark` is a session of Spark on this driver, not builtins\.str"):
        vsc.start(TOPOLOGY, other, **given)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    with pytest.raises(ConfigurationError, match="there is no active Spark session"):
        vsc.start(TOPOLOGY, **given)


def test_a_run_that_is_refused_leaves_no_empty_folder(
    spark: SparkSession, tmp_path: Path, given: dict[str, Any]
) -> None:
    given["variables"]["out"] = str(tmp_path / "all/out")
    path = tmp_path / "parts.vdsl"
    path.write_text(TOPOLOGY)
    with pytest.raises(CheckpointError, match="there is no epoch 3 to go back to"):
        vsc.start(path, **given, back_to=3)
    assert not (tmp_path / "all").exists()
    vsc.start(path, **given).awaitTermination()
    assert [row["part"] for row in parquet_rows(tmp_path / "all/out")] == [3.0, 4.0]
