"""Makes this package importable in Spark's Python workers, wherever they run, and starts those on this machine early.

On the driver's own machine its folder goes on their path, and they run with this process's Python unless
``PYSPARK_PYTHON`` names another one; on a cluster a zip of the package is sent to the executors, unless it was imported
from a zip itself: spark-submit has sent that to them. It is on the path already of what forks the workers
(`vsc.runtime.spark.worker_daemon`).
Third-party packages are the cluster's to have.

Spark starts workers with ``python -m``, in the driver's working directory, which comes first on their path then: a
`types.py` in it would be imported for Python's own, and end them. Sessions that vsc starts keep it off the path; others
only where a file in it has the name of a module, as the user's functions may be imported from there.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

import vsc
from vsc.runtime.spark.session.session import SAFE_PATH, configured, frozen_session, is_here, query_configuration

__all__ = ["package_zip", "ship", "warm_up"]

_log = logging.getLogger(__name__)

_ANY_PYTHON = "python3"
"""What pyspark starts by default."""


def ship(spark: SparkSession) -> None:
    """Makes sure that workers can import vsc. Once for each Spark application."""
    context = spark.sparkContext
    parent = Path(vsc.__file__).resolve().parent.parent
    if is_here(context.master):
        _add_to_path(context, str(parent))
        if SAFE_PATH not in context.environment and _hides_modules(Path.cwd()):
            context.environment[SAFE_PATH] = "1"
        if "PYSPARK_PYTHON" not in os.environ and context.pythonExec == _ANY_PYTHON:
            context.pythonExec = sys.executable  # not the first one on the PATH: it may lack all that is needed
        return
    if getattr(context, "_vsc_shipped", False):
        return
    archive = parent
    if Path(vsc.__file__).exists():  # not in a zip, of --py-files
        archive = package_zip(Path(tempfile.mkdtemp(prefix="vsc-ship-")))
        context.addPyFile(str(archive))
    _add_to_path(context, archive.name)  # executors put what they are sent into their working directory
    context._vsc_shipped = True  # type: ignore[attr-defined]


def _add_to_path(context: SparkContext, entry: str) -> None:
    """Puts it on the path on which Spark's daemons of workers, too, find their modules."""
    path = context.environment.get("PYTHONPATH", "")
    if entry not in path.split(os.pathsep):
        context.environment["PYTHONPATH"] = os.pathsep.join(p for p in (entry, path) if p)


def _hides_modules(folder: Path) -> bool:
    """Whether a Python file or package in `folder` has the name of a module of Python's, or of one loaded here."""
    found = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    return any(name in sys.stdlib_module_names or _from_elsewhere(name, folder) for name in found)


def _from_elsewhere(name: str, folder: Path) -> bool:
    origin = getattr(sys.modules.get(name), "__file__", None)
    return origin is not None and not Path(origin).is_relative_to(folder)


def package_zip(folder: Path) -> Path:
    """The installed package as a zip in `folder`; links are followed, so that it is whole."""
    source = Path(vsc.__file__).resolve().parent
    target = folder / "vsc.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for parent, folders, names in os.walk(source, followlinks=True):
            folders[:] = [f for f in folders if f != "__pycache__"]
            for name in sorted(names):
                if not name.endswith((".pyc", ".pyo")):
                    path = Path(parent) / name
                    archive.write(path, Path("vsc") / path.relative_to(source))
    return target


def warm_up(spark: SparkSession) -> threading.Thread | None:
    """Runs an empty task on each core of this machine, from the thread that it returns; nothing on a cluster.

    So the workers start while the driver still prepares the query: the first epoch would wait for them. After `ship`.
    """
    if not is_here(spark.sparkContext.master):
        return None
    with configured(spark, query_configuration(partitions=1)):
        session = frozen_session(spark)
    warming = threading.Thread(target=_tasks, args=(session,), name="vsc-warm-up", daemon=True)
    warming.start()
    return warming


def _tasks(session: SparkSession) -> None:
    cores = session.sparkContext.defaultParallelism
    try:
        session.range(0, cores, 1, cores).mapInArrow(_none, "id bigint").write.format("noop").mode("append").save()
    except Exception:  # the query meets it too and reports it, or the session has been stopped
        _log.debug("Python workers were not started ahead of the query", exc_info=True)


def _none(_: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    return iter(())
