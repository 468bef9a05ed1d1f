"""``vsc pack``: an archive of the Python packages that executors need, for ``--conf spark.archives``.

The packages are those that are installed here, file by file, so no registry is asked and releases are the same. Not in
it: Python itself, which `bin/python` looks for on the executor's machine, Spark and Java, and vsc, which a run sends.
"""

from __future__ import annotations

import argparse
import io
import os
import platform
import sys
import tarfile
from collections.abc import Iterator, Mapping

from vsc.cli.errors import Refused, UsageError
from vsc.cli.installed import Installed, installed_for
from vsc.cli.messages import Messages
from vsc.cli.on_spark import need_packages
from vsc.cli.plans import plan_of
from vsc.cli.problems import Problem, tell
from vsc.plan.words import bytes_text, counted

__all__ = ["add_arguments", "execute"]

_RELEASE = "{}.{}".format(*sys.version_info[:2])
_PACKAGES = f"lib/python{_RELEASE}/site-packages"
_START = f"""#!/bin/sh
# Starts this machine's Python {_RELEASE} with the packages beside this file.
here=$(cd "$(dirname "$0")/.." && pwd) || exit 1
PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$here/{_PACKAGES}"
export PYTHONPATH
for name in python{_RELEASE} python3 python; do
  if "$name" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "{_RELEASE}")' 2>/dev/null; then
    exec "$name" "$@"
  fi
done
echo "there is no python{_RELEASE} on the PATH of $(uname -n): $PATH" >&2
exit 127
"""
_QUICK = 1
"""How much work goes into compression: more takes three times as long for an archive that is an eighth smaller."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="pack what the tasks of this topology, or plan, import (default: what those of any topology may, as far "
        "as it is installed)",
    )
    parser.add_argument(
        "-o", "--output", metavar="OUT", default="env.tar.gz", help="the archive to write (default: env.tar.gz)"
    )


def execute(args: argparse.Namespace) -> int:
    """Writes the archive and says what is in it, and what is not."""
    if not args.output.endswith((".tar.gz", ".tgz")):
        raise UsageError(f"-o {args.output} is not the name of an archive", "end it with .tar.gz, as Spark wants it")
    need_packages("vsc pack")
    packed = installed_for(None if args.file is None else plan_of(args.file, {}, Messages(), warns=False))
    size = _write(args.output, packed)
    tell(
        f"{args.output}: {counted(len(packed), 'package')}, {bytes_text(size)}, for {platform.system()} "
        f"{platform.machine()} with Python {_RELEASE}\n"
        f"  in it: {', '.join(f'{one.name} {one.version}' for one in packed.values())}\n"
        f"  not in it: Python {_RELEASE}, Java and Spark, which the executors' machines need, and vsc, which a run "
        "sends itself\n"
        f"  use it: PYSPARK_PYTHON=./env/bin/python vsc run ... --conf spark.archives={args.output}#env"
    )
    return 0


def _write(path: str, packed: Mapping[str, Installed]) -> int:
    """Writes the archive completely or not at all; returns its size."""
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        with tarfile.open(beside, "w:gz", compresslevel=_QUICK) as archive:
            start = tarfile.TarInfo("bin/python")
            start.mode, start.size = 0o755, len(_START)
            archive.addfile(start, io.BytesIO(_START.encode()))
            for name, place in sorted(_files(packed)):
                archive.add(place, f"{_PACKAGES}/{name}", recursive=False, filter=_nobodys)
        os.replace(beside, path)
        return os.path.getsize(path)
    except OSError as error:
        raise Refused(Problem(f"{path} cannot be written: {error.strerror}", "give another path with -o"), 1) from error
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


def _files(packed: Mapping[str, Installed]) -> Iterator[tuple[str, str]]:
    for one in packed.values():
        yield from one.files()


def _nobodys(file: tarfile.TarInfo) -> tarfile.TarInfo:
    file.uid = file.gid = 0
    file.uname = file.gname = ""
    return file
