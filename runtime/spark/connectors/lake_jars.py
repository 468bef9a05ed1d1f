"""Delta Lake and Iceberg, which are not part of pyspark: which release goes with which Spark, what a session needs.

``vsc run`` has Spark fetch the release and sets the session up (`lake_settings`); what a run brings along stays as it
is. A session that vsc has not started is checked (`check_session`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from vsc.plan.nodes import Plan, Source
from vsc.runtime.errors import LakeReleaseError, MissingJarsError

__all__ = ["DELTA", "ICEBERG", "Lake", "check_release", "check_session", "lake_settings", "unfetched_lake"]

_PACKAGES, _EXCLUDES = "spark.jars.packages", "spark.jars.excludes"
_PYSPARK_HAS = (
    "org.apache.hadoop:*", "org.apache.parquet:*", "org.scala-lang:*", "org.slf4j:*", "org.apache.logging.log4j:*",
    "com.fasterxml.jackson.core:*", "org.xerial.snappy:*", "com.github.luben:*",
    "org.roaringbitmap:*", "io.airlift:*", "org.locationtech.jts:*", "commons-pool:*",
    "com.google.code.findbugs:*",
)  # fmt: skip
"""What the lake formats depend on, and need not be fetched."""
_EXTENSIONS, _CATALOG = "spark.sql.extensions", "spark.sql.catalog.spark_catalog"


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake format: its kind of connector, its name for people, its releases by Spark's, and what a session needs.

    `jar` is what the name of its jar begins with, `catalog` the session catalog that it needs, if any.
    """

    kind: str
    name: str
    jar: str
    releases: Mapping[str, str]
    extension: str
    catalog: str | None = None

    def coordinates(self, spark: str = pyspark.__version__) -> str | None:
        """The Maven coordinates of the release for a release of Spark, such as 4.1.4, or None."""
        return self.releases.get(".".join(spark.split(".")[:2]))

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a session, beside the jars."""
        return {_EXTENSIONS: self.extension} | ({} if self.catalog is None else {_CATALOG: self.catalog})


DELTA = Lake(
    "delta", "Delta Lake", "delta-spark_",
    {"4.1": "io.delta:delta-spark_4.1_2.13:4.4.0", "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0"},
    "io.delta.sql.DeltaSparkSessionExtension", "org.apache.spark.sql.delta.catalog.DeltaCatalog",
)  # fmt: skip
ICEBERG = Lake(
    "iceberg", "Iceberg", "iceberg-spark-runtime-",
    {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"},
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
)  # fmt: skip
_LAKES = (DELTA, ICEBERG)


def check_release(lake: Lake, place: str, spark: str = pyspark.__version__) -> None:
    """Raises LakeReleaseError if no release exists of `lake` for this Spark."""
    if lake.coordinates(spark) is None:
        known = " or ".join(sorted(lake.releases))
        raise LakeReleaseError(
            f"{place}: {lake.name} has no release that works with Spark {spark}",
            f"install pyspark {known}: python -m pip install 'pyspark=={min(lake.releases)}.*'",
        )


def lake_settings(plan: Plan, conf: Mapping[str, str], packages: Sequence[str]) -> dict[str, str]:
    """What is added to the settings `conf` of the session that `plan` starts with; `packages` are fetched anyway."""
    found = dict(conf)
    for lake in _used(plan):
        for name, value in lake.settings.items():
            if name != _EXTENSIONS:
                found.setdefault(name, value)
            elif value not in found.get(name, ""):
                found[name] = _joined(found.get(name), value)
        if not _is_given(lake, (*conf.values(), *packages)):
            found[_PACKAGES] = _joined(found.get(_PACKAGES), str(lake.coordinates()))
            found[_EXCLUDES] = _joined(found.get(_EXCLUDES), ",".join(_PYSPARK_HAS))
    return {name: value for name, value in found.items() if conf.get(name) != value}


def check_session(lake: Lake, spark: SparkSession, place: str) -> None:
    """Raises LakeReleaseError if the session lacks a setting that `lake` needs; MissingJarsError without its jars."""
    needed = "; ".join(f"{name} = {value}" for name, value in lake.settings.items())
    if lake.extension not in (spark.conf.get(_EXTENSIONS, None) or ""):
        raise LakeReleaseError(
            f"{place}: the Spark session was started without {lake.name}",
            f"start it with spark.jars.packages = {lake.coordinates()}; {needed}",
        )
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    if loader.getResource(lake.extension.replace(".", "/") + ".class") is None:
        raise _missing(lake, "its jars are not on the class path")


def unfetched_lake(packages: str, reason: str) -> MissingJarsError | None:
    """The error for a Spark that could not fetch, for that `reason`, a lake among its `packages`; None for another."""
    lakes = [lake for lake in _LAKES if lake.jar in packages]
    named = [lake for lake in lakes if lake.jar in reason]
    return _missing((named or lakes)[0], reason) if lakes else None


def _missing(lake: Lake, reason: str) -> MissingJarsError:
    return MissingJarsError(
        f"Spark has no {lake.name}: {reason}",
        f"fetch {lake.coordinates()} and what it depends on where Maven Central can be reached, "
        "and give the jars with --conf spark.jars=FILE,FILE",
    )


def _used(plan: Plan) -> list[Lake]:
    kinds = {sink.connector.kind for sink in plan.sinks}
    kinds |= {node.operation.connector.kind for node in plan.nodes if isinstance(node.operation, Source)}
    return [lake for lake in _LAKES if lake.kind in kinds]


def _is_given(lake: Lake, settings: Sequence[str]) -> bool:
    in_pyspark = Path(pyspark.__file__).with_name("jars").glob(f"{lake.jar}*")
    return any(re.search(lake.jar, setting) for setting in settings) or any(in_pyspark)


def _joined(given: str | None, more: str) -> str:
    return f"{given},{more}" if given else more
