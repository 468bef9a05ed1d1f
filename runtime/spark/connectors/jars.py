"""What connectors need that is not part of pyspark (Spark's Kafka connector, Delta Lake, Iceberg): which release goes
with which Spark, its jars, what a session needs.

``vsc run`` has Spark fetch the release from Maven before the session starts, and sets the session up
(`connector_settings`); what a run brings along stays as it is. A session that vsc has not started is checked
(`check_session`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from vsc.plan.nodes import Plan
from vsc.runtime.errors import LakeReleaseError, MissingJarsError, StartError
from vsc.runtime.spark.base.java import has_java_class
from vsc.runtime.spark.base.releases import minor_release

__all__ = [
    "DELTA",
    "ICEBERG",
    "KAFKA",
    "KAFKA_JARS",
    "Package",
    "check_release",
    "check_session",
    "connector_settings",
    "unfetched",
]

_SCALA = "2.13"
_PACKAGES, _EXCLUDES = "spark.jars.packages", "spark.jars.excludes"
_EXTENSIONS, _CATALOG = "spark.sql.extensions", "spark.sql.catalog.spark_catalog"
_UNFETCHED = re.compile(r"unresolved dependency|download failed|problem during retrieve|not found", re.IGNORECASE)
"""What Ivy says of jars that it cannot fetch."""


@dataclass(frozen=True, slots=True)
class Package:
    """What a kind of connector needs: its name for people, its releases by Spark's, and what a session needs.

    `jar` is what the name of its jar begins with; `newest` the release for a Spark that none is known for;
    `pyspark_has` what it depends on and need not be fetched; `catalog` the session catalog that it needs, if any.
    """

    kind: str
    name: str
    jar: str
    releases: Mapping[str, str]
    pyspark_has: tuple[str, ...]
    fetch: str
    newest: str | None = None
    extension: str = ""
    catalog: str | None = None

    def coordinates(self, spark: str = pyspark.__version__) -> str | None:
        """The Maven coordinates of the release for a release of Spark, such as 4.1.4, or None."""
        return self.releases.get(minor_release(spark), self.newest)

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a session, beside the jars."""
        named = ((_EXTENSIONS, self.extension), (_CATALOG, self.catalog))
        return {name: value for name, value in named if value}

    def missing(self, reason: str) -> MissingJarsError:
        """The error for a Spark without it."""
        return MissingJarsError(f"Spark has no {self.name}: {reason}", f"fetch {self.coordinates()} {self.fetch}")


KAFKA_JARS = (
    f"spark-sql-kafka-0-10_{_SCALA}",
    f"spark-token-provider-kafka-0-10_{_SCALA}",
    "kafka-clients",
    "commons-pool2",
)
"""Spark's Kafka connector, and what it needs that pyspark lacks."""
_KAFKA = f"org.apache.spark:{KAFKA_JARS[0]}"
KAFKA = Package(
    "kafka", "Kafka connector", "spark-sql-kafka-0-10_",
    # The newest connector that all its parts have been published for.
    {"4.0": f"{_KAFKA}:4.0.0", "4.1": f"{_KAFKA}:4.1.1", "4.2": f"{_KAFKA}:4.2.0", "4.3": f"{_KAFKA}:4.2.0"},
    (
        "org.apache.hadoop:hadoop-client-runtime", "org.apache.hadoop:hadoop-client-api", "org.lz4:lz4-java",
        "org.xerial.snappy:snappy-java", "org.slf4j:slf4j-api", "com.google.code.findbugs:jsr305",
        f"org.scala-lang.modules:scala-parallel-collections_{_SCALA}",
    ),
    f"on a machine that reaches Maven Central: of what it needs, the four jars {', '.join(KAFKA_JARS)} are enough. "
    "Give them with --conf spark.jars=FILE,FILE,FILE,FILE",
    newest=f"{_KAFKA}:4.2.0",
)  # fmt: skip
_LAKES_HAVE = (
    "org.apache.hadoop:*", "org.apache.parquet:*", "org.scala-lang:*", "org.slf4j:*", "org.apache.logging.log4j:*",
    "com.fasterxml.jackson.core:*", "org.xerial.snappy:*", "com.github.luben:*",
    "org.roaringbitmap:*", "io.airlift:*", "org.locationtech.jts:*", "commons-pool:*",
    "com.google.code.findbugs:*",
)  # fmt: skip
_FETCH_LAKE = (
    "and what it depends on where Maven Central can be reached, and give the jars with --conf spark.jars=FILE,FILE"
)
DELTA = Package(
    "delta", "Delta Lake", "delta-spark_",
    {
        "4.0": "io.delta:delta-spark_2.13:4.0.0",
        "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
        "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
    },
    _LAKES_HAVE, _FETCH_LAKE, None,
    "io.delta.sql.DeltaSparkSessionExtension", "org.apache.spark.sql.delta.catalog.DeltaCatalog",
)  # fmt: skip
ICEBERG = Package(
    "iceberg", "Iceberg", "iceberg-spark-runtime-",
    {
        # Older ones leave out what a session says of a snapshot: who has written it, and which write it was.
        "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
        "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    },
    _LAKES_HAVE, _FETCH_LAKE, None,
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
)  # fmt: skip
_ALL = (KAFKA, DELTA, ICEBERG)
_FOR_ALL = max(set.intersection(*(set(one.releases) for one in _ALL)))
"""The newest Spark that all of them have a release for."""


def check_release(lake: Package, place: str, spark: str = pyspark.__version__) -> None:
    """Raises LakeReleaseError if no release exists of `lake` for this Spark."""
    if lake.coordinates(spark) is None:
        known = " or ".join(sorted(lake.releases))
        raise LakeReleaseError(
            f"{place}: {lake.name} has no release that works with Spark {spark}",
            f"install pyspark {known}: python -m pip install 'pyspark=={_FOR_ALL}.*'",
        )


def connector_settings(plan: Plan, conf: Mapping[str, str], packages: Sequence[str]) -> dict[str, str]:
    """What is added to the settings `conf` of the session that ``vsc run`` starts for `plan`: none, or what fetches
    packages, extensions and catalogs. `packages` are fetched anyway.

    Nothing is fetched that `conf`, `packages` or pyspark's own folder have.
    """
    kinds = {node.source.connector.kind for node in plan.sources}
    kinds |= {sink.connector.kind for sink in plan.sinks} - {KAFKA.kind}  # vsc writes to Kafka without Spark's
    settings = dict(conf)

    def add(name: str, value: str) -> None:
        settings[name] = f"{settings[name]},{value}" if settings.get(name) else value

    for package in (one for one in _ALL if one.kind in kinds):
        for name, value in package.settings.items():
            if name != _EXTENSIONS:
                settings.setdefault(name, value)
            elif value not in settings.get(name, ""):
                add(name, value)
        in_pyspark = Path(pyspark.__file__).with_name("jars").glob(f"{package.jar}*")
        if not any(package.jar in setting for setting in (*conf.values(), *packages)) and not any(in_pyspark):
            add(_PACKAGES, str(package.coordinates()))
            add(_EXCLUDES, ",".join(package.pyspark_has))
    return {name: value for name, value in settings.items() if conf.get(name) != value}


def check_session(lake: Package, spark: SparkSession, place: str) -> None:
    """Raises LakeReleaseError if the session lacks a setting that `lake` needs; MissingJarsError without its jars."""
    needed = "; ".join(f"{name} = {value}" for name, value in lake.settings.items())
    if lake.extension not in (spark.conf.get(_EXTENSIONS, None) or ""):
        raise LakeReleaseError(
            f"{place}: the Spark session was started without {lake.name}",
            f"start it with spark.jars.packages = {lake.coordinates()}; {needed}",
        )
    if not has_java_class(spark, lake.extension):
        raise lake.missing("its jars are not on the class path")


def unfetched(packages: str, reason: str) -> MissingJarsError | StartError | None:
    """The error for a Spark that did not start, for that `reason`, since it could not fetch one of its `packages`."""
    if _UNFETCHED.search(reason) is None:
        return None
    lacking = [package for package in _ALL if package.jar in packages]
    others = [one for one in packages.split(",") if ":" in one and not any(package.jar in one for package in lacking)]
    own = next((one for one in others if _artifact(one) in reason), None)
    if own is not None:
        return StartError(
            f"Spark cannot fetch the package {own}: {reason}",
            "correct its name, name a repository that has it (--repositories), or give its files (--jars)",
        )
    if not lacking:
        return None
    named = [package for package in lacking if package.jar in reason]
    return (named or lacking)[0].missing(reason)


def _artifact(package: str) -> str:
    """A package as Ivy writes it: ``group#artifact;``."""
    return f"{'#'.join(package.strip().split(':')[:2])};"
