"""Spark's own Kafka connector, which is not part of pyspark: which release of it goes with which Spark, and its jars.

``vsc run`` has Spark fetch it from Maven before the session starts, unless the run brings it along: see `jar_settings`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark

from vsc.plan.nodes import Plan, Source
from vsc.runtime.errors import MissingJarsError

__all__ = ["JARS", "connector_release", "is_unfetched", "jar_settings", "missing"]

_SCALA = "2.13"
JARS = (
    f"spark-sql-kafka-0-10_{_SCALA}",
    f"spark-token-provider-kafka-0-10_{_SCALA}",
    "kafka-clients",
    "commons-pool2",
)
"""The connector, and what it needs that pyspark lacks."""
_RELEASES = {"4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.2.0"}
"""By Spark's release: the newest connector that all its parts have been published for."""
_PYSPARK_HAS = (
    "org.apache.hadoop:hadoop-client-runtime", "org.apache.hadoop:hadoop-client-api", "org.lz4:lz4-java",
    "org.xerial.snappy:snappy-java", "org.slf4j:slf4j-api", "com.google.code.findbugs:jsr305",
    f"org.scala-lang.modules:scala-parallel-collections_{_SCALA}",
)  # fmt: skip
_GIVEN = re.compile(r"spark-sql-kafka-0-10_")
_UNFETCHED = re.compile(r"unresolved dependency|download failed|problem during retrieve|not found", re.IGNORECASE)
"""What Ivy says of jars that it cannot fetch."""
_PACKAGES, _EXCLUDES = "spark.jars.packages", "spark.jars.excludes"


def connector_release(spark: str) -> str:
    """The connector for a release of Spark, such as 4.1.4; that of the newest one known for one that is newer."""
    return _RELEASES.get(".".join(spark.split(".")[:2]), list(_RELEASES.values())[-1])


def jar_settings(plan: Plan, conf: Mapping[str, str], packages: Sequence[str]) -> dict[str, str]:
    """What is added to the settings of the session that `plan` starts with: none, or what fetches the connector.

    Nothing is fetched if no source reads from Kafka, or if `conf`, `packages` or pyspark's own folder have it.
    """
    if not any(isinstance(n.operation, Source) and n.operation.connector.kind == "kafka" for n in plan.nodes):
        return {}
    if any(map(_GIVEN.search, (*conf.values(), *packages))) or _in_pyspark():
        return {}
    named = [*filter(None, [conf.get(_PACKAGES)]), _coordinates()]
    excluded = [*filter(None, [conf.get(_EXCLUDES)]), *_PYSPARK_HAS]
    return {_PACKAGES: ",".join(named), _EXCLUDES: ",".join(excluded)}


def is_unfetched(reason: str) -> bool:
    """Whether Spark did not start, for that reason, because a package could not be fetched."""
    return _UNFETCHED.search(reason) is not None


def missing(reason: str) -> MissingJarsError:
    """The error for a Spark without the connector."""
    return MissingJarsError(
        f"Spark has no Kafka connector: {reason}",
        f"fetch {_coordinates()} on a machine that reaches Maven Central: of what it needs, the four jars "
        f"{', '.join(JARS)} are enough. Give them with --conf spark.jars=FILE,FILE,FILE,FILE",
    )


def _coordinates() -> str:
    return f"org.apache.spark:{JARS[0]}:{connector_release(pyspark.__version__)}"


def _in_pyspark() -> bool:
    return any(Path(pyspark.__file__).with_name("jars").glob(f"{JARS[0]}*"))
