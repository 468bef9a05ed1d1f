"""Files on whatever file system a path names, through Spark's own Hadoop client (driver only)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from vsc.plan.words import bytes_text
from vsc.runtime.errors import VscRuntimeError
from vsc.runtime.spark.base.folders import is_hidden
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.base.object_stores import without_store
from vsc.runtime.spark.base.paths import logged_url

__all__ = [
    "Files",
    "default_files",
    "default_is_local",
    "file_errors_as",
    "first_line",
]

T = TypeVar("T")

MAX_BYTES = 64 << 20
"""The biggest text file that is read whole."""

_APPEARS_WHOLE = "fs.capability.outputstream.abortable"
"""What a file system can do in which a file is not there until its stream is closed; Hadoop's name for it. S3's can."""
_NOT_FOUND = "java.io.FileNotFoundException"
_NO_CONTEXT = "org.apache.hadoop.fs.UnsupportedFileSystemException"
_NUMBERED = re.compile(r"^\[Errno \d+\] ")


@contextmanager
def file_errors_as(kind: type[VscRuntimeError], what: str, help: str) -> Iterator[None]:
    """Turns what the file system raises inside into a `kind`: `what` names the place, `help` says what to do."""
    try:
        yield
    except (Py4JJavaError, PySparkException, OSError) as error:
        problem = first_line(error)
        raise kind(f"{what} cannot be used: {problem}", without_store(problem) or help) from error


def _class_name(error: Py4JJavaError) -> str:
    return str(error.java_exception.getClass().getName())


def first_line(error: Exception) -> str:
    """What an error of a file system says, without Java's trace."""
    text = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    text = _NUMBERED.sub("", text)
    return next(iter(text.strip().splitlines()), "for an unknown reason")


def default_is_local(spark: SparkSession) -> bool:
    """Whether the default file system, that of paths without a scheme, is the local one."""
    return not default_files(spark)


def default_files(spark: SparkSession) -> str:
    """The URL of the default file system, that of paths without a scheme; empty for the local one."""
    uri = java_class(spark, "org.apache.hadoop.fs.FileSystem").getDefaultUri(spark._jsc.hadoopConfiguration())
    return "" if str(uri.getScheme()) == "file" else str(uri.toString())


def _checksum(path: Path) -> Path:
    """Where Hadoop keeps the checksum of a local file."""
    return path.with_name(f".{path.name}.crc")


class Files:
    """A folder, and operations on paths relative to it. Nothing is cached."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        configuration = spark._jsc.hadoopConfiguration()
        self._path_class = java_class(spark, "org.apache.hadoop.fs.Path")
        path = self._path_class(root)
        self._fs = path.getFileSystem(configuration)
        self._root = self._fs.makeQualified(path)
        self.root = str(self._root.toString())
        self.is_local = str(self._root.toUri().getScheme()) == "file"
        self.appears_whole = not self.is_local and bool(self._fs.hasPathCapability(self._root, _APPEARS_WHOLE))
        """Whether a file is there, whole, once its stream is closed, as in S3: to rename it would be to copy it."""
        self._plain = str(self._root.toUri().getPath())

    def path(self, name: str = "") -> str:
        """The full path of `name`."""
        return f"{self.root.rstrip('/')}/{name}" if name else self.root

    def url(self, name: str) -> str:
        """The URL of `name` as Spark's logs have it."""
        return logged_url(str(self._path(name).toUri().toString()))

    def exists(self, name: str = "") -> bool:
        """Whether there is such a file or folder."""
        return bool(self._fs.exists(self._path(name)))

    def matches(self) -> bool:
        """Whether the root, taken as a glob, matches anything."""
        found = self._fs.globStatus(self._root)
        return found is not None and len(found) > 0

    def has_data(self) -> bool:
        """Whether the root, taken as a glob, matches a file or a folder with a file below it that is not hidden."""
        for status in self._fs.globStatus(self._root) or ():
            shown = (path for path in self._below(status.getPath()) if not is_hidden(path))
            if status.isFile() or next(shown, None) is not None:
                return True
        return False

    def names(self, name: str = "") -> list[str]:
        """The names in a folder, sorted; none if it does not exist."""
        return sorted(str(s.getPath().getName()) for s in self._listed(name))

    def sizes(self, name: str = "") -> dict[str, int]:
        """The files in a folder, sorted by name, with their lengths in bytes; none if it does not exist."""
        found = [s for s in self._listed(name) if s.isFile()]
        return dict(sorted((str(s.getPath().getName()), int(s.getLen())) for s in found))

    def size(self, name: str) -> int | None:
        """The length of a file in bytes; None if it does not exist."""
        return self._unless_missing(name, lambda: self.length(name), None)

    def files(self, name: str = "") -> list[str]:
        """The relative paths of all files below a folder; none if it does not exist."""
        try:
            return sorted(self._below(self._path(name)))
        except Py4JJavaError as error:
            if _class_name(error) != _NOT_FOUND or self.exists(name):  # else something in it has just gone
                raise
            return []

    def _below(self, folder: Any) -> Iterator[str]:
        """The relative paths of all files below a folder that exists, as they are found."""
        base = self._fs.makeQualified(folder).toUri().getPath().rstrip("/") + "/"
        found = self._fs.listFiles(folder, True)
        while found.hasNext():
            yield str(found.next().getPath().toUri().getPath()).removeprefix(base)

    def local(self, name: str = "") -> str:
        """The plain path of `name`; the folder has to be a local one (`is_local`)."""
        return os.path.join(self._plain, name) if name else self._plain

    def read(self, name: str, most: int = MAX_BYTES) -> str:
        """The text of a file, UTF-8. Raises OSError if it has more than `most` bytes, or is not UTF-8."""
        try:
            return self.read_bytes(name, most).decode()
        except UnicodeDecodeError as error:
            raise OSError(f"{self.path(name)} is not UTF-8 text (byte {error.start})") from error

    def read_bytes(self, name: str, most: int = MAX_BYTES) -> bytes:
        """What is in a file. Raises OSError if it has more than `most` bytes."""
        if self.length(name) > most:
            raise OSError(f"{self.path(name)} has more than {bytes_text(most)}")
        stream = self._fs.open(self._path(name))
        try:
            return bytes(java_class(self._spark, "org.apache.commons.io.IOUtils").toByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, text: str, aside: str = "") -> None:
        """Writes or replaces a file, whole or not at all: after a crash the old one is there. Where that takes a
        rename, it is written `aside` first, by default in the same folder."""
        if self.appears_whole:
            self.overwrite(name, text)
            return
        parent, _, last = name.rpartition("/")
        aside = aside or (f"{parent}/_{last}.new" if parent else f"_{last}.new")
        self.overwrite(aside, text)
        if self.is_local:  # Hadoop's own rename does not replace
            _checksum(Path(self.local(name))).unlink(missing_ok=True)
            os.replace(self.local(aside), self.local(name))
        else:
            self._replace(aside, name)

    def _replace(self, old: str, new: str) -> None:
        """Renames a file over another one: in one step, if the file system has that for Hadoop's FileContext."""
        how = java_class(self._spark, "org.apache.hadoop.fs.Options$Rename").OVERWRITE
        overwrite = java_class(self._spark, "java.lang.reflect.Array").newInstance(how.getClass(), 1)
        overwrite[0] = how
        contexts = java_class(self._spark, "org.apache.hadoop.fs.FileContext")
        try:
            context = contexts.getFileContext(self._root.toUri(), self._fs.getConf())
        except Py4JJavaError as error:
            if _class_name(error) != _NO_CONTEXT:
                raise
            self.delete(new)
            self.rename(old, new)
            return
        context.rename(self._path(old), self._path(new), overwrite)

    def length(self, name: str) -> int:
        """The length of a file in bytes."""
        return int(self._fs.getFileStatus(self._path(name)).getLen())

    def crc32c(self, name: str) -> int:
        """The CRC-32C of a file, which is read to its end by the JVM: the file system checks it on the way."""
        sum_ = java_class(self._spark, "java.util.zip.CRC32C")()
        stream = java_class(self._spark, "java.util.zip.CheckedInputStream")(self._fs.open(self._path(name)), sum_)
        try:
            stream.transferTo(java_class(self._spark, "java.io.OutputStream").nullOutputStream())
        finally:
            stream.close()
        return int(sum_.getValue())

    def overwrite(self, name: str, text: str) -> None:
        """Writes a file in place: a concurrent reader may see part of it."""
        if self.is_local:  # there, Hadoop starts processes for permissions, and each of its calls costs more than that
            path = Path(self.local(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            _checksum(path).unlink(missing_ok=True)
            path.write_bytes(text.encode())
            return
        stream = self._fs.create(self._path(name), True)
        try:
            stream.write(bytearray(text.encode()))
        except BaseException:
            if self.appears_whole:  # to close it would be to publish a part
                stream.abort()
            raise
        finally:
            stream.close()

    def rename(self, old: str, new: str) -> None:
        """Renames a file. Raises FileExistsError, or the object store's own error, if that would overwrite one; OSError
        where it fails."""
        if not self.appears_whole and self.exists(new):  # an object store looks itself
            raise FileExistsError(self.path(new))
        if not self._fs.rename(self._path(old), self._path(new)):
            raise OSError(f"{self.path(old)} could not be renamed to {self.path(new)}")

    def sync(self, name: str = "") -> None:
        """Makes what is in a file, or which names are in a folder, outlive a power cut; other file systems than the
        local one see to that."""
        if not self.is_local:
            return
        opened = os.open(self.local(name), os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)

    def delete(self, name: str) -> None:
        """Deletes a file, or a folder with all that is in it, if it is there."""
        self._fs.delete(self._path(name), True)

    def make(self, name: str = "") -> None:
        """Makes a folder and those above it. Raises OSError if that fails."""
        if self.is_local:  # Hadoop does not say why it fails
            os.makedirs(self.local(name), exist_ok=True)
        elif not self._fs.mkdirs(self._path(name)):
            raise OSError(f"{self.path(name)} could not be made")

    def copy(self, name: str, to: Files, new: str) -> None:
        """Copies the files in a folder to one of `to`, with their modification times."""
        to.make(new)
        util, conf = java_class(self._spark, "org.apache.hadoop.fs.FileUtil"), self._fs.getConf()
        for status in self._fs.listStatus(self._path(name)):
            target = to._path(f"{new}/{status.getPath().getName()}")
            if not util.copy(self._fs, status.getPath(), to._fs, target, False, conf):
                raise OSError(f"{status.getPath().toString()} could not be copied to {to.path(new)}")
            to._fs.setTimes(target, status.getModificationTime(), -1)

    def statuses(self, name: str) -> Iterator[tuple[str, tuple[str, int]]]:
        """The files in a folder by name: the URL, as Spark has it, and when it was changed, in ms."""
        for status in self._fs.listStatus(self._path(name)):
            path = status.getPath()
            yield str(path.getName()), (str(path.toUri().toString()), int(status.getModificationTime()))

    def _listed(self, name: str) -> Iterable[Any]:
        """What is in a folder; nothing if it does not exist."""
        return self._unless_missing(name, lambda: self._fs.listStatus(self._path(name)), ())

    def _unless_missing(self, name: str, look: Callable[[], T], otherwise: T) -> T:
        """What a look at a file or a folder gives; `otherwise` if the file system says that there is none."""
        # As Java asks. An error of the JVM takes long to read.
        if self.is_local and not os.path.exists(self.local(name)):
            return otherwise
        try:
            return look()
        except Py4JJavaError as error:
            if _class_name(error) != _NOT_FOUND:
                raise
        return otherwise

    def _path(self, name: str) -> Any:
        return self._path_class(self._root, name) if name else self._root
