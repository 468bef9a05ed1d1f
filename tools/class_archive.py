"""``python -m tools.class_archive``: writes an archive of the classes that a small query loads, for the JVMs of tests.

A JVM that loads Spark's classes from the archive needs 4 CPU seconds fewer to its first epoch (docs/inside/speed.md).
The archive lies in the environment (`ARCHIVE`). It fits only the Spark that is installed there, and one release of
Java: a JVM that it does not fit starts without it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from vsc.runtime.spark.session.class_archive import reading, writing

__all__ = ["ARCHIVE", "JVM_OPTIONS", "main", "use_archive"]

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""JVMs that live for seconds: the first compiler and the simplest collector take half the CPU time."""
_EXAMPLES = ("payments", "revenue")
_SECONDS = 120


def use_archive(archive: Path = ARCHIVE) -> str:
    """Options of a JVM that uses the archive where it fits, and says nothing where it does not; none but this one."""
    return " ".join([JVM_OPTIONS, *(reading(archive) if archive.exists() else ["-Xshare:auto"])])


def main() -> None:
    """Runs examples in a session whose JVM writes the archive as it ends."""
    made = ARCHIVE.with_suffix(f".{os.getpid()}")
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join([JVM_OPTIONS, *writing(made)])
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with tempfile.TemporaryDirectory() as folder:
        gateway = _run_examples(Path(folder))
    gateway.proc.stdin.close()  # the JVM ends when nobody can speak to it any more
    gateway.proc.wait(_SECONDS)
    made.rename(ARCHIVE)


def _run_examples(folder: Path) -> Any:
    """Runs the examples to their ends; returns the gateway to the JVM, whose session is stopped."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    import vsc
    from vsc.runtime.spark.session.session import local_settings

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.local.dir", str(folder)).config(map={**local_settings()}).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for name in _EXAMPLES:
        example = Path("examples") / name
        query = vsc.start(
            example / "topology.vdsl",
            checkpoint=str(folder / name / "checkpoint"),
            variables={"data": str(example / "data"), "out": str(folder / name)},
        )
        query.awaitTermination()
    gateway = SparkContext._gateway
    spark.stop()
    return gateway


if __name__ == "__main__":
    main()
