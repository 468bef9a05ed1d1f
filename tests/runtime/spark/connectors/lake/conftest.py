"""A session with both lake formats, on the JVM of all tests: the other tests' session has no extension."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.connectors.jars import DELTA, ICEBERG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def lakes(spark: SparkSession) -> Iterator[SparkSession]:
    """The session. Spark reads the extensions of a new one from the settings of its context."""
    from pyspark.sql import SparkSession

    if DELTA.coordinates() is None or ICEBERG.coordinates() is None:
        pytest.skip("this Spark has no Delta Lake or no Iceberg")
    classes, conf = java_class(spark, "org.apache.spark.sql.classic.SparkSession"), spark._jsc.sc().conf()
    conf.set("spark.sql.extensions", f"{DELTA.extension},{ICEBERG.extension}")
    classes.clearActiveSession()
    classes.clearDefaultSession()
    try:
        made = classes.builder().config("spark.sql.catalog.spark_catalog", DELTA.catalog).getOrCreate()
        made.conf().set("spark.sql.session.timeZone", "UTC")
        made.conf().set("spark.sql.shuffle.partitions", "2")
        yield SparkSession(spark.sparkContext, made)
    finally:
        conf.remove("spark.sql.extensions")
        classes.setActiveSession(spark._jsparkSession)
        classes.setDefaultSession(spark._jsparkSession)
