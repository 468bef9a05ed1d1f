"""Facts of files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from vsc.plan.connectors.dataset import Dataset, at_path
from vsc.plan.connectors.debezium import DEBEZIUM, DEBEZIUM_OPTIONS, debezium_problems
from vsc.plan.connectors.facts import (
    MAX_AHEAD,
    VARIABLE,
    WITH_TIMESTAMP,
    ConnectorFacts,
    OptionSpec,
    Problem,
    Role,
    Scalar,
    Values,
    Wrong,
    given,
    written,
)
from vsc.plan.connectors.file_writers import writer_problems, wrong_writer_option
from vsc.plan.connectors.java_texts import wrong_glob, wrong_time_pattern
from vsc.plan.connectors.place import Place, folder
from vsc.plan.connectors.spark_values import wrong_age

__all__ = [
    "CELL_OPTIONS", "CELL_TEXTS", "FILE_OPTIONS", "LINE_OPTIONS", "TEXT_FORMATS", "FilesFacts", "cell_problems",
    "of_files", "size_bytes",
]  # fmt: skip

TEXT_FORMATS = frozenset(("timestampformat", "dateformat"))
"""Spark's options, in lower case, for how times are written."""
FILE_OPTIONS = frozenset(
    ("maxfilespertrigger", "maxbytespertrigger", "latestfirst", "filenameonly", "maxfileage", "cleansource",
     "sourcearchivedir", "pathglobfilter", "recursivefilelookup", "ignoremissingfiles")
)  # fmt: skip
"""Spark's options, in lower case, that say which files are read, not how."""
LINE_OPTIONS = frozenset(("linesep", "multiline"))
"""Spark's options for JSON, in lower case, that say where records end."""
CELL_OPTIONS = frozenset(("sep", "delimiter", "quote", "escape", "nullvalue", "header", "linesep"))
"""Spark's options for CSV that are honoured, in lower case; those of Spark's file source go on to Spark."""
CELL_TEXTS = {r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\r\n": "\r\n"}
"""What a topology's text, which has no escapes of its own, can only say like this; Spark reads ``\\t`` so as well."""

_OF_FORMAT: Mapping[Scalar | None, frozenset[str]] = {
    "csv": CELL_OPTIONS | TEXT_FORMATS, "json": LINE_OPTIONS | TEXT_FORMATS, DEBEZIUM: LINE_OPTIONS,
    "parquet": frozenset(("mergeschema", "datetimerebasemode", "int96rebasemode")), "orc": frozenset(("mergeschema",)),
}  # fmt: skip
"""Spark's options for how files are read, in lower case, by format."""
_REBASE = ("exception", "corrected", "legacy")
_WORDS = {
    "cleansource": ("off", "archive", "delete"), "datetimerebasemode": _REBASE, "int96rebasemode": _REBASE,
}  # fmt: skip
"""What Spark takes for options of a source, in lower case."""
_SIZE = re.compile(r"(\d{1,12}) *([kmg]?)b", re.IGNORECASE)
_CHARSETS = ("encoding", "charset")
_SPLIT = "maxrecordsperfile"
_EXTENSION = "extension"
_NOT_OF_STREAMS = frozenset(("modifiedbefore", "modifiedafter"))
_BAD_ROWS = frozenset(("mode", "columnnameofcorruptrecord", "badrecordspath", "ignorecorruptfiles"))


class FilesFacts(ConnectorFacts):
    """Files in a folder."""

    kind = "files"
    digests = True
    options: ClassVar[Mapping[str, OptionSpec]] = {
        "path": OptionSpec("string", "'data/payments'"),
        "format": OptionSpec("string", "'json'", ("parquet", "json", "csv", "orc", "debezium")),
        "with_timestamp": WITH_TIMESTAMP,
        "append": OptionSpec("true or false", "true"),
        "partition_by": OptionSpec("columns", "(country, day)"),
        "target_size": OptionSpec("string", "'128 MB'"),
        "time_zone": OptionSpec("string", "'Europe/Berlin'"),
        "missing_columns": OptionSpec("string", "'null'", ("error", "null")),
        **DEBEZIUM_OPTIONS,
        "max_ahead": MAX_AHEAD,
    }
    required = ("path", "format")
    source_only = ("time_zone", "missing_columns", "max_ahead", *DEBEZIUM_OPTIONS)
    in_folders = True
    of_tables = (DEBEZIUM,)
    sink_only = ("append", "partition_by", "target_size")
    stream_sink_only = ("with_timestamp",)
    main = "path"
    own_names: ClassVar[Mapping[str, str]] = {
        "path": "path",
        "paths": "path",
        "format": "format",
        "targetfilesize": "target_size",
        "partitionby": "partition_by",
    }
    flat = ("csv",)
    adds = ("_change", "_timestamp")

    def untimed(self, options: Values) -> str:
        """When their file was written; of changes, each has its own."""
        return "" if options.get("format") in self.of_tables else "the time its file was written"

    def wrong_value(self, name: str, value: str) -> Wrong:
        """A target size that is none."""
        if name == "target_size" and not VARIABLE.search(value) and not size_bytes(value):
            return f"'{value}' is not a size", "write a number with its unit, such as '128 MB' (B, KB, MB or GB)"
        return None

    def wrong_name(self, role: Role, name: str, options: Values) -> Wrong:
        """Of a source, options that lose rows, and those that its format does not take; of a sink, those with which its
        files cannot be merged, and those without an effect."""
        lower, form = name.lower(), options.get("format")
        if role == "sink":
            merged = _not_merged(name, options) if "target_size" in options else None
            return merged or wrong_writer_option(name, options)
        if lower in _BAD_ROWS:
            return (
                f"'{name}' would lose rows without a word",
                f"remove '{name}': what happens to rows that cannot be read is said by `vsc run --on-bad-row`",
            )
        if lower in _NOT_OF_STREAMS:
            return (
                f"Spark has '{name}' for what is read once, not for a stream of files",
                f"remove '{name}', or let a `filter` compare times; 'pathGlobFilter' chooses files by name",
            )
        if form not in _OF_FORMAT or of_files(name) or lower in (known := _OF_FORMAT[form] | FILE_OPTIONS):
            return None
        return (
            f"vsc does not support the option '{name}' for {str(form).upper()}",
            "those it can are " + ", ".join(sorted(known)),
        )

    def wrong_word(self, name: str, value: str) -> Wrong:
        """Words of which Spark knows a few, and which files are read."""
        lower = name.lower()
        if value.lower() not in (words := _WORDS.get(lower, (value.lower(),))):
            return f"'{name}' cannot be '{value}'", f"write {', '.join(map(repr, words[:-1]))} or {words[-1]!r}"
        if lower in ("sourcearchivedir", "linesep") and not value:
            return f"'{name}' is empty", f"write a value, or remove '{name}'"
        if lower in TEXT_FORMATS:
            return wrong_time_pattern(name, value, reads=True)
        if lower == "pathglobfilter":
            return wrong_glob(name, value)
        return wrong_age(name, value) if lower == "maxfileage" else None

    def wrong_together(self, role: Role, options: Values, spark: Values) -> Iterator[Problem]:
        """How the CSV files of a source are written, and the files of a sink; options of change events."""
        yield from debezium_problems(role, options)
        if role == "sink":
            yield from writer_problems(options, spark)
        if role == "source" and options.get("format") == "csv":
            yield from cell_problems(spark)
        if role == "source":
            yield from _listing_problems(str(options.get("path", "")), spark)

    def place(self, options: Mapping[str, str]) -> Place:
        """The folder."""
        return folder(options["path"], f"part-0.{options['format']}")

    def dataset(self, options: Mapping[str, str], files: str) -> Dataset:
        """The folder."""
        return at_path(options["path"], files)


def size_bytes(text: str) -> int | None:
    """The bytes of a size such as ``128 MB``, with units of 1024 as in Spark; None if the text is none."""
    found = _SIZE.fullmatch(text.strip())
    return None if found is None else int(found.group(1)) << 10 * " kmg".index(found.group(2).lower() or " ")


def _listing_problems(path: str, spark: Values) -> Iterator[Problem]:
    """What is wrong with the options that say which files an epoch takes, and what becomes of them."""
    found = given(spark)
    name, value = found.get("cleansource", ("", ""))
    if value.lower() == "archive" and "sourcearchivedir" not in found:
        yield Problem(name, True, True, f"'{name}' = 'archive' needs a folder for the files",
                      "add 'sourceArchiveDir' = '...'")  # fmt: skip
    name, archive = found.get("sourcearchivedir", ("", ""))
    if (
        value.lower() == "archive"
        and archive
        and f"{folder(archive, '').path}/".startswith(f"{folder(path, '').path}/")
    ):
        yield Problem(name, True, True, f"'{name}' cannot be in the folder that is read",
                      "name a folder outside of it")  # fmt: skip
    if found.keys() >= {"maxfilespertrigger", "maxbytespertrigger"}:
        name = found["maxfilespertrigger"][0]
        yield Problem(name, True, False, "an epoch is bounded by files or by bytes, not by both", f"remove '{name}'")


def _not_merged(name: str, options: Values) -> Wrong:
    """An option of Spark with which the files of a sink cannot be merged."""
    if name.lower() == _SPLIT:
        return f"'{name}' splits what `target_size` merges", f"remove '{name}' or `target_size`"
    if name.lower() == _EXTENSION and options.get("format") == "csv":
        return f"files with '{name}' have no format in their names", f"remove '{name}' or `target_size`"
    if name.lower() in _CHARSETS and options.get("format") in ("csv", "json"):
        return f"files with '{name}' cannot be merged by lines", f"remove '{name}' or `target_size`"
    return None


def of_files(name: str) -> bool:
    """Whether an option of Spark says which files are read, or is one of Hadoop's for their file system."""
    return name.lower() in FILE_OPTIONS or "." in name


def cell_problems(spark: Values) -> Iterator[Problem]:
    """What is wrong with the options that say how a CSV file is written."""
    options = {name.lower(): (name, _written_out(value)) for name, value in spark.items()}
    for name, least in (("sep", 1), ("delimiter", 1), ("quote", 0), ("escape", 0)):
        written, value = options.get(name, (name, None))
        if value is not None and not (least <= len(value) <= 1 and value.isascii() and value not in ("\n", "\r")):
            yield Problem(written, True, True, f"'{written}' is a single ASCII character, not {value!r}",
                          f"write one, such as `'{written}' = ';'`")  # fmt: skip
    separator = options.get("sep", options.get("delimiter"))
    if separator is not None and separator[1] is not None:
        others = [options.get("quote", ("", '"'))[1], options.get("escape", ("", ""))[1]]
        if separator[1] in others:
            message = f"{separator[1]!r} cannot separate cells and quote or escape as well"
            yield Problem(separator[0], True, True, message, "choose another character for one of them")
    name, ends = options.get("linesep", ("", "\n"))
    if ends not in (None, "\n", "\r", "\r\n"):
        yield Problem(name, True, True, f"'{name}' is '\\n', '\\r' or '\\r\\n' for CSV, not {ends!r}",
                      f"write `'{name}' = '\\n'`")  # fmt: skip
    name, header = options.get("header", ("", None))
    if header is not None and header.lower() != "true":
        yield Problem(name, True, True, "CSV columns go by the header, it cannot be switched off", f"remove '{name}'")


def _written_out(value: Scalar) -> str | None:
    text = written(value)
    return None if VARIABLE.search(text) else CELL_TEXTS.get(text, text)
