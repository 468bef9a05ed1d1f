"""Facts of tables of Delta Lake and of Iceberg."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from vsc.plan.connectors.dataset import Dataset, at_path
from vsc.plan.connectors.facts import (
    MAX_AHEAD,
    MODE,
    VARIABLE,
    WITH_TIMESTAMP,
    ConnectorFacts,
    OptionSpec,
    Problem,
    Role,
    Values,
    Wrong,
    written,
)
from vsc.plan.connectors.java_texts import wrong_regex
from vsc.plan.connectors.place import Place, folder
from vsc.plan.connectors.spark_values import wrong_count, wrong_number, wrong_time

__all__ = ["TABLE_NAME", "DeltaFacts", "IcebergFacts"]

TABLE_NAME = re.compile(r"[^.`]+|`(?:[^`]|``)+`")
"""A part of the name of a lake table."""
_FEED = "readchangefeed"
_HISTORY = {
    "history": OptionSpec("string", "'scd2'", ("scd2",)),
    "valid_from": OptionSpec("string", "'valid_from'"),
    "valid_to": OptionSpec("string", "'valid_to'"),
}


class LakeFacts(ConnectorFacts):
    """What both have in common. `shown` is a source's name; `of_spark` are the options of Spark, in lower case, that
    one takes."""

    options: ClassVar[Mapping[str, OptionSpec]] = {
        "path": OptionSpec("string", "'data/payments'"),
        "table": OptionSpec("string", "'payments'"),
        "create": OptionSpec("true or false", "true"),
        "mode": MODE,
        **_HISTORY,
        "max_ahead": MAX_AHEAD,
        "with_timestamp": WITH_TIMESTAMP,
    }
    either = ("path", "table")
    either_help = "add `path`, its folder, or `table`, its name in a catalog"
    source_only = ("max_ahead",)
    sink_only = ("create",)
    stream_sink_only = ("mode", "with_timestamp")
    table_only = tuple(_HISTORY)
    main = "path"
    newest_only = True
    removes = True
    shown: ClassVar[str]
    of_spark: ClassVar[frozenset[str]]

    def wrong_value(self, name: str, value: str) -> Wrong:
        """Names of tables."""
        value = VARIABLE.sub("x", value)
        if name == "table" and ".".join(TABLE_NAME.findall(value)) != value:
            return f"'{value}' is not the name of a table", "write TABLE, SCHEMA.TABLE or CATALOG.SCHEMA.TABLE"
        return None

    def wrong_name(self, role: Role, name: str, options: Values) -> Wrong:
        """Of a sink, properties of a table that is not created; of a source, options that it does not take."""
        if role == "sink":
            if options.get("create", False) is not False and options["create"] != "false":
                return None
            message = f"quoted options are properties of a table that is created, such as '{name}'"
            return message, "add create = true, or remove them"
        if "history" in options:
            return f"'{name}' has no effect: a history is read once, whole", f"remove '{name}'"
        if name.lower() not in self.of_spark:
            known = ", ".join(sorted(self.of_spark))
            return f"'{name}' is not an option of {self.shown} source", f"those that there are: {known}"
        return None

    def place(self, options: Mapping[str, str]) -> Place:
        """The folder, or the table of a catalog."""
        if "path" in options:
            return folder(options["path"], "part-0.parquet")
        return Place((self.kind,), options["table"], "table")

    def dataset(self, options: Mapping[str, str], files: str) -> Dataset:
        """The folder; of a catalog's table, whose place only the catalog knows, its name."""
        if "path" in options:
            return at_path(options["path"], files)
        parts = TABLE_NAME.findall(options["table"])
        return Dataset(self.kind, ".".join(p[1:-1].replace("``", "`") if p.startswith("`") else p for p in parts))


class DeltaFacts(LakeFacts):
    """Tables of Delta Lake."""

    kind = "delta"
    shown = "a Delta"
    flags = frozenset((_FEED, "ignoredeletes", "ignorechanges", "skipchangecommits"))
    sizes = frozenset(("maxbytespertrigger",))
    of_spark = frozenset(
        (_FEED, "startingversion", "startingtimestamp", "maxfilespertrigger", "maxbytespertrigger",
         "ignoredeletes", "ignorechanges", "skipchangecommits", "excluderegex", "failondataloss")
    )  # fmt: skip

    def wrong_word(self, name: str, value: str) -> Wrong:
        """Where reading begins."""
        lower = name.lower()
        if lower == "startingversion" and value.lower() != "latest":
            return wrong_number(name, value, "a version of the table or 'latest'", 0)
        if lower == "excluderegex":
            return wrong_regex(name, value)
        return wrong_time(name, value) if lower == "startingtimestamp" else None

    def wrong_together(self, role: Role, options: Values, spark: Values) -> Iterator[Problem]:
        """Two places to begin at."""
        names = {name.lower(): name for name in spark}
        if role == "source" and names.keys() >= {"startingversion", "startingtimestamp"}:
            message = "'startingVersion' says already where reading begins"
            yield Problem(names["startingtimestamp"], True, False, message, "remove one of the two")

    def timeless(self, spark: Values) -> str | None:
        """Rows of the change feed have the time of their commit."""
        feed = {name.lower(): written(value).lower() for name, value in spark.items()}.get(_FEED)
        return "a Delta table, without its change feed," if feed == "false" else None


class IcebergFacts(LakeFacts):
    """Tables of Iceberg."""

    kind = "iceberg"
    shown = "an Iceberg"
    of_spark = frozenset(
        ("stream-from-timestamp", "streaming-skip-delete-snapshots", "streaming-skip-overwrite-snapshots",
         "streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch")
    )  # fmt: skip

    flags = frozenset(("streaming-skip-delete-snapshots", "streaming-skip-overwrite-snapshots"))

    def wrong_word(self, name: str, value: str) -> Wrong:
        """Where reading begins, and how much an epoch takes."""
        lower = name.lower()
        if lower == "stream-from-timestamp":
            return wrong_number(name, value, "milliseconds since 1970", 1_777_888_800_000)
        return wrong_count(name, value, 10) if lower.startswith("streaming-max-") else None

    def timeless(self, spark: Values) -> str:
        """Rows of Iceberg have no time."""
        return "an Iceberg table"
