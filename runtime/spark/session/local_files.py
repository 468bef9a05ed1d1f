"""Files on a local disk, for a session that vsc starts on this machine: Hadoop would run ``chmod`` for each of them,
and write a checksum beside each.

Without its native library, which is not part of pyspark, Hadoop starts a process whenever it sets a
file's permissions: for all that Spark creates in a checkpoint, some ten times an epoch of ten rows. Beside the files of
a state, of which there are most, Spark itself writes checksums: Hadoop's would be one more for them, and for those. A
sink's files are read by all kinds of programs, for which Hadoop's checksums are only more files.

A source's files are listed in the order of their paths, as an epoch orders their rows, and not as the disk has them:
Spark sorts them by time only. A file to which links lead is listed once, and a name that the JVM cannot read is an
error: Hadoop leaves such a file out without a word.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from vsc.runtime.spark.base.java import compiled_java, java_class
from vsc.runtime.spark.session.local_files_java import CLASS, SOURCE

__all__ = ["listing_a_source", "use_local_files"]

_SETTING = "fs.file.impl"
_log = logging.getLogger(__name__)


@contextmanager
def listing_a_source(spark: SparkSession) -> Iterator[None]:
    """What Spark lists inside of this, it lists as a stream does: once, in order, whatever links lead to it."""
    files = _local_files(spark)
    if files.getClass().getName() != CLASS:
        yield
        return
    files.listSource(True)
    try:
        yield
    finally:
        files.listSource(False)


def use_local_files(spark: SparkSession) -> None:
    """From now on, whoever asks Hadoop in this JVM for the local file system gets one that starts no process.

    Hadoop keeps one object for all; those who have asked before keep theirs. One that the user has set stays.
    """
    if spark._jsc.hadoopConfiguration().get(_SETTING) is not None:
        return
    if _local_files(spark).getClass().getName() == CLASS:
        return
    files, local = java_class(spark, "org.apache.hadoop.fs.FileSystem"), java_class(spark, "java.net.URI")("file:///")
    try:
        settings = java_class(spark, "org.apache.hadoop.conf.Configuration")(spark._jsc.hadoopConfiguration())
        settings.setClassLoader(compiled_java(spark, SOURCE))
        settings.set(_SETTING, CLASS)
        files.get(local, settings).close()  # Hadoop forgets the one that it keeps
        files.get(local, settings)
    except Py4JError as error:
        why = str(error).splitlines()[0]
        _log.warning("local files are listed as the disk and its links have them, and Hadoop starts processes: %s", why)


def _local_files(spark: SparkSession) -> Any:
    """Hadoop's object for local files."""
    files, local = java_class(spark, "org.apache.hadoop.fs.FileSystem"), java_class(spark, "java.net.URI")("file:///")
    return files.get(local, spark._jsc.hadoopConfiguration())
