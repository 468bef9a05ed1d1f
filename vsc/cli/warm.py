"""``vsc doctor --warm``: makes the archive from which the JVMs of runs on this machine load Spark's classes."""

from __future__ import annotations

import os
import tempfile
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from vsc.cli.checks import Check, asked
from vsc.cli.errors import Refused
from vsc.cli.machine import ARCHIVE, archive_check
from vsc.cli.on_spark import LOCAL, SparkOptions
from vsc.cli.problems import Problem

__all__ = ["warmed"]

_SECONDS = 300
"""After which a JVM that writes an archive is taken for hung."""


def warmed() -> Check:
    """The check of an archive made now: a small topology runs in a JVM that writes it as it ends."""
    check, made = asked(ARCHIVE, _made)
    return check if made is None else made


def _made() -> tuple[str, Check]:
    from vsc.runtime.spark.session.class_archive import Unarchived, archive_here, writing
    from vsc.runtime.spark.session.session import jvm_has_ended

    try:
        archive = archive_here()
    except Unarchived as error:
        raise Refused(Problem(f"no class archive can be made: {error}", "see docs/speed.md"), 1) from error
    if not archive.can_be_made():
        raise Refused(Problem(f"{archive.folder} cannot be written to", "let XDG_CACHE_HOME name another folder"), 1)
    made = archive.to_be_made()
    given = os.environ.get("SPARK_SUBMIT_OPTS", "")
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(filter(None, [*writing(made), given]))
    try:
        SparkOptions(LOCAL, {}, ()).run("vsc doctor", {}, _ran)
        if not jvm_has_ended(_SECONDS):
            raise Refused(Problem("Java does not end", "try again on an idle machine"), 1)
        if not made.exists():
            raise Refused(Problem("Java has written no class archive", "runs work without one"), 1)
        archive.keep(made)
        archive.clear()
    finally:
        made.unlink(missing_ok=True)
        os.environ["SPARK_SUBMIT_OPTS"] = given
    return "", archive_check(archive)


def _ran(spark: Any) -> None:
    """Runs what `vsc init` creates to its end."""
    import vsc

    with tempfile.TemporaryDirectory() as own, as_file(files("vsc") / "template") as template:
        variables = {"data": str(template / "data"), "out": str(Path(own) / "out")}
        topology = (template / "topology.vdsl").read_text()
        vsc.start(topology, spark, checkpoint=str(Path(own) / "checkpoint"), variables=variables).awaitTermination()
