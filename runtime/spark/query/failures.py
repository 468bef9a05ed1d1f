"""What went wrong in a query, in the user's words: Spark's nested exceptions and quoted tracebacks become one error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

import vsc.runtime.errors as errors
from vsc.plan.secrets import masked
from vsc.runtime.errors import CheckpointError, SourceError, StartError, StateError, VscRuntimeError
from vsc.runtime.spark.base.disks import WrittenFolder, forbidden, full_disk, is_full
from vsc.runtime.spark.base.object_stores import refused
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.registry import known_failure
from vsc.runtime.spark.formats.file_errors import read_error
from vsc.runtime.spark.query.lost_processes import lost_process
from vsc.runtime.spark.query.running_query import QueryFailedError
from vsc.runtime.spark.query.unreadable_names import unreadable_name

__all__ = ["explained", "in_a_line", "started_late", "translated", "translating"]

_OWN = re.compile(
    r"(?:vsc\.)?runtime\.errors\.(\w+): \[VSC\d+\] (.+?)(?:\n  help: (.+?))?(?=\n\s*\n|\n\S|\n\s+at |\n SQLSTATE|\Z)",
    re.DOTALL,
)
_BLOB = re.compile(r"blob '(\d+)-")
_STATE_LOADING = ("CANNOT_LOAD_STATE_STORE", "state.RocksDB", "StateStore")
_IN_PYTHON = "An exception was raised by the Python Proxy"
"""How py4j begins to say what the driver raised in a call of the JVM's: a traceback follows, maybe with Java's."""
_LATE = "Python worker failed to connect back"
_NOT_LOADED = "Spark cannot load the state of the checkpoint"
_NOTHING_FOUND = (
    "vsc has found no damaged file in it: the same command continues with this epoch; if that fails, restore the "
    "checkpoint's folder"
)
_ENDED = re.compile(r"^\[STREAM_FAILED\] Query \[[^]]*\] terminated with exception: ")
_STATE_FILE = re.compile(
    r"(?:Error reading streaming state file of|FileNotFoundException: File|No such file or directory:) (\S+?/(\d+)_\S+)"
)


def translated(error: BaseException, places: Sequence[WrittenFolder] = ()) -> VscRuntimeError | None:
    """The runtime error that `error` is, quotes, or amounts to; None if it is not recognized.

    `places` are what the run writes to: one of them is on the disk that is full.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, VscRuntimeError):
            return seen
        if isinstance(seen, QueryFailedError):
            return seen.error
        seen = seen.__cause__ or seen.__context__
    text = str(error)
    quoted = _OWN.search(text)
    if quoted is not None:
        kind = getattr(errors, quoted.group(1), VscRuntimeError)
        return kind(_line(quoted.group(2)), None if quoted.group(3) is None else _line(quoted.group(3)))
    return read_error(text, _innermost(text)) or _known(text, places)


def started_late(error: BaseException) -> bool:
    """Whether Spark gave up on a Python worker before it had started: it waits 10 seconds, whatever the load."""
    return _LATE in str(error)


@contextmanager
def translating() -> Iterator[None]:
    """What Spark raises inside of this, `translated`; as it is if it is not recognized."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = translated(error)
        if found is None:
            raise
        raise found from None


def explained(error: BaseException, logs: SparkLogs, places: Sequence[WrittenFolder] = ()) -> VscRuntimeError | None:
    """As `translated`; damage to the state gets its place, and the way back to an older one, from the checkpoint.

    May take long: it may have to read all states to find the damaged one.
    """
    known = translated(error, places)
    text = str(error)
    not_loaded = known is None or known.message.startswith(_NOT_LOADED)
    if not_loaded and any(sign in text for sign in _STATE_LOADING):
        missing = _STATE_FILE.search(text)
        if missing is not None:
            epoch = int(missing.group(2)) - 1
            return CheckpointError(f"{missing.group(1)} is missing or cannot be read", logs.way_back(epoch))
        return logs.damaged_state(text) or (known and StateError(known.message, _NOTHING_FOUND))
    if isinstance(known, StateError) and (known.help is None or "restore" in known.help):
        blob = _BLOB.search(known.message)
        return StateError(known.message, logs.way_back(int(blob.group(1)) if blob else max(logs.kept(), default=None)))
    return known


def _known(text: str, places: Sequence[WrittenFolder]) -> VscRuntimeError | None:
    if is_full(text):
        return full_disk(text, _innermost(text), places)
    if (unnamed := unreadable_name(text)) is not None:
        return unnamed
    unwritable = forbidden(text, places)
    if unwritable is not None:
        return unwritable
    if (of_connector := known_failure(text, _innermost(text))) is not None:
        return of_connector
    if (by_store := refused(text)) is not None:
        return by_store
    if _LATE in text:
        return StartError(
            "a Python worker of Spark did not start within 10 seconds: the machine is too busy",
            "the same command continues with this epoch; fewer processes at a time, or more cores, help",
        )
    if (lost := lost_process(text)) is not None:
        return lost
    if "CANNOT_WRITE_STATE_STORE" in text:
        return StateError(
            f"Spark cannot write the state to the checkpoint: {_innermost(text)}",
            "once the file system takes it again, the same command continues with this epoch",
        )
    if "CANNOT_LOAD_STATE_STORE" in text:
        return StateError(
            f"{_NOT_LOADED}: {_innermost(text)}",
            "a file in it is missing or damaged: restore the checkpoint's folder",
        )
    if "PATH_NOT_FOUND" in text or "Path does not exist" in text:
        return SourceError(_line(text.splitlines()[0]))
    return None


def in_a_line(error: BaseException) -> str:
    """What an error says, in one line without secrets."""
    known = translated(error)
    if known is not None:
        return known.message
    lines = str(error).strip().splitlines()
    if lines and _IN_PYTHON in lines[0]:
        outer = [line for line in lines[1:] if line[:1].strip()]  # what is in a traceback is indented
        lines = [*(line[2:] for line in outer if line.startswith(": ")), *outer, *lines]
    return masked(lines[0])[:600] if lines else type(error).__name__


def _innermost(text: str) -> str:
    """The last ``Caused by`` of a stack trace, else the exception itself, else the first line, if there is one; without
    Spark's words on which query it ended."""
    causes = re.findall(r"Caused by: ([^\n]+)", text) or re.findall(r"^: ([^\n]+)", text, re.MULTILINE)[:1]
    return _ENDED.sub("", _line(causes[-1] if causes else next(iter(text.splitlines()), "")))


def _line(text: str) -> str:
    found = " ".join(text.split())
    return found if len(found) <= 600 else found[:597] + "..."
