"""What Spark needs of this machine: Java, Python, packages, the loopback interface, the temporary folder.

Neither starts nor imports Spark.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from vsc.cli.checks import Check
from vsc.cli.problems import Problem, of_disk
from vsc.extras import install, spec_of
from vsc.plan.words import bytes_text
from vsc.runtime.spark.session.class_archive import Archive, Unarchived, archive_here, java_program

__all__ = [
    "ARCHIVE",
    "LEAST_FREE_BYTES",
    "NOT_INSTALLED",
    "archive_check",
    "java_problem",
    "machine_checks",
    "package_checks",
]

_JAVA = (17, 21)
_PACKAGES = (
    ("pyspark", "pyspark", (4, 0), (4, 4)),
    ("pandas", "pandas", (2, 2), (3, 0)),
    ("pyarrow", "pyarrow", (18, 0), (27, 0)),
    ("numpy", "numpy", (1, 26), (3, 0)),
    ("rocksdict", "rocksdict", (0, 3, 24), (0, 4)),
    ("protobuf", "google.protobuf", (5, 29), (8, 0)),
    ("rich", "rich", (13, 0), (16, 0)),
    ("packaging", "packaging", (23, 0), ()),
)
"""By name for pip: what is imported, the lowest release, and the first that is too new, if there is one."""
NOT_INSTALLED = "not installed"
ARCHIVE = "class archive"
LEAST_FREE_BYTES = 1 << 30
"""What a disk on which Spark works should have."""


def machine_checks() -> Iterator[Check]:
    """All checks, in the order in which a user would fix them."""
    yield _python()
    yield _java()
    yield from package_checks()
    yield _class_archive()
    yield _loopback()
    yield _temporary()


def package_checks() -> Iterator[Check]:
    """The checks of the Python packages that Spark and vsc need here."""
    return (_package(*one) for one in _PACKAGES)


def java_problem() -> Problem | None:
    """Why Java cannot run Spark here; None if it can."""
    check = _java()
    return None if check.fix is None else Problem(f"Spark cannot start: {check.found}", check.fix, "VSC907")


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    fix = None if sys.version_info >= (3, 11) else "use Python 3.11 or newer"
    return Check("Python", f"{found} ({sys.executable})", fix)


def _java() -> Check:
    name = "Java"
    install = "install a JDK or JRE 17 (on Debian: apt install openjdk-17-jre-headless), or set JAVA_HOME to one"
    home, program = os.environ.get("JAVA_HOME"), java_program()
    if home and not os.access(str(program), os.X_OK):
        return Check(name, f"JAVA_HOME is {home}, but there is no bin/java in it", "correct or unset JAVA_HOME")
    if program is None:
        return Check(name, "there is no java on the PATH, and no JAVA_HOME", install)
    try:
        result = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name, f"{program} does not run: {error}", install)
    match = re.search(r'version "(\d+)(?:\.(\d+))?', result.stderr + result.stdout)
    if match is None:
        return Check(name, f"{program} does not report its version", install)
    major = int(match.group(2) or 0) if match.group(1) == "1" else int(match.group(1))
    found = f"{major} ({program})"
    if major < _JAVA[0]:
        return Check(name, f"{found} is too old for Spark 4", install)
    if major > _JAVA[1]:
        return Check(name, f"{found} is newer than Spark supports", f"use Java {_JAVA[0]} or {_JAVA[1]} (JAVA_HOME)")
    return Check(name, found)


def _package(name: str, module: str, lowest: tuple[int, ...], below: tuple[int, ...]) -> Check:
    wanted = f"{'.'.join(map(str, lowest))} or newer" + (f", below {'.'.join(map(str, below))}" if below else "")
    if spec_of(module) is None:
        return Check(name, NOT_INSTALLED, install("spark"))
    try:
        found = version(name)
    except PackageNotFoundError:  # in a folder on the path, such as that of a Spark
        return Check(name, "is there, and does not say its release")
    numbers = tuple(int(n) for n in re.findall(r"\d+", found)[:3])
    if lowest <= numbers and (not below or numbers < below):
        return Check(name, found)
    return Check(name, f"{found}, but vsc needs {wanted}", install("spark"))


def archive_check(archive: Archive) -> Check:
    """What is known of the archive from which runs load Spark's classes."""
    path = archive.found()
    if path is not None:
        return Check(ARCHIVE, f"{path}, {bytes_text(path.stat().st_size)}")
    if archive.makes_itself:
        return Check(ARCHIVE, f"none yet: the next run makes one in {archive.folder} as it ends")
    return Check(ARCHIVE, "none: `vsc doctor --warm` makes one, and runs on this machine start faster")


def _class_archive() -> Check:
    try:
        return archive_check(archive_here())
    except (Unarchived, OSError) as error:
        return Check(ARCHIVE, f"none is used: {error}")


def _loopback() -> Check:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), timeout=5),
        ):
            return Check("loopback", f"127.0.0.1 takes connections (port {server.getsockname()[1]})")
    except OSError as error:
        return Check(
            "loopback",
            f"127.0.0.1 refuses connections: {error}",
            "Spark and its Python workers talk over it: bring the interface up, or allow it in the firewall or sandbox",
        )


def _temporary() -> Check:
    name = "temporary folder"
    try:
        folder = tempfile.gettempdir()
        with tempfile.NamedTemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        problem = of_disk(error) or Problem(f"it cannot be written to: {error}", "set TMPDIR to one that can")
        return Check.of(name, problem)
    found = f"{folder}, {bytes_text(free)} free"
    if free < LEAST_FREE_BYTES:
        help = "free some space, or set TMPDIR or --local-dir to a bigger disk"
        return Check(name, found, help, fails=False)
    return Check(name, found)
