"""Files on a local disk, for a session that vsc starts on this machine: Hadoop would run ``chmod`` for each of them,
and write a checksum beside each.

Without its native library, which is not part of pyspark, Hadoop starts a process whenever it sets a
file's permissions: for all that Spark creates in a checkpoint, some ten times an epoch of ten rows. Beside the files of
a state, of which there are most, Spark itself writes checksums: Hadoop's would be one more for them, and for those. A
sink's files are read by all kinds of programs, for which Hadoop's checksums are only more files.
"""

from __future__ import annotations

import logging

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from vsc.runtime.spark.base.java import compiled_java, java_class

__all__ = ["use_local_files"]

_SETTING, _CLASS = "fs.file.impl", "vsc.LocalFiles"
_SOURCE = """
package vsc;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

public class LocalFiles extends LocalFileSystem {
    private static final Pattern WITHOUT_CHECKSUM = Pattern.compile(
        ".*/state/[0-9]+/[0-9]+/(.+/)?[.]?[0-9]+_[^/]+[.](changelog|zip)([.]crc)?([.][^/]+[.]tmp)?"
        + "|.*/_vsc-[^/]+/[0-9]+-[0-9a-f]{32}/.+");

    public LocalFiles() {
        super(new Raw());
    }

    public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int buffer,
            short replication, long block, Progressable progress) throws IOException {
        if (WITHOUT_CHECKSUM.matcher(path.toUri().getPath()).matches()) {
            return getRawFileSystem().create(path, permission, overwrite, buffer, replication, block, progress);
        }
        return super.create(path, permission, overwrite, buffer, replication, block, progress);
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
"""Hadoop's own file system for local files, but for two calls. Spark brings Janino, the compiler of its own code."""

_log = logging.getLogger(__name__)


def use_local_files(spark: SparkSession) -> None:
    """From now on, whoever asks Hadoop in this JVM for the local file system gets one that starts no process.

    Hadoop keeps one object for all; those who have asked before keep theirs. One that the user has set stays.
    """
    if spark._jsc.hadoopConfiguration().get(_SETTING) is not None:
        return
    try:
        settings = java_class(spark, "org.apache.hadoop.conf.Configuration")(spark._jsc.hadoopConfiguration())
        settings.setClassLoader(compiled_java(spark, _SOURCE))
        settings.set(_SETTING, _CLASS)
        files = java_class(spark, "org.apache.hadoop.fs.FileSystem")
        local = java_class(spark, "java.net.URI")("file:///")
        files.get(local, settings).close()  # Hadoop forgets the one that it keeps
        files.get(local, settings)
    except Py4JError as error:  # an epoch takes longer, and is the same
        _log.warning("Hadoop starts a process for each local file that it creates: %s", str(error).splitlines()[0])
