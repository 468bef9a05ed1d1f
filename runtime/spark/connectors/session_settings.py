"""What the connectors of a plan need of the Spark session that ``vsc run`` starts: jars, extensions, catalogs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vsc.plan.nodes import Plan
from vsc.runtime.errors import MissingJarsError
from vsc.runtime.spark.connectors import kafka_jars
from vsc.runtime.spark.connectors.lake_jars import lake_settings, unfetched_lake

__all__ = ["connector_settings", "unfetched"]


def connector_settings(plan: Plan, conf: Mapping[str, str], packages: Sequence[str]) -> dict[str, str]:
    """What is added to the settings `conf` of the session that `plan` starts with; `packages` are fetched anyway."""
    found = kafka_jars.jar_settings(plan, conf, packages)
    return found | lake_settings(plan, {**conf, **found}, packages)


def unfetched(packages: str, reason: str) -> MissingJarsError | None:
    """The error for a Spark that did not start, for that `reason`, since it could not fetch one of its `packages`."""
    if not kafka_jars.is_unfetched(reason):
        return None
    return kafka_jars.missing(reason) if kafka_jars.JARS[0] in packages else unfetched_lake(packages, reason)
