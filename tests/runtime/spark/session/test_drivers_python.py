"""Which Python a function of a frame names: on the driver, and on its way to executors."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pyspark.sql import SparkSession, udf

from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.session.drivers_python import drivers_python

pytestmark = [pytest.mark.spark, pytest.mark.release]


def arrived(spark: SparkSession, function: Any) -> Any:
    """What an executor gets of an object of the driver."""
    sent = java_class(spark, "java.io.ByteArrayOutputStream")()
    java_class(spark, "java.io.ObjectOutputStream")(sent).writeObject(function)
    there = java_class(spark, "java.io.ByteArrayInputStream")(sent.toByteArray())
    return java_class(spark, "java.io.ObjectInputStream")(there).readObject()


def test_a_function_names_this_python_here_and_theirs_on_executors(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", "./env/bin/python")
    with drivers_python(spark):
        assert udf._wrap_function(context, len).pythonExec() == "./env/bin/python"  # tasks are in this process
    monkeypatch.setattr(context, "master", "spark://there:7077")
    with drivers_python(spark):
        function = udf._wrap_function(context, len)
    assert function.pythonExec() == sys.executable
    there = arrived(spark, function)
    assert (there.getClass().getSimpleName(), there.pythonExec()) == ("SimplePythonFunction", "./env/bin/python")
    assert there.pythonVer() == context.pythonVer and there.command().equals(function.command())
    assert udf._wrap_function(context, len).pythonExec() == "./env/bin/python"
