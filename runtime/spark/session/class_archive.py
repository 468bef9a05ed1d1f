"""The archive from which a JVM on this machine loads Spark's classes: a fifth of a short run is their loading.

Java calls it application class-data sharing. Before Java uses an archive, it checks its own release, the class path,
the jars' sizes and times, and the archive's checksums; where one of them differs, it starts without it. From Java 19
on, the JVM of a run makes the archive as it ends, where there is none that fits; before that, `vsc doctor --warm` does.

Neither starts nor imports Spark.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

__all__ = [
    "Archive",
    "Unarchived",
    "archive_here",
    "archive_options",
    "java_program",
    "reading",
    "writing",
]

_QUIETLY = ("-XX:+VerifySharedSpaces", "-Xlog:cds*=off")
"""`cds` alone would leave `cds,dynamic`, which tells of each archive that does not fit."""
_DECIDED = re.compile(r"-Xshare|SharedArchiveFile|ArchiveClassesAtExit|AutoCreateSharedArchive")
_NAME = r"(?P<name>java-[\d.]+-spark-.+-[0-9a-f]{12})"
_ARCHIVE, _UNFINISHED = re.compile(_NAME + r"(-\d+)?\.jsa"), re.compile(_NAME + r"\.(?P<process>\d{1,9})")
_VARIABLES = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
_OPTIONS, _CLASS_PATH = "spark.driver.extraJavaOptions", "spark.driver.extraClassPath"
_UNREAD_S = 30 * 24 * 3600
_BY_ITSELF = 19
"""The first Java that makes an archive where none fits."""


class Unarchived(Exception):
    """No archive is used; the message says why."""


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive for this Java, Spark and jars, which need not be there. `java`: the release, as in ``17.0.15``."""

    folder: Path
    name: str
    java: str

    @property
    def makes_itself(self) -> bool:
        """Whether the JVM of a run makes it."""
        return int(self.java.partition(".")[0]) >= _BY_ITSELF

    def found(self) -> Path | None:
        """The archive, if it is whole, and nobody else can write to it.

        Java 17 crashes over one that has been cut off. So the name of what is made for it ends with its size.
        """
        for path in [self._itself()] if self.makes_itself else sorted(self.folder.glob(f"{self.name}-*.jsa")):
            with contextlib.suppress(OSError):
                found = path.stat(follow_symlinks=False)
                whole = self.makes_itself or path == self._sized(found.st_size)
                if whole and stat.S_ISREG(found.st_mode) and _is_ours(found):
                    return path
        return None

    def can_be_made(self) -> bool:
        """Whether its folder is there, made if need be, and can be written to."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.access(self.folder, os.W_OK)

    def to_be_made(self) -> Path:
        """Where this process has a JVM write what becomes the archive."""
        return self.folder / f"{self.name}.{os.getpid()}"

    def keep(self, made: Path) -> None:
        """Takes what a JVM has made, in the same folder, for the archive."""
        made.replace(self._itself() if self.makes_itself else self._sized(made.stat().st_size))

    def clear(self) -> None:
        """Removes the archives of other Javas, Sparks and jars that nobody has read for a month, and what processes
        that are gone left unfinished."""
        for path in list(self.folder.iterdir()):
            with contextlib.suppress(OSError):  # it is in nobody's way
                if self._is_unread(path) or _is_unfinished(path):
                    path.unlink()

    def options(self) -> list[str]:
        """The options of a JVM that uses it, or makes it."""
        path = self.found()
        if self.makes_itself and self.can_be_made() and (path is not None or not os.path.lexists(self._itself())):
            return ["-XX:+AutoCreateSharedArchive", *reading(self._itself())]
        return [] if path is None else reading(path)

    def _is_unread(self, path: Path) -> bool:
        found = _ARCHIVE.fullmatch(path.name)
        return found is not None and found["name"] != self.name and time.time() - path.stat().st_atime > _UNREAD_S

    def _itself(self) -> Path:
        return self.folder / f"{self.name}.jsa"

    def _sized(self, size: int) -> Path:
        return self.folder / f"{self.name}-{size}.jsa"


def java_program() -> str | None:
    """The Java that Spark starts: that of ``JAVA_HOME`` if it is set, else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else shutil.which("java")


def archive_here(conf: Mapping[str, str] | None = None) -> Archive:
    """The archive of the JVMs that start here for a session with the settings `conf`.

    Raises `Unarchived`: options decide on an archive themselves, classes of the user's come first, or no folder is safe
    for one.
    """
    _check_undecided(conf or {})
    java = _java()
    jars = _jars()
    digest = hashlib.sha256(java[1])
    for jar in sorted(jars, key=lambda one: one.name):
        found = jar.stat()
        digest.update(f"{jar.path}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    spark = next((n for jar in jars for n in re.findall(r"^spark-core_[\d.]+-(.+)\.jar$", jar.name)), "of-its-own")
    name = f"java-{java[0]}-spark-{spark}-{digest.hexdigest()[:12]}"
    folder = _folder()
    if ":" in str(folder) or '"' in str(folder):
        raise Unarchived(f"Java takes no archive in such a folder: {folder}")
    return Archive(folder, name, java[0])


def archive_options(conf: Mapping[str, str] | None = None) -> list[str]:
    """The options with which a JVM uses the archive, if there can be one; `conf` as for `archive_here`."""
    try:
        return archive_here(conf).options()
    except (Unarchived, OSError):
        return []


def reading(path: Path) -> list[str]:
    """The options of a JVM that uses the archive at `path` where it fits, and says nothing where it does not."""
    return [_quoted(f"-XX:SharedArchiveFile={path}"), *_QUIETLY]


def writing(path: Path) -> list[str]:
    """The options of a JVM that writes an archive to `path` as it ends."""
    return [_quoted(f"-XX:ArchiveClassesAtExit={path}"), "-Xlog:cds*=off"]


def _check_undecided(conf: Mapping[str, str]) -> None:
    if conf.get(_CLASS_PATH):
        raise Unarchived(f"{_CLASS_PATH} puts other classes before Spark's")
    options = {name: os.environ.get(name, "") for name in _VARIABLES} | {_OPTIONS: conf.get(_OPTIONS, "")}
    for name, text in options.items():
        if _DECIDED.search(text):
            raise Unarchived(f"{name} decides on one itself")


def _java() -> tuple[str, bytes]:
    """The release of Java, and what else tells it from others."""
    program = java_program()
    if program is None:
        raise Unarchived("there is no Java")
    real = Path(program).resolve()
    release = real.parent.parent / "release"
    text = release.read_bytes() if release.is_file() else b""
    found = re.search(rb'^JAVA_VERSION="(\d+[\d.]*)', text, re.MULTILINE)
    if found is None:
        raise Unarchived(f"{release} does not say which release of Java it is")
    return found[1].decode(), text + bytes(real)


def _jars() -> list[os.DirEntry[str]]:
    home = os.environ.get("SPARK_HOME")
    if not home:
        spec = find_spec("pyspark")
        home = os.path.dirname(spec.origin) if spec is not None and spec.origin else ""
    folder = os.path.join(home, "jars")
    if not os.path.isdir(folder):
        raise Unarchived(f"there are no jars of Spark in {folder}")
    return [one for one in os.scandir(folder) if one.name.endswith(".jar")]


def _folder() -> Path:
    """The folder of archives, which need not be there: whoever can write into it decides what code runs."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        folder = (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "vsc"
    except RuntimeError as error:
        raise Unarchived(f"there is no folder for one: {error}") from error
    if os.path.lexists(folder) and not _is_ours(folder.stat()):
        raise Unarchived(f"others can write to {folder}")
    return folder


def _is_ours(found: os.stat_result) -> bool:
    """Whether none but this user and root can write there."""
    return found.st_uid in (0, os.getuid()) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_unfinished(path: Path) -> bool:
    """Whether a process that is gone has left it."""
    found = _UNFINISHED.fullmatch(path.name)
    return found is not None and _is_gone(int(found["process"]))


def _is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return error.errno == errno.ESRCH
    return False


def _quoted(option: str) -> str:
    """As Spark's launcher splits options."""
    return f'"{option}"' if re.search(r"\s", option) else option
