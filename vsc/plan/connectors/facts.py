"""Facts of a kind of connector: their defaults, which each kind overrides in its own file.

The compiler and the runtime read these facts instead of knowing the connectors by name. Not for what only Spark can do
with a connector: that is `vsc.runtime.spark.connectors`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple
from typing import Literal as Choice

from vsc.plan.connectors.dataset import Dataset
from vsc.plan.connectors.place import Place
from vsc.plan.record import record
from vsc.plan.types import DataType

__all__ = [
    "MAX_AHEAD", "MODE", "VARIABLE", "WITH_TIMESTAMP", "ConnectorFacts", "OptionSpec", "Problem", "Role", "Scalar",
    "Values", "Wrong", "given", "written",
]  # fmt: skip

Role = Choice["source", "sink"]
Scalar = str | int | float | bool
Values = Mapping[str, Scalar]
"""Options by name, as written: a text may hold variables."""
Wrong = tuple[str, str] | None
"""What is wrong with an option, and what to do; None if nothing is."""

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A variable inside a text."""


@record
class OptionSpec:
    """What an option takes: its type, for a string possibly one of `choices`; messages show the literal `example`.

    Null and the word ``none`` are only valid for "duration or none", the text ``any`` only for "whole number or 'any'".
    "columns" are names in parentheses.
    """

    type: Choice[
        "duration",
        "duration or weeks or months",
        "duration or none",
        "string",
        "whole number",
        "whole number or 'any'",
        "true or false",
        "columns",
    ]
    example: str
    choices: tuple[str, ...] = ()


WITH_TIMESTAMP = OptionSpec("true or false", "true")
MAX_AHEAD = OptionSpec("duration or none", "1 day")
MODE = OptionSpec("string", "'upsert'", ("append", "upsert"))


class Problem(NamedTuple):
    """An option that cannot be as it is. `of_value` is false if it is the option itself that cannot be."""

    option: str
    quoted: bool
    of_value: bool
    message: str
    help: str


def written(value: Scalar) -> str:
    """A value as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def given(options: Values) -> dict[str, tuple[str, str]]:
    """Options of Spark by their names in lower case: each name as it is written, and its value as text."""
    return {name.lower(): (name, written(value)) for name, value in options.items()}


class ConnectorFacts:
    """The facts of one kind; by default it can be read and written, and takes Spark's options.

    Options: `options` are vsc's own. `required` are needed, and one of `either` (`either_help` says what to add). Some
    apply only to a source, a sink, the sink of a stream, or a table. `main` is what a value without a name most likely
    is. If it `takes_spark`, quoted options go on to Spark, but for those in `own_names` (in lower case): vsc has its
    own for them. `flags` of Spark are true or false, `sizes` may have a unit. `client`: how options of the system's
    client begin, and what it is called.

    Rows: a source has only the columns that it `provides`, if any; `in_folders`: also those that folders of its files
    are named after, such as ``day=2026-05-04``. `flat` formats hold no arrays, maps or structs. `json_values`: these
    are JSON.
    A table's source that `removes` can say by itself that a row is gone.
    Columns that the options `beside` name stand neither in a record's key nor in its value.
    Formats `of_tables` bring changes of whole rows, with their keys, which only tables can be read from. The sink of a
    table `adds` columns. If it is `newest_only`, such a sink takes only the newest change of each key of a versioned
    table. A sink that `digests` compares the rows of an epoch that comes again with what it has written.
    """

    kind: ClassVar[str]
    options: ClassVar[Mapping[str, OptionSpec]] = {}
    required: ClassVar[tuple[str, ...]] = ()
    either: ClassVar[tuple[str, ...]] = ()
    either_help: ClassVar[str] = ""
    roles: ClassVar[tuple[Role, ...]] = ("source", "sink")
    source_only: ClassVar[tuple[str, ...]] = ()
    sink_only: ClassVar[tuple[str, ...]] = ()
    stream_sink_only: ClassVar[tuple[str, ...]] = ()
    table_only: ClassVar[tuple[str, ...]] = ()
    main: ClassVar[str] = ""
    takes_spark: ClassVar[bool] = True
    own_names: ClassVar[Mapping[str, str]] = {}
    flags: ClassVar[frozenset[str]] = frozenset()
    sizes: ClassVar[frozenset[str]] = frozenset()
    client: ClassVar[tuple[str, str] | None] = None
    provides: ClassVar[Mapping[str, DataType]] = {}
    in_folders: ClassVar[bool] = False
    flat: ClassVar[tuple[str, ...]] = ()
    json_values: ClassVar[bool] = False
    beside: ClassVar[tuple[str, ...]] = ()
    of_tables: ClassVar[tuple[str, ...]] = ()
    removes: ClassVar[bool] = False
    adds: ClassVar[tuple[str, ...]] = ()
    newest_only: ClassVar[bool] = False
    digests: ClassVar[bool] = False

    def untimed(self, options: Values) -> str:
        """From when on rows without a timestamp clause are valid; an empty text if each has a time of its own."""
        return ""

    def timeless(self, spark: Values) -> str | None:
        """What a source reads, if its rows have no time at all; None if they have. `spark` are Spark's options."""
        return None

    def wrong_value(self, name: str, value: str) -> Wrong:
        """What is wrong with the text of an option of vsc's own."""
        return None

    def wrong_name(self, role: Role, name: str, options: Values) -> Wrong:
        """What is wrong with an option of Spark, whatever its value; `options` are vsc's own."""
        return None

    def wrong_word(self, name: str, value: str) -> Wrong:
        """What is wrong with the value of an option of Spark, in lower case, for a source."""
        return None

    def wrong_together(self, role: Role, options: Values, spark: Values) -> Iterator[Problem]:
        """What is wrong with several options taken together."""
        return iter(())

    def packages(self, role: Role, options: Values) -> tuple[str, ...]:
        """What its tasks import beside what all tasks do: Python packages, by their names for pip."""
        return ()

    def place(self, options: Mapping[str, str]) -> Place | None:
        """Where it reads or writes; None for no place. `options` are vsc's own and Spark's."""
        return None

    def dataset(self, options: Mapping[str, str], files: str) -> Dataset | None:
        """What it reads or writes, with OpenLineage's names; None if nobody else could know it.

        `options` are vsc's own and Spark's. `files` is the file system of paths without a scheme, such as
        ``hdfs://host:8020``; empty: that of this machine. No name has a user or a secret in it.
        """
        return None

    def position(self, part: str, offset: int) -> dict[str, str | int]:
        """Where a row was read: the source partition, and its place in it."""
        return {"file": part, "row": offset} if part else {"row": offset}
