"""Where a table is that a catalog knows by its name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.runtime.spark.support import compiled
from vsc.runtime.spark.connectors.registry import Ends

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_named_table_has_a_folder(lakes: SparkSession, tmp_path: Path) -> None:
    for name, value in {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hadoop",
        ".warehouse": str(tmp_path),
    }.items():
        lakes.conf.set(f"spark.sql.catalog.held{name}", value)

    def folder(lake: str, option: str, value: str) -> str | None:
        read = "stream s (k string) from files (path = 'in', format = 'json');"
        text = f"{read} sink s to {lake} ({option} = '{value}');"
        return Ends(compiled(text)).sinks[0].catalogued(lakes)

    assert folder("iceberg", "table", "held.db.t") is None
    lakes.sql("create table held.db.t (k string) using iceberg")
    assert folder("iceberg", "table", "held.db.t") == f"{tmp_path}/db/t"
    assert folder("iceberg", "path", f"{tmp_path}/db/t") is None
    lakes.sql(f"create table held_by_name (k string) using delta location '{tmp_path}/d'")
    try:
        assert folder("delta", "table", "held_by_name") == f"file:{tmp_path}/d"
    finally:
        lakes.sql("drop table held_by_name")
