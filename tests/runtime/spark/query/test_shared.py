"""Which local paths a run's driver and executors have to share. No Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.runtime.spark.support import compiled
from vsc.runtime.errors import CheckpointError, SinkError, SourceError
from vsc.runtime.spark.connectors.iceberg.connector import IcebergTable
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.query.shared import shared_by
from vsc.runtime.spark.session.findings import Shared

TEXT = """
stream s (k string, at timestamp) from files (path = '/in/*', format = 'json') timestamp at;
stream r (k string, at timestamp) from iceberg (table = 'lake.db.read') timestamp at;
sink s to iceberg (path = '/out/by_path');
sink s to iceberg (table = 'lake.db.written');
sink s to iceberg (table = 'lake.db.missing');
sink s to files (path = 's3a://bucket/out', format = 'json');
sink r to files (path = 'out/by_name', format = 'json');
"""


def test_tables_that_a_catalog_knows_are_looked_at_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IcebergTable, "open", lambda table, spark: None if "missing" in str(table.name) else object())
    monkeypatch.setattr(IcebergTable, "location", lambda table, spark: f"file:/warehouse/{table.name}")
    context = SimpleNamespace(master="spark://there:7077")
    spark: Any = SimpleNamespace(sparkContext=context)
    assert shared_by(spark, Ends(compiled(TEXT)), "/ck", default_local=True) == (
        Shared("the source 's'", "/in/*", SourceError, read=True),
        Shared("the source 'r'", "/warehouse/lake.db.read", SourceError, read=True),
        Shared("the checkpoint", "/ck", CheckpointError),
        Shared("the sink of 's'", "/out/by_path", SinkError),
        Shared("the sink of 'r'", str(Path("out/by_name").absolute()), SinkError),
        Shared("the sink of 's'", "/warehouse/lake.db.written", SinkError),
    )
    context.master = "local[2]"
    assert shared_by(spark, Ends(compiled(TEXT)), "/ck", default_local=True) == ()
