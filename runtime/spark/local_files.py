"""Files on a local disk, for a session that vsc starts on this machine: Hadoop would run ``chmod`` for each of them.

Without its native library, which is not part of pyspark, Hadoop starts a process whenever it sets a
file's permissions: for all that Spark creates in a checkpoint, some ten times an epoch of ten rows.
"""

from __future__ import annotations

import logging
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

__all__ = ["use_local_files"]

_SETTING, _CLASS = "fs.file.impl", "vsc.LocalFiles"
_SOURCE = """
package vsc;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    public static class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {  // which Java has no name for
                super.setPermission(path, permission);
                return;
            }
            String all = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL
                + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(all));
        }
    }
}
"""
"""Hadoop's own file system for local files, but for the one call. Spark brings Janino, the compiler of its own code."""

_log = logging.getLogger(__name__)


def use_local_files(spark: SparkSession) -> None:
    """From now on, whoever asks Hadoop in this JVM for the local file system gets one that starts no process.

    Hadoop keeps one object for all; those who have asked before keep theirs. One that the user has set stays.
    """
    jvm: Any = spark._jvm
    if spark._jsc.hadoopConfiguration().get(_SETTING) is not None:
        return
    try:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(_SOURCE)
        settings = jvm.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())
        settings.setClassLoader(compiler.getClassLoader())
        settings.set(_SETTING, _CLASS)
        files, local = jvm.org.apache.hadoop.fs.FileSystem, jvm.java.net.URI("file:///")
        files.get(local, settings).close()  # Hadoop forgets the one that it keeps
        files.get(local, settings)
    except Py4JError as error:  # an epoch takes longer, and is the same
        _log.warning("Hadoop starts a process for each local file that it creates: %s", str(error).splitlines()[0])
