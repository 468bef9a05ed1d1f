"""What docs/releases.md says works on which Spark, and the tests that show it: those of these seams.

``make test`` runs them on the Spark that it installs, `make newest` and `make oldest` on theirs: a test with one of
these seams gets the marker `support` by itself. ``python -m tests.supported`` lists them.
"""

from __future__ import annotations

__all__ = ["SEAMS", "SPARKS", "cell", "rows"]

SPARKS = ("4.0", "4.1", "4.2", "4.3")
SEAMS = {
    "Files": ("files source", "files sink"),
    "Kafka": ("kafka source", "kafka sink", "formats of Kafka", "a schema registry"),
    "Delta Lake": ("delta source", "delta sink"),
    "Iceberg": ("iceberg source", "iceberg sink"),
    "PostgreSQL": ("jdbc source", "jdbc sink"),
    "Restart, kill": ("a restart", "a kill"),
    "Upgrade": ("an upgrade while records wait", "another number of partitions", "a checkpoint of an earlier release"),
    "Cluster": ("a standalone cluster",),
}
"""The columns of the table."""


def cell(column: str, spark: str) -> str:
    """What the table says: the connector's release, "no" where none exists, or "yes" where nothing is needed."""
    from vsc.runtime.spark.connectors.jars import DELTA, ICEBERG, KAFKA  # here, as it imports pyspark

    package = {"Kafka": KAFKA, "Delta Lake": DELTA, "Iceberg": ICEBERG}.get(column)
    if package is None:
        return "yes"
    found = package.releases.get(spark)
    return "no" if found is None else found.rpartition(":")[2]


def rows() -> list[list[str]]:
    """The table without its last column."""
    return [[spark, *(cell(column, spark) for column in SEAMS)] for spark in SPARKS]


if __name__ == "__main__":
    from tests.seams import shown

    for column, seams in SEAMS.items():
        for seam, test in shown():
            if seam in seams:
                print(f"{column:14} {test}")
