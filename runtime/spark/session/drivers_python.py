"""The Python that Spark starts on the driver, where executors have theirs at another path, or of an archive.

Spark runs the start of a stateful operator on the driver, in a worker of the Python that its function names, which is
that of the executors: `./env/bin/python` of an archive is not there. So on the driver a function names this process's
Python, and once it is on its way to executors, theirs.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession, udf

from vsc.runtime.spark.base.java import compiled_java, java_class
from vsc.runtime.spark.session.session import is_here

__all__ = ["drivers_python"]

_CLASS = "vsc.OnDriver"
_SOURCE = """
package vsc;

import org.apache.spark.api.python.SimplePythonFunction;

public class OnDriver extends SimplePythonFunction {
    private final String python;

    public OnDriver(SimplePythonFunction there, String python) {
        super(there.command(), there.envVars(), there.pythonIncludes(), there.pythonExec(), there.pythonVer(),
            there.broadcastVars(), there.accumulator());
        this.python = python;
    }

    public String pythonExec() {
        return python;
    }

    protected Object writeReplace() {
        return new SimplePythonFunction(command(), envVars(), pythonIncludes(), super.pythonExec(), pythonVer(),
            broadcastVars(), accumulator());
    }
}
"""
"""What Java serializes instead of an object, `writeReplace` says: executors never see this class."""


@contextlib.contextmanager
def drivers_python(spark: SparkSession) -> Iterator[None]:
    """In this context, what the driver starts of a function of a frame is this process's Python."""
    context = spark.sparkContext
    if is_here(context.master) or context.pythonExec == sys.executable:
        yield
        return
    compiled, wrap = _compiled(spark), udf._wrap_function

    def on_driver(*of: Any) -> Any:
        return compiled(wrap(*of), sys.executable)

    udf._wrap_function = on_driver  # type: ignore[assignment]
    try:
        yield
    finally:
        udf._wrap_function = wrap


def _compiled(spark: SparkSession) -> Any:
    """What makes an object of the class."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    (constructor,) = compiled_java(spark, _SOURCE).loadClass(_CLASS).getConstructors()

    def made(*given: Any) -> Any:
        arguments = gateway.new_array(java_class(spark, "java.lang.Object"), len(given))
        for place, one in enumerate(given):
            arguments[place] = one
        return constructor.newInstance(arguments)

    return made
