"""Classes of the driver's JVM by their names."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

__all__ = ["compiled_java", "has_java_class", "java_class"]


def java_class(spark: SparkSession | type[SparkContext], name: str) -> Any:
    """The class with that full name, to be called for an object, or for its static methods: ``java.util.HashMap``.

    Asked for at once: for ``jvm.java.util.HashMap`` Py4J asks part by part, and for each part that is not a class
    the JVM looks into every jar. A class that is not there is a package to Py4J, and fails where it is called.
    """
    return getattr(spark._jvm, name)


def has_java_class(spark: SparkSession, name: str) -> bool:
    """Whether the class with that full name is on the class path; it is not loaded."""
    return _class_loader(spark).getResource(name.replace(".", "/") + ".class") is not None


def compiled_java(spark: SparkSession, source: str) -> Any:
    """The class loader of what is compiled from a text of Java. Spark brings Janino, the compiler of its own code."""
    compiler = java_class(spark, "org.codehaus.janino.SimpleCompiler")()
    compiler.setParentClassLoader(_class_loader(spark))
    compiler.cook(source)
    return compiler.getClassLoader()


def _class_loader(spark: SparkSession) -> Any:
    """The class loader of the thread that answers Python; it has the jars of ``spark.jars``, too."""
    return java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
