"""Declared columns that no file of a source has: found before its first rows are read, when nothing is written yet.

Of up to `LOOKED_FILES` files, from the first to the last, the names are read (the footer, the header, the first rows'
keys) until all columns are found, which mostly takes one. Files that cannot be read are left to the query, which says
so. When a source is looked at: `Ends.look_at_columns`.

Who writes JSON may leave nulls out (Spark does). There a missing column is an error only if it looks like a mistake: if
it is part of the key, or the event time, or if the files have names that are not declared. Otherwise it is reported.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrameReader, SparkSession
from pyspark.sql import functions as F

from vsc.plan import expressions
from vsc.plan.connectors.files import of_files
from vsc.plan.nodes import Column, Node
from vsc.plan.types import STRING
from vsc.runtime.errors import MissingColumnError
from vsc.runtime.expressions.json_data import json_values
from vsc.runtime.operators.source.partition_folders import folder_texts
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.base.paths import is_local, local_path
from vsc.runtime.spark.formats.csv import CsvCells
from vsc.runtime.spark.formats.csv_dialect import CsvDialect
from vsc.runtime.spark.formats.text_formats import TEXT_FORMATS
from vsc.runtime.spark.session.local_files import listing_a_source

__all__ = ["LOOKED_FILES", "look_at_columns"]

LOOKED_FILES = 100
_LINES = {"csv": 100, **dict.fromkeys(TEXT_FORMATS, 1000)}
"""How many of the first lines of a file are looked at."""
_PLAIN = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt")
"""Ends of names of files that are not compressed: where such a file is local, it is read without a job of Spark's."""
_SHOWN = 12
_log = logging.getLogger(__name__)


def look_at_columns(spark: SparkSession, node: Node, options: Options) -> bool:
    """Raises MissingColumnError for a column that is in none of the files. Whether there was something to look at."""
    files = _SourceFiles(spark, options, tuple(c.name for c in node.source.columns))
    missing, there = list(files.declared), set[str]()
    first, looked = "", 0
    for file, names in files.files():
        looked, first = looked + 1, first or file
        there |= names
        missing = [name for name in missing if files.folded(name) not in {files.folded(one) for one in there}]
        if not missing:
            break
    if looked and missing:
        _tell(node, options, missing, sorted(there), first, looked)
    return bool(looked)


def _tell(node: Node, options: Options, missing: list[str], there: list[str], first: str, looked: int) -> None:
    source = node.source
    unused = [name for name in there if name not in {c.name for c in source.columns}]
    near = {name: found for name in missing if (found := _nearest(name, unused)) is not None}
    needed = {c.name for c in node.schema.key}
    if source.timestamp is not None and isinstance(source.timestamp.expr, expressions.Column):
        needed.add(source.timestamp.expr.name)
    where = first if looked == 1 else f"{first}, nor in {_others(looked - 1)}"
    names = ", ".join(f"'{name}'" for name in missing)
    what = f"{options.place}: there is no column {names} in {where}"
    error = MissingColumnError(f"{what}. {_there(missing, near, there)}", _help(near))
    lenient = options.text("format") in TEXT_FORMATS and options.get("missing_columns") != "error"
    if not lenient or unused or needed & set(missing):
        raise error
    _log.warning(f"{what}: null until a row has it")


def _others(count: int) -> str:
    return "1 other file that was looked at" if count == 1 else f"{count} other files that were looked at"


def _there(missing: list[str], near: Mapping[str, str], there: list[str]) -> str:
    if near:
        found = ", ".join(f"'{name}'" if len(missing) == 1 else f"'{name}' for '{of}'" for of, name in near.items())
        return f"The nearest there: {found}"
    more = "" if len(there) <= _SHOWN else f" and {len(there) - _SHOWN} more"
    return f"There are: {', '.join(there[:_SHOWN])}{more}" if there else "There is no column at all"


def _help(near: Mapping[str, str]) -> str:
    if near:
        wrong, right = next(iter(near.items()))
        first = f"declare '{right}' instead of '{wrong}'"
    else:
        first = "correct the source's columns, or its path"
    return f"{first}; or add missing_columns = 'null' to its options, if columns may be missing"


def _nearest(name: str, known: list[str]) -> str | None:
    plain = {_plain(one): one for one in known}
    found = difflib.get_close_matches(_plain(name), plain, 1, 0.75)
    return plain[found[0]] if found else None


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower() or name


class _SourceFiles:
    """The names in the files of one source."""

    def __init__(self, spark: SparkSession, options: Options, declared: tuple[str, ...]) -> None:
        self._spark, self._options, self.declared = spark, options, declared
        self._format = options.text("format")
        self._passed = {name: v for name, v in options.spark.items() if of_files(name)}
        self._own = {name: v for name, v in options.spark.items() if not of_files(name)}
        self._by_case = self._format in _LINES or spark.conf.get("spark.sql.caseSensitive", "false") == "true"

    def folded(self, name: str) -> str:
        """The name as the format's reader compares it."""
        return name if self._by_case else name.lower()

    def files(self) -> Iterator[tuple[str, set[str]]]:
        """Files with the names in them and in their paths: first, last, then evenly spread ones."""
        for file in _spread(self._listed()):
            path = re.sub(r"^([a-z]+):///", r"\1:/", unquote(file))  # as Spark shows the path of a row
            names = self._names(path)
            if names is not None:
                yield path, {*names, *folder_texts(path)}

    def _listed(self) -> list[str]:
        reader = self._spark.read.format("text").option("recursiveFileLookup", "true").options(**self._passed)
        try:
            with listing_a_source(self._spark):
                return sorted(reader.load(self._options.text("path")).inputFiles())
        except (PySparkException, Py4JJavaError):  # the path does not exist: the query says so
            return []

    def _names(self, file: str) -> set[str] | None:
        """The names in a file; None if it has no row, or cannot be read."""
        try:
            if self._format == "csv":
                return self._header(file)
            if self._format in TEXT_FORMATS and not self._own:
                return self._keys(file)
            if self._format == "parquet" and is_local(file, default=False):
                return set(pq.read_schema(local_path(file)).names)
            return set(self._reader(self._format).options(**self._own).load(file).schema.names)
        except (PySparkException, Py4JJavaError, pa.ArrowException, OSError):  # the query says what is wrong with it
            return None

    def _reader(self, form: str) -> DataFrameReader:
        return self._spark.read.format(form).option("__globPaths__", "false")  # as Spark's own streams read a file

    def _lines(self, file: str, separator: str | None) -> list[bytes]:
        most = _LINES[self._format]
        if is_local(file, default=False) and file.lower().endswith(_PLAIN) and separator in (None, "\n"):
            with Path(local_path(file)).open("rb") as lines:
                return list(islice(chain.from_iterable(_split(line, separator) for line in lines), most))
        reader = self._reader("text")
        reader = reader if separator is None else reader.option("lineSep", separator)
        return [bytes(line[0]) for line in reader.load(file).select(F.col("value").cast("binary")).head(most)]

    def _header(self, file: str) -> set[str] | None:
        dialect = CsvDialect.of(self._options.spark, self._options.place)
        source = CsvCells(tuple(Column(name, STRING) for name in self.declared), dialect, self._options.place, ())
        data = dialect.line_end.encode().join([*self._lines(file, dialect.line_end), b""])
        names = source.header(file, data)
        return None if names is None else set(names)

    def _keys(self, file: str) -> set[str] | None:
        names: set[str] = set()
        objects = 0
        for line in self._lines(file, None):
            try:
                values = json_values(line.decode())
            except ValueError:
                continue
            for value in chain.from_iterable(one if isinstance(one, list) else [one] for one in values):
                if isinstance(value, dict):
                    objects += 1
                    names.update(TEXT_FORMATS[self._format].names(value))
        return names if objects else None


def _split(line: bytes, separator: str | None) -> list[bytes]:
    """The lines in one that ends in a line feed; without a `separator`, a carriage return ends one, too."""
    return line.splitlines() if separator is None else [line.removesuffix(b"\n")]


def _spread(files: list[str]) -> list[str]:
    last = len(files) - 1
    most = min(len(files), LOOKED_FILES)
    chosen = [files[round(i * last / max(1, most - 1))] for i in range(most)]
    return chosen[:1] + chosen[-1:] + chosen[1:-1] if most > 1 else chosen
