"""The errors of a running query: each has a stable code (``VSC9xx``), a message in the user's names, and often a help.

Guarantees: an error can be pickled (it crosses from a Spark worker to the driver), and its text starts with its code in
brackets, so that it can be recognised inside a traceback that Spark quotes.

Not for bad topologies (those are diagnostics of the compiler) and not for bugs in vsc (those are ordinary exceptions).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from vsc.plan.secrets import masked

__all__ = [
    "AvroSchemaError",
    "BadRowError",
    "BufferFullError",
    "CheckpointError",
    "ConfigurationError",
    "DatabaseError",
    "DatabaseTableError",
    "EventTimeWarning",
    "ExpressionError",
    "FunctionError",
    "LakeChangeError",
    "LakeReleaseError",
    "LakeStorageError",
    "LakeTableError",
    "LocalStoreError",
    "LostProcessError",
    "MissingColumnError",
    "MissingJarsError",
    "NewSchemaError",
    "PositionError",
    "RefusedRowError",
    "SinkError",
    "SourceError",
    "StartError",
    "StateError",
    "UnusableInputError",
    "UpgradeError",
    "VscRuntimeError",
]


class VscRuntimeError(Exception):
    """The base of all errors of the runtime.

    `message` is one sentence that names the place; `help` says the one thing to do, or is None; both without secrets.
    Subclasses differ only in `code`, so catching one of them is the same as checking its code.
    """

    code: ClassVar[str] = "VSC900"

    def __init__(self, message: str, help: str | None = None) -> None:
        self.message = masked(message)
        self.help = None if help is None else masked(help)
        super().__init__(self.message, self.help)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: the error is in the user's request, not in the program."""
        return str(self).splitlines()

    def __str__(self) -> str:
        text = f"[{self.code}] {self.message}"
        return text if self.help is None else f"{text}\n  help: {self.help}"


class BadRowError(VscRuntimeError):
    """A row that cannot be used (unreadable, no key, no event time), with ``--on-bad-row fail``."""

    code = "VSC901"


class ExpressionError(VscRuntimeError):
    """An expression failed on a record (overflow, cast, division by zero), without ``--on-error drop``."""

    code = "VSC902"


class FunctionError(VscRuntimeError):
    """A function of the user's that the run does not allow, that is not there, or that gives no array of its type."""

    code = "VSC925"


class StateError(VscRuntimeError):
    """State that cannot be read: damaged, of an unknown format version, or missing from its place."""

    code = "VSC903"


class LocalStoreError(StateError):
    """A local store that cannot be read or written. One that is a copy can be rebuilt."""


class CheckpointError(VscRuntimeError):
    """A checkpoint that is damaged, in use by another query, or of another plan, number of partitions or release."""

    code = "VSC904"


class SourceError(VscRuntimeError):
    """A source that cannot be read: no such folder, a schema that does not fit, a connector that is missing."""

    code = "VSC905"


class NewSchemaError(SourceError):
    """A task has met schema ids that its epoch does not know. The driver finds them in the message and asks
    the registry, and the epoch begins again: a user never sees it."""

    @classmethod
    def of(cls, rank: int, part: str, ids: Sequence[str]) -> NewSchemaError:
        """For ids of the key or the value (`part`) of the source of that rank."""
        return cls(f"source {rank} met schemas of its {part}: {' '.join(_first(ids, 400))}")

    @property
    def met(self) -> tuple[int, str, list[str]]:
        """What `of` was given."""
        words = self.message.replace(":", "").split()
        return int(words[1]), words[6], words[7:]


def _first(words: Sequence[str], length: int) -> list[str]:
    """As many words as that many characters hold: a message is cut somewhere."""
    found: list[str] = []
    for word in words:
        length -= len(word) + 1
        if found and length < 0:
            break
        found.append(word)
    return found


class UnusableInputError(SourceError):
    """A run that had to drop all rows of a source: its declaration does not match its files."""


class SinkError(VscRuntimeError):
    """A sink that cannot be written to."""

    code = "VSC906"


class ConfigurationError(VscRuntimeError):
    """A run that cannot start as requested: an unresolved variable, an invalid trigger, an unknown store."""

    code = "VSC907"


class StartError(VscRuntimeError):
    """Spark does not start (an unknown master, a setting that it refuses, no Java), or its master forgets the run."""

    code = "VSC907"


class BufferFullError(VscRuntimeError):
    """A `suppress` buffer is full, with ``when_full = 'fail'``."""

    code = "VSC908"


class EventTimeWarning(VscRuntimeError):
    """Implausible event times, in another unit or in the future: logged, never raised."""

    code = "VSC909"


class UpgradeError(VscRuntimeError):
    """A checkpoint that cannot be upgraded to another topology as requested."""

    code = "VSC910"


class MissingJarsError(VscRuntimeError):
    """Spark lacks the jars of a connector, and they could not be fetched."""

    code = "VSC913"


class AvroSchemaError(VscRuntimeError):
    """An Avro schema that cannot be read, or does not fit the columns."""

    code = "VSC914"


class PositionError(VscRuntimeError):
    """A position at which a source cannot begin."""

    code = "VSC915"


class MissingColumnError(VscRuntimeError):
    """A declared column that is in no file of its source."""

    code = "VSC911"


class DatabaseError(VscRuntimeError):
    """A database that cannot be used: no server, wrong credentials, a lost connection."""

    code = "VSC918"


class DatabaseTableError(VscRuntimeError):
    """A database table that does not fit its source or sink: missing, other columns, no key, no privilege."""

    code = "VSC919"


class RefusedRowError(VscRuntimeError):
    """A row that a database or a lake table refuses: its value is too long for a column, or violates a constraint."""

    code = "VSC920"


class LakeReleaseError(VscRuntimeError):
    """A Spark for which a lake format has no release, or a session that lacks its settings."""

    code = "VSC921"


class LakeTableError(VscRuntimeError):
    """A lake table that does not fit its source or sink: missing, other columns, a newer protocol, no change feed."""

    code = "VSC922"


class LakeStorageError(VscRuntimeError):
    """A lake table that cannot be opened: no permission, a storage or a catalog that does not answer."""

    code = "VSC923"


class LakeChangeError(VscRuntimeError):
    """A lake table whose newer commits cannot be read: rows were changed, the table was replaced, or they are gone."""

    code = "VSC924"


class LostProcessError(VscRuntimeError):
    """Spark lost a process that did the work, a Python worker or an executor, more often than it repeats a task."""

    code = "VSC926"
