"""How columns of the language's types become text that PostgreSQL reads, and which types of a table can hold them.

The text of a value is that of PostgreSQL's own input: so every type of a table that has one can be filled, and the
server converts and checks. Guarantees: equal values of a key column have equal texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, ScalarType, StructType
from vsc.runtime.expressions.json_text import writer
from vsc.runtime.spark.connectors.table_types import INTEGER_DIGITS
from vsc.runtime.spark.connectors.table_types import fits as is_wider
from vsc.runtime.values import text_bytes, to_values

__all__ = [
    "TableColumn",
    "as_json",
    "copied",
    "created_type",
    "fits",
    "gives",
    "is_spelled",
    "merges_keys",
    "texts",
]

_CREATED = {
    "boolean": "boolean", "tinyint": "smallint", "smallint": "smallint", "int": "integer", "bigint": "bigint",
    "float": "real", "double": "double precision", "string": "text", "binary": "bytea", "date": "date",
    "timestamp": "timestamp with time zone",
}  # fmt: skip
_BASES = {
    "bool": "boolean", "int2": "smallint", "int4": "int", "int8": "bigint", "float4": "float", "float8": "double",
    "bytea": "binary", "date": "date", "timestamptz": "timestamp", "timestamp": "timestamp",
}  # fmt: skip
"""The language's types of the values of PostgreSQL's."""
_INTEGERS = ("int2", "int4", "int8")
_TEXTUAL = ("text", "citext", "uuid", "json", "jsonb", "xml", "ltree")
"""The types that hold a text, or refuse it; ``name`` cuts it, ``bpchar`` loses blanks. A ``uuid``, say, has a spelling
of its own, but of the same value."""
_JSON = ("json", "jsonb")
_MICROSECONDS = 6
_NUMERIC_HEAD = 4
"""A numeric's modifier is ((precision << 16) | scale) + 4, -1 where it has none; the scale has 11 bits."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table: its type as PostgreSQL writes it, and below domains and modifiers.

    `base` is the internal name (``int4``, ``_text``), `cast` the same as SQL, without modifier; `category` is
    ``pg_type.typcategory``; `element` is the base of an array's elements; `modifier` is that of the column, or of the
    domain, -1 without one.
    """

    name: str
    type: str
    base: str
    cast: str
    category: str
    element: str | None
    modifier: int
    required: bool
    generated: bool
    deterministic: bool
    """`required`: not null and without a default; `generated`: only the server writes it; `deterministic`: its
    collation takes no two texts for the same."""


def created_type(type: DataType) -> str:
    """The type of a column that is made for values of `type`."""
    match type:
        case ScalarType(name):
            return _CREATED[name]
        case DecimalType(precision, scale):
            return f"numeric({precision},{scale})"
        case ArrayType(ScalarType() | DecimalType() as element):
            return created_type(element) + "[]"
        case _:
            return "jsonb"


def fits(type: DataType, column: TableColumn) -> bool:
    """Whether every value of `type` has its place in the column, or is refused by it: none is changed."""
    return as_json(type, column) or _by_base(type, column, _holds)


def gives(type: DataType, column: TableColumn) -> bool:
    """Whether the column's values can be read as `type`, but for those out of its range."""
    return str(type) == "string" or as_json(type, column) or _by_base(type, column, _read)


def _by_base(type: DataType, column: TableColumn, fits: Callable[[DataType, str, TableColumn], bool]) -> bool:
    """Whether a type fits the base of the column; that of an array's elements, the base of the column's."""
    if not isinstance(type, ArrayType):
        return fits(type, column.base, column)
    scalar = isinstance(type.element, ScalarType | DecimalType)
    return scalar and column.element is not None and fits(type.element, column.element, column)


def _read(type: DataType, base: str, column: TableColumn) -> bool:
    if isinstance(type, DecimalType):
        return base in ("numeric", *_INTEGERS)
    name = "smallint" if str(type) == "tinyint" else str(type)  # the server has no type of one byte
    return name == "string" or (base in _BASES and is_wider(ScalarType(_BASES[base]), ScalarType(name)))


def as_json(type: DataType, column: TableColumn) -> bool:
    """Whether values of `type` go into the column as JSON."""
    return column.base in _JSON and isinstance(type, ArrayType | MapType | StructType)


def merges_keys(type: DataType, column: TableColumn) -> bool:
    """Whether the column, as a key, takes values of `type` for the same that are not. (`is_spelled` for a uuid.)"""
    if str(type) != "string":
        return False
    return not column.deterministic or not (column.base in ("text", "varchar", "uuid") or column.category == "E")


def _holds(type: DataType, base: str, column: TableColumn) -> bool:
    match type:
        case ScalarType("string") if base == "varchar":  # with a length it cuts blanks
            return column.modifier < 0
        case ScalarType("string"):
            return column.category in ("E", "I") or base in _TEXTUAL
        case ScalarType("timestamp") if base in ("timestamp", "timestamptz"):
            return column.modifier in (-1, _MICROSECONDS)
        case ScalarType(name) if base == "numeric":
            return name in INTEGER_DIGITS and _has_digits(column, INTEGER_DIGITS[name], 0)
        case ScalarType():
            return base in _BASES and is_wider(type, ScalarType(_BASES[base]))
        case DecimalType(precision, scale):
            return base == "numeric" and _has_digits(column, precision - scale, scale)
    return False


def _has_digits(column: TableColumn, before: int, after: int) -> bool:
    """Whether a numeric column has so many digits before and after the point."""
    if column.modifier < _NUMERIC_HEAD:
        return True
    packed = column.modifier - _NUMERIC_HEAD
    precision, scale = packed >> 16, packed & 0x7FF
    scale -= (scale & 0x400) << 1  # it may be negative
    return scale >= after and precision - scale >= before


def is_spelled(texts: pa.Array) -> pa.Array:
    """Which of some texts are a uuid as PostgreSQL writes it: two others can be the same one. Null for null."""
    return pc.match_substring_regex(texts, "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


# ------------------------------------------------------------------------------------------------------------- as text


def texts(array: pa.Array, type: DataType, json: bool) -> pa.Array:
    """The values as PostgreSQL reads them, null for null; `json`: as JSON."""
    if json:
        return _mapped(array, type, writer(type, exact=True))
    match type:
        case ScalarType("string"):
            return array
        case ScalarType("binary"):
            return _mapped(array, type, lambda value: "\\x" + value.hex())
        case ScalarType("timestamp"):
            return _instants(array)
        case ArrayType(element):
            return _lists(array, element)
        case _:
            return array.cast(pa.string())


def _instants(array: pa.Array) -> pa.Array:
    local = array.view(pa.int64()).view(pa.timestamp("us"))
    return pc.binary_join_element_wise(local.cast(pa.string()), "+00", "")


def _mapped(array: pa.Array, type: DataType, text: Callable[..., str]) -> pa.Array:
    return pa.array([None if value is None else text(value) for value in to_values(array, type)], pa.string())


def _lists(array: pa.Array, element: DataType) -> pa.Array:
    offsets = array.offsets.to_pylist() if len(array) else [0]
    start, end = offsets[0], offsets[-1]
    items = [_quoted(item) for item in texts(array.values.slice(start, end - start), element, False).to_pylist()]
    found = ["{" + ",".join(items[a - start : b - start]) + "}" for a, b in pairwise(offsets)]
    valid = array.is_valid().to_pylist()
    return pa.array([text if there else None for text, there in zip(found, valid, strict=True)], pa.string())


def _quoted(item: str | None) -> str:
    return "NULL" if item is None else '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'


def copied(columns: list[pa.Array]) -> memoryview:
    """Columns of text as the lines of ``COPY ... (format text)``."""
    cells = [pc.fill_null(_escaped(column), "\\N") for column in columns]
    return text_bytes(pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, "\t"), "", "\n"))


def _escaped(column: pa.Array) -> pa.Array:
    for plain, escaped in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        column = pc.replace_substring(column, plain, escaped)
    return column
