"""Spark's own plan of a topology."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled
from vsc.cli import main
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.query.explain import spark_plans

STREAM = "stream s (k string, n bigint, at bigint) from files (path = '${in}', format = 'json') key k timestamp at;"
NEAR = "stream near = filter s where n > 3; stream pieces = explode near by split(k, '-') as piece;"
COUNTED = (
    STREAM
    + NEAR
    + "sink pieces to noop (); table counts = aggregate s group by k select count(*) as c; sink counts to noop ();"
)


@pytest.mark.spark
def test_plans(spark: Any, tmp_path: Path) -> None:
    text = spark_plans(compiled(COUNTED), spark, {"in": str(tmp_path)})
    for part in (
        "== Parsed Logical",
        "== Optimized Logical",
        "== Physical",
        "TransformWithStateInPySpark",
        "MapInArrow",
    ):
        assert part in text
    assert "hashpartitioning(slot" in text
    for part in text.partition("== Optimized Logical")[2].split("== Physical"):
        assert "TransformWithStateInPySpark stage 1: counts(" in part
        assert "MapInArrow stage 0: s(" in part and "MapInArrow control(" in part

    with pytest.raises(SourceError, match="there is no file or folder"):
        spark_plans(compiled(COUNTED), spark, {"in": str(tmp_path / "no")})


def test_what_is_refused_needs_no_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.vdsl").write_text(f"topology t; {COUNTED}")
    given = ["compile", str(tmp_path / "t.vdsl"), "--emit", "spark", "--var", f"in={tmp_path / 'no'}"]
    assert main(given) == 1
    assert str(tmp_path / "no") in capsys.readouterr().err
