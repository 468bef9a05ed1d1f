"""What a run has been checked for is not checked again once Spark runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled
from vsc.runtime.spark.base.job import Run
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.query import opened, start
from vsc.runtime.spark.query.opened import Opened
from vsc.runtime.spark.query.preflight import PreparedRun, prepare
from vsc.runtime.spark.query.start import start_query

TEXT = "stream s (value bigint, at timestamp) from rate (rows_per_second = 1) timestamp at; sink s to noop ();"


class Asked(Exception):
    """A system was asked."""


class Claimed(Exception):
    """The run went on to its checkpoint."""


def prepared(folder: Path) -> PreparedRun:
    return prepare(Run(compiled(TEXT), str(folder / "ck")))


@pytest.mark.parametrize(("fresh", "reached"), [(True, True), (False, True), (None, False)])
def test_only_spark_can_tell_whether_a_distant_checkpoint_is_new(
    fresh: bool | None, reached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(Ends, "reach", lambda ends, fresh, local: asked.append(fresh))
    assert prepared(tmp_path).reach(fresh).reached is reached
    assert asked == [bool(fresh)]


@pytest.mark.spark
def test_systems_are_asked_once(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(error: type[Exception]) -> Any:
        def failing(*arguments: object) -> None:
            raise error

        return failing

    ready = prepared(tmp_path)
    known = ready.reach(True)
    monkeypatch.setattr(Ends, "reach", fail(Asked))
    monkeypatch.setattr(start, "claim", fail(Claimed))
    with pytest.raises(Asked):
        start_query(Opened.of(ready, spark), spark)
    with pytest.raises(Claimed):
        start_query(Opened.of(known, spark), spark)
    monkeypatch.setattr(opened, "prepare", fail(Asked))
    assert Opened.of(known, spark).ends is known.ends
    assert Opened.of(ready, spark).to_drain().reached
