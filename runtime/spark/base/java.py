"""Classes of the driver's JVM by their names."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

__all__ = ["java_class"]


def java_class(spark: SparkSession, name: str) -> Any:
    """The class with that full name, to be called for an object, or for its static methods: ``java.util.HashMap``.

    Asked for at once: for ``jvm.java.util.HashMap`` Py4J asks part by part, and for each part that is not a class
    the JVM looks into every jar. A class that is not there is a package to Py4J, and fails where it is called.
    """
    return getattr(spark._jvm, name)
