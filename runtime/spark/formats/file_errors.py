"""Files that Spark cannot read as declared, in the user's words: which column, and the types as vsc writes them.

Spark tells the physical type of a parquet column alone (``INT64``). Where the file is a local one, its own schema tells
more; else what is known is said.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import orc
from pyarrow import parquet as pq

from vsc.runtime.errors import SourceError
from vsc.runtime.file_types import declared
from vsc.runtime.spark.base.paths import is_local, local_path

__all__ = ["gone", "mismatch", "orc_schema", "other_shape", "read_error", "type_text", "unreadable"]

_FILE = re.compile(r"Encountered error while reading file (\S+?)\.? ")
_FOOTER = re.compile(r"Could not read footer for file: ?\S*?(file:\S+?|\w+://\S+?)[;,\s]")
_FAILED = ("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER")
_MISMATCH = re.compile(
    r"Data type mismatches when reading Parquet column (.+?)\. Expected Spark type (.+?), actual Parquet type (.+?)\."
)
_OTHER_SHAPE = re.compile(
    r"Unable to convert type \S+ of file|ORC does not support type conversion from|Invalid Spark read type: expected|"
    r"class org\.apache\.spark\.sql\.types\.\S+ cannot be cast to class org\.apache\.spark\.sql\.types"
)
_TWICE = re.compile(r'Found duplicate field\(s\) "[^"]*": \[([^\]]*)\]')
_ORC_TIMES = {
    "nanos > 999999999 or < 0": "a timestamp before 1970 with a part of a second",
    "timestamp with local time zone": "a column of timestamps with a time zone",
}
"""What Spark cannot read of ORC files that other programs write, by what it says then (not always of which file)."""
_PHYSICAL = {
    "BOOLEAN": "boolean", "INT32": "int", "INT64": "bigint", "INT96": "timestamp", "FLOAT": "float",
    "DOUBLE": "double", "BINARY": "string or binary", "FIXED_LEN_BYTE_ARRAY": "decimal or binary",
}  # fmt: skip
_HELP = "declare the column with the type that the file has, and cast it in an expression"
_UUID = "uuid"
_UUID_HELP = (
    "declare it string, for its text; where Spark reads the file (on other file systems, and with options of Spark's), "
    "binary, for its 16 bytes"
)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]|%[89A-Fa-f]")
_MOST = 12


def read_error(text: str, reason: str) -> SourceError | None:
    """What the text of Spark's error says of a file; None if it is about none. `reason` is its innermost line."""
    file = _FILE.search(text) or _FOOTER.search(text)
    where = "a file" if file is None else f"the file {file.group(1)}"
    schema = None if file is None else _schema(file.group(1))
    types = _MISMATCH.search(text)
    if types is not None:
        column, wanted, physical = (group.strip("[]") for group in types.groups())
        path = column.split(", ")
        held = _held(schema, path) or _PHYSICAL.get(physical, physical)
        return mismatch(where, ".".join(path), wanted, held)
    if _OTHER_SHAPE.search(text):
        return other_shape(where, schema, reason)
    if (names := _TWICE.search(text)) is not None:
        message = f"{where} has several columns for one that is declared, whose names are the same to Spark: {names[1]}"
        return SourceError(message, "write the file with one of them, or give the others another name")
    for sign, held in _ORC_TIMES.items():
        if sign in text:
            message = f"{where} has {held}, which Spark cannot read from ORC"
            return SourceError(message, "write the data as Parquet, or with Spark")
    if file is not None and "FileNotFoundException" in reason:
        return gone(where)
    if file is not None or any(sign in text for sign in _FAILED):
        return unreadable(where, reason)
    return None


def mismatch(where: str, column: str, wanted: str, held: str) -> SourceError:
    """A column whose type in the file at `where` cannot become the `wanted` one."""
    help = _UUID_HELP if held == _UUID else _HELP
    return SourceError(f"{where}: column {column} is declared {wanted}, and holds {held} there", help)


def other_shape(where: str, schema: pa.Schema | None, reason: str = "") -> SourceError:
    """A column that is nested where it is not declared so, or the other way round."""
    columns = f"; the file has {_columns(schema)}" if schema is not None else f": {reason}"
    return SourceError(f"{where}: a column is of another type than declared{columns}", _HELP)


def unreadable(where: str, reason: str) -> SourceError:
    """A file that cannot be read at all."""
    return SourceError(f"{where} cannot be read: {reason}", "fix or remove the file, then run again")


def gone(where: str) -> SourceError:
    """A file that was deleted before it was read."""
    locale = "; if it is there, start the executors' JVMs in a UTF-8 locale: --conf spark.executorEnv.LC_ALL=C.UTF-8"
    return SourceError(
        f"{where} is not there any more",
        "put it back, then run again; if it is a file of a lake table (VACUUM, expiry of snapshots), start with a new "
        f"checkpoint{locale if _BEYOND_ASCII.search(where) else ''}",
    )


def _schema(url: str) -> pa.Schema | None:
    """The schema of a parquet or ORC file that is here; None if it cannot be read."""
    if not is_local(url):
        return None
    for read in (pq.read_schema, orc_schema):
        try:
            found: pa.Schema = read(unquote(local_path(url)))
            return found
        except (OSError, ValueError):  # Arrow's errors are either
            continue
    return None


def orc_schema(path: str) -> pa.Schema:
    """As Arrow reads it, but timestamps, which Arrow reads as nanoseconds, are microseconds, as Spark has them."""
    fields = [
        (f.name, pa.timestamp("us") if pa.types.is_timestamp(f.type) else f.type) for f in orc.ORCFile(path).schema
    ]
    return pa.schema(fields)


def _held(schema: pa.Schema | None, path: list[str]) -> str | None:
    """The type of the column, or of the field of a struct, at `path`."""
    held = None if schema is None else pa.struct(list(schema))
    for name in path:
        if held is None or not pa.types.is_struct(held) or held.get_field_index(name) < 0:
            return None
        held = held.field(name).type
    return None if held is None else type_text(held)


def _columns(schema: pa.Schema) -> str:
    shown = [f"{field.name} {type_text(field.type)}" for field in schema]
    return ", ".join(shown[:_MOST]) + (f" and {len(shown) - _MOST} more" if len(shown) > _MOST else "")


def type_text(type: pa.DataType) -> str:
    """The type as vsc writes it, or as Arrow does where vsc has none for it."""
    return _UUID if isinstance(type, pa.UuidType) else str(declared(type) or type)
