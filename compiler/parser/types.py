"""Reads written types: Spark SQL's DDL names in lower case, with named struct members."""

from __future__ import annotations

from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.diagnostics.suggest import nearest, renamed
from vsc.compiler.source import Span
from vsc.compiler.syntax import Name
from vsc.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
)

__all__ = ["TYPE_NAMES", "TypeProblem", "is_type_name", "meant_type", "nested_type", "plain_type", "sized_type"]

_PLAIN: dict[str, DataType] = {
    str(t): t for t in (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP)
}
_NESTED = ("array", "map", "struct")
TYPE_NAMES = (*_PLAIN, "decimal", *_NESTED)
"""The names of all types."""
_MAX_LEVELS = 32  # of types nested in types
_SYNONYMS = {
    "bool": "boolean", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "int2": "smallint", "int4": "int", "int64": "bigint", "int32": "int", "float4": "float", "float8": "double",
    "text": "string", "varchar": "string", "str": "string", "bytes": "binary", "blob": "binary", "bytea": "binary",
    "timestamptz": "timestamp", "timestamp_ltz": "timestamp",
}  # fmt: skip
"""Types of other systems that hold the same values."""
_OTHER_NAMES = {
    **_SYNONYMS,
    "byte": "tinyint", "int8": "bigint", "number": "decimal(p, s)", "numeric": "decimal(p, s)", "dec": "decimal(p, s)",
    "uint": "bigint", "uint8": "smallint", "uint16": "int", "uint32": "bigint", "uint64": "decimal(20, 0)",
    "char": "string", "datetime": "timestamp", "timestamp_ntz": "timestamp", "list": "array<T>",
    "row": "struct<a: T, ...>", "dict": "map<K, V>", "object": "struct<a: T, ...>", "hashmap": "map<K, V>",
    "json": "string", "jsonb": "string", "variant": "string", "uuid": "string",
}  # fmt: skip


def is_type_name(word: str) -> bool:
    """Whether `word` names a type, here or in another system."""
    return word.lower() in TYPE_NAMES or word.lower() in _OTHER_NAMES


def meant_type(name: Name, sizes: list[int]) -> DataType | None:
    """The type that an unknown name most likely means, with which the rest of the text can be checked."""
    meant = _meant(name.text.lower())
    if meant is not None and meant.startswith("decimal"):
        precision, scale = (*sizes, 0)[:2] if sizes else (10, 0)
        return DecimalType(precision, scale) if scale <= precision <= MAX_PRECISION and precision else None
    return _PLAIN.get(meant or "")


class TypeProblem(Exception):
    """The written type does not exist. Carries the finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def plain_type(name: Name) -> DataType:
    """A type without parameters; ``decimal`` is ``decimal(10, 0)``, as in Spark."""
    if name.text == "decimal":
        return DecimalType(10, 0)
    found = _PLAIN.get(name.text)
    if found is not None:
        return found
    if name.text in _NESTED:
        raise TypeProblem(_problem(name.span, f"the type `{name.text}` needs its parts", f"write {_form(name.text)}"))
    raise TypeProblem(_unknown(name))


def sized_type(name: Name, sizes: list[int], span: Span) -> DataType:
    """``decimal(precision[, scale])``."""
    if name.text != "decimal":
        if name.text in _PLAIN:
            raise TypeProblem(_problem(span, f"the type `{name.text}` does not take a length", f"write `{name.text}`"))
        raise TypeProblem(_unknown(name))
    precision, scale = (*sizes, 0)[:2]
    if len(sizes) > 2 or not 1 <= precision <= MAX_PRECISION or scale > precision:
        message = f"the precision of a decimal is 1 to {MAX_PRECISION}, and its scale at most its precision"
        raise TypeProblem(_problem(span, message, "write `decimal(precision, scale)`, as in `decimal(12, 2)`"))
    return DecimalType(precision, scale)


def nested_type(name: Name, parts: list[tuple[Name | None, DataType]], span: Span) -> DataType:
    """``array<T>``, ``map<K, V>``, ``struct<a: T, ...>``; `parts` holds the types, for a struct with their names."""
    named = [part for part in parts if part[0] is not None]
    types = [part[1] for part in parts]
    if max(map(_levels, types)) >= _MAX_LEVELS:
        help = "flatten the column"
        raise TypeProblem(Finding("VSC015", span, f"the type is nested more than {_MAX_LEVELS} levels deep", (), help))
    if name.text == "array" and not named and len(types) == 1:
        return ArrayType(types[0])
    if name.text == "map" and not named and len(types) == 2:
        return MapType(types[0], types[1])
    if name.text == "struct" and len(named) == len(parts):
        return _struct(named)
    if name.text in _NESTED:
        raise TypeProblem(_problem(span, f"these are not the parts of a type `{name.text}`",
                                   f"write {_form(name.text)}"))  # fmt: skip
    if name.text in _PLAIN or name.text == "decimal":
        raise TypeProblem(_problem(span, f"the type `{name.text}` has no parts", f"write `{name.text}`"))
    raise TypeProblem(_unknown(name))


def _struct(parts: list[tuple[Name | None, DataType]]) -> StructType:
    fields: dict[str, Field] = {}
    for name, type in parts:
        assert name is not None
        if name.text.lower() in fields:
            message = f"the struct has two members `{name.text}`"
            raise TypeProblem(_problem(name.span, message, "give each member its own name; case is ignored"))
        fields[name.text.lower()] = Field(name.text, type)
    return StructType(tuple(fields.values()))


def _levels(type: DataType) -> int:
    """How deeply types are nested; at most `_MAX_LEVELS`, since deeper types are never built."""
    if isinstance(type, ArrayType):
        return 1 + _levels(type.element)
    if isinstance(type, MapType):
        return 1 + max(_levels(type.key), _levels(type.value))
    if isinstance(type, StructType):
        return 1 + max(_levels(field.type) for field in type.fields)
    return 1


def _form(name: str) -> str:
    return {"array": "`array<T>`", "map": "`map<K, V>`", "struct": "`struct<a: T, b: T>`"}[name]


def _meant(lower: str) -> str | None:
    known = (*_PLAIN, "decimal", *_NESTED)
    return lower if lower in known else _OTHER_NAMES.get(lower) or nearest(lower, known)


def _unknown(name: Name) -> Finding:
    lower = name.text.lower()
    known = (*_PLAIN, "decimal", *_NESTED)
    meant = _meant(lower)
    help = f"did you mean `{meant}`?" if meant else "types are " + ", ".join(sorted(known))
    sure = lower if lower in _PLAIN else _SYNONYMS.get(lower)
    fix = None if lower in _OTHER_NAMES else renamed(name.span, lower, known)
    return Finding("VSC016", name.span, f"there is no type `{name.text}`", (), help,
                   fix if sure is None else Fix(name.span, sure))  # fmt: skip


def _problem(span: Span, message: str, help: str) -> Finding:
    return Finding("VSC016", span, message, (), help)
