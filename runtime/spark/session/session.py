"""What a query needs of its Spark session, set while it starts and then put back: Spark clones it for the query."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from vsc.plan.secrets import SECRET_NAME, SECRET_OF_URL, SECRET_TEXT
from vsc.runtime.errors import CheckpointError, ConfigurationError
from vsc.runtime.spark.base.checksummed import ReadableFiles, epochs_in
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.java import has_java_class
from vsc.runtime.spark.base.object_stores import cloud_package
from vsc.runtime.spark.base.releases import minor_release
from vsc.runtime.spark.exchange.wire import ROWS_A_BATCH
from vsc.runtime.spark.session.class_archive import archive_options

__all__ = [
    "OWN_SETTINGS",
    "SAFE_PATH",
    "checkpoint_settings",
    "configured",
    "frozen_session",
    "is_here",
    "jvm_has_ended",
    "local_jvm",
    "local_settings",
    "query_configuration",
    "read_configuration",
    "state_settings",
    "tell_overridden",
    "usable_session",
]

_STATE_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_OF_FOLDERS = "org.apache.spark.sql.execution.streaming.{}FileSystemBasedCheckpointFileManager"
_OF_OBJECTS = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
_CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
_WHOLE_FILES = 1 << 50
_PARTITIONS = "spark.sql.shuffle.partitions"
_STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions"
_MOST_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_JVM_OPTIONS = "SPARK_SUBMIT_OPTS"
_LATE_C2 = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""Ten times the JVM's own."""
SAFE_PATH = "PYTHONSAFEPATH"
"""The variable that keeps ``python -m`` from importing from the working directory."""
OWN_SETTINGS = {
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Workers are forked with everything loaded.
    "spark.python.daemon.module": "vsc.runtime.spark.worker_daemon",
    # Spark's own names, and vsc's: neither pages nor the event log show what they hold, or hold a login.
    "spark.redaction.regex": rf"(?i)secret|password|token|access[.]?key|{SECRET_NAME}|{SECRET_TEXT}",
}
"""The settings of every session that vsc starts. PySpark would report its place in Python to the JVM at each call, for
messages that point at the user's code, and vsc has no such code: that doubles the calls of an epoch."""

_log = logging.getLogger(__name__)


def usable_session(spark: SparkSession | None) -> SparkSession:
    """`spark`, or for None the active session. ConfigurationError if vsc cannot use it."""
    try:
        session: object = SparkSession.active() if spark is None else spark
    except PySparkRuntimeError:
        raise ConfigurationError(
            "there is no active Spark session", "make one with SparkSession.builder.getOrCreate(), or pass it"
        ) from None
    if not isinstance(session, SparkSession):
        given = type(session)
        raise ConfigurationError(
            f"`spark` is a session of Spark on this driver, not {given.__module__}.{given.__qualname__}",
            "Spark Connect is not supported: run on the driver, with SparkSession.builder.master(...)",
        )
    return session


def checkpoint_settings(spark: SparkSession, files: Files) -> dict[str, str]:
    """The settings of a query, beside `query_configuration`, that depend on where its checkpoint is.

    On a local disk, Spark is kept from going through Hadoop's FileContext, which starts a process for every look at a
    file (`readlink`, some sixty an epoch). Renaming is as atomic, and a second driver is kept out by the claim.

    In S3, where a rename is a copy, it writes each file in place, and no checksum beside it: the store has its own.
    Elsewhere it does (see `_checksums`), so that a state file that is damaged is found when it is read.
    """
    found = _of_checkpoint(spark, files)
    for name, own in found.items():
        given = spark.conf.get(name, own)
        if given != own:
            _log.warning("%s=%s has no effect: vsc sets it to %s", name, given, own)
    return found


def _of_checkpoint(spark: SparkSession, files: Files) -> dict[str, str]:
    if files.is_local:
        moved = "" if minor_release(spark.version) == "4.0" else "checkpointing."
        return {_CHECKSUMS: _checksums(spark), _FILE_MANAGER: _OF_FOLDERS.format(moved)}
    if not files.appears_whole:
        return {_CHECKSUMS: _checksums(spark)}
    if not has_java_class(spark, _OF_OBJECTS):
        _log.warning(
            "Spark writes, copies and deletes each file of %s: run with --packages %s, and it writes each once",
            files.root, cloud_package(),
        )  # fmt: skip
        return {_CHECKSUMS: "false"}
    return {_CHECKSUMS: "false", _FILE_MANAGER: _OF_OBJECTS}


def _checksums(spark: SparkSession) -> str:
    """Whether Spark writes checksums of its own beside the state's files.

    On a cluster, Spark 4.1 does not, and Hadoop's are there: a task that is interrupted, as the slower of two attempts
    is, would leave a state on its executor that cannot be loaded there again (SPARK-54585, fixed in 4.2).
    """
    spoils = spark.version.startswith("4.1.") and not is_here(spark.sparkContext.master)
    return "false" if spoils else "true"


def query_configuration(partitions: int) -> dict[str, str]:
    """The settings of a query with that many vsc partitions, wherever its checkpoint is."""
    return {
        # One shuffle partition for each vsc partition; Spark must not merge or split them.
        _PARTITIONS: str(partitions),
        # Spark sets it in a query's own session, which may be the one that is active, and heeds it more than the other.
        _STATE_PARTITIONS: str(partitions),
        "spark.sql.adaptive.enabled": "false",
        # transformWithState needs RocksDB; format 2 keeps a late zombie attempt from overwriting the winner's state.
        "spark.sql.streaming.stateStore.providerClass": _STATE_PROVIDER,
        _STATE_FORMAT: "2",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        # Only workers of sources would get this, and could not serve stages: all would be loaded twice.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # Java's old formats, which LEGACY means, have no microseconds, and read more texts as times.
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        # A file is one task's: with an opening cost beyond any size Spark neither splits nor packs files.
        "spark.sql.files.maxPartitionBytes": str(_WHOLE_FILES),
        "spark.sql.files.openCostInBytes": str(_WHOLE_FILES),
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_A_BATCH),
        # None, unless asked for: Spark then sizes the batch up again after every row, half of what reading costs it.
        _MOST_BYTES: str((1 << 31) - 1),
        # What Spark shows of a plan must not show what opens a broker.
        "spark.sql.redaction.options.regex": rf"(?i)url|^kafka\.|{SECRET_NAME}",
        "spark.sql.redaction.string.regex": f"(?i){SECRET_OF_URL}",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }


def state_settings(files: ReadableFiles, spark: str = pyspark.__version__) -> dict[str, str]:
    """The format in which Spark keeps the states of a checkpoint: that of its commits, and of a new one 2.

    Spark 4.0 writes format 1, which later releases read: of what it writes in format 2, neither they nor its own
    reader of states can make anything. CheckpointError for a checkpoint of format 2 on 4.0.
    """
    writes = "1" if minor_release(spark) == "4.0" else "2"
    commits = epochs_in(files, "commits")
    found = files.read(f"commits/{max(commits)}").partition("\n")[0].removeprefix("v") if commits else writes
    if found > writes:
        raise CheckpointError(
            f"Spark {spark} cannot read the states that a newer Spark has written into the checkpoint",
            "run it with pyspark 4.1 or newer",
        )
    return {_STATE_FORMAT: found}


def is_here(master: str | None) -> bool:
    """Whether tasks run in the driver's own process."""
    return master is not None and master.startswith("local") and not master.startswith("local-cluster")


def local_settings() -> dict[str, str]:
    """The settings of a session on this machine alone, made before Spark starts: small epochs are cheap, and workers
    import nothing from the working directory (see `vsc.runtime.spark.session.ship`)."""
    return OWN_SETTINGS | {
        f"spark.executorEnv.{SAFE_PATH}": "1",
        # Delta Lake looks at a table in 50 tasks, several times an epoch.
        "spark.databricks.delta.snapshotPartitions": "4",
    }


@contextlib.contextmanager
def local_jvm(conf: Mapping[str, str] | None = None) -> Iterator[None]:
    """In this context, a JVM that starts for a session on this machine compiles only very hot code with C2, and loads
    Spark's classes from an archive (`class_archive`). `conf`: the session's settings.

    With the JVM's own thresholds, a third of the CPU time of a short run is C2's. The options come before those of the
    user, who can override them in the same variable and in Spark's settings.
    """
    given = os.environ.get(_JVM_OPTIONS)
    os.environ[_JVM_OPTIONS] = " ".join([*_LATE_C2, *archive_options(conf), *([given] if given else [])])
    try:
        yield
    finally:
        if given is None:
            del os.environ[_JVM_OPTIONS]
        else:
            os.environ[_JVM_OPTIONS] = given


def jvm_has_ended(seconds: float) -> bool:
    """Tells Spark's JVM that nobody speaks to it any more; whether it ends within `seconds`."""
    process: Any = pyspark.SparkContext._gateway.proc  # type: ignore[union-attr]
    process.stdin.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def tell_overridden(given: Mapping[str, str]) -> None:
    """Warns of the settings in `given` that a query does not heed, as it sets them itself."""
    for name, own in query_configuration(0).items():
        if name in (_PARTITIONS, _STATE_PARTITIONS) and name in given:
            _log.warning("--conf %s has no effect: --partitions says how many there are", name)
        elif name != _MOST_BYTES and given.get(name, own).lower() != own.lower():
            _log.warning("--conf %s=%s has no effect: vsc sets it to %s", name, given[name], own)


def read_configuration() -> dict[str, str]:
    """The settings of a session that reads the state of a query: as the query has them, where they matter."""
    found = query_configuration(1)
    names = [name for name in found if name.startswith("spark.sql.streaming.stateStore")]
    names += ["spark.sql.session.timeZone", "spark.sql.ansi.enabled", _MOST_BYTES]
    # A chunk is 2 MiB: some at a time, however many bytes Spark thinks that they are.
    return {name: found[name] for name in names} | {"spark.sql.execution.arrow.maxRecordsPerBatch": "64"}


@contextlib.contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Sets `settings` in the session for the length of the context; afterwards it is as it was.

    A bound of Arrow batches that the session has been given stays.
    """
    if spark.conf.get(_MOST_BYTES, None) is not None:
        settings = {name: value for name, value in settings.items() if name != _MOST_BYTES}
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def frozen_session(spark: SparkSession) -> SparkSession:
    """A session with the settings that `spark` has now: a file source asks its own session whenever it reads.

    The query itself clones its session when it starts.
    """
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
