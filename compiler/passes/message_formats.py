"""Checks that messages, with a key and a value, can hold the columns of a node, in the given formats and options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.source import Span
from vsc.plan import Column, Schema
from vsc.plan.connectors.facts import Role
from vsc.plan.connectors.kafka import REGISTERED, WINDOW_END, WINDOW_START
from vsc.plan.types import (
    BIGINT,
    INT,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructType,
    other_key,
    parse_type,
    types_in,
)

__all__ = ["check_messages"]

_GIVEN = {
    "headers": (parse_type("array<struct<key:string,value:binary>>"), parse_type("map<string,binary>")),
    "partition": (INT, BIGINT),
    "offset": (BIGINT,),
}
"""By option, the types of the column that it names."""
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROTOBUF_KEYS = ("string", "boolean", "tinyint", "smallint", "int", "bigint")
_OF_FORMAT = {"schema": "format", "schema_id": "format", "key_schema": "key_format", "key_schema_id": "key_format"}

_OF_REGISTRY = ("registry_auth", "subject_name_strategy", "record_name", "register")

Options = Mapping[str, str | int | float | bool]


def check_messages(
    options: Options, places: Mapping[str, Span], node: str, schema: Schema, role: Role
) -> Iterator[Finding]:
    """Columns that do not fit (VSC508, VSC513), and options (VSC514). `places` are the spans of the options' values."""
    key_format, given = options.get("key_format"), [name for name in _GIVEN if name in options]
    value = schema.value if key_format != "none" else (*schema.key, *schema.value)
    value = tuple(column for column in value if column.name not in [options[name] for name in given])
    if options.get("format") == "string" and [column.type for column in value] != [STRING]:
        yield Finding(
            "VSC508", places["format"],
            f"the format `string` is one column of type string, and `{node}` has {_listing(value)} beside its key", (),
            "use `format = 'json'`",
        )  # fmt: skip
    if key_format == "string" and [column.type for column in schema.key] != [STRING]:
        yield Finding(
            "VSC508", places["key_format"],
            f"the key format `string` is one key column of type string, and the key of `{node}` is "
            f"{_listing(schema.key)}", (),
            "use `key_format = 'json'`",
        )  # fmt: skip
    if key_format not in (None, "none") and not schema.key:
        yield Finding(
            "VSC508", places["key_format"], f"`{node}` has no key that could be written as {key_format}", (),
            "remove `key_format`",
        )  # fmt: skip
    yield from _columns_given({name: str(options[name]) for name in given}, places, node, schema)
    inner = tuple(column for column in schema.key if column.name not in (WINDOW_START, WINDOW_END))
    for name, columns in (("format", value), ("key_format", schema.key), ("inner_key_format", inner)):
        if options.get(name) == "avro":
            yield from _avro_columns(places[name], node, columns)
        elif options.get(name) == "protobuf":
            yield from _protobuf_columns(places[name], node, columns)
    yield from _avro_options(options, places, role)
    yield from _registry_options(options, places)


def _columns_given(
    named: Mapping[str, str], places: Mapping[str, Span], node: str, schema: Schema
) -> Iterator[Finding]:
    """What is wrong with the columns that options name, by option."""
    types = {column.name: column.type for column in schema.value}
    for option, name in named.items():
        what = "headers" if option == "headers" else f"the {option}"
        if "${" in name:
            continue
        if named.get("partition") == name and option == "offset":
            message = f"the column `{name}` of `{node}` holds the partition, and cannot hold the offset"
        elif types.get(name) in _GIVEN[option]:
            continue
        elif name in types:
            message = f"the column `{name}` of `{node}` is {types[name]}, which cannot hold {what}"
        elif any(column.name == name for column in schema.key):
            message = f"the column `{name}` is part of the key of `{node}`, and cannot hold {what}"
        else:
            message = f"`{node}` has no column `{name}` for {what}"
        listed = " or ".join(f"`{name} {type}`" for type in _GIVEN[option])
        yield Finding("VSC513", places[option], message, (), f"name a column {listed}")


def _avro_columns(place: Span, node: str, columns: Sequence[Column]) -> Iterator[Finding]:
    for column in columns:
        problem = _not_avro(column.name, column.type)
        if problem is not None:
            message = f"Avro cannot hold the column `{column.name}` of `{node}`: {problem}"
            yield Finding("VSC508", place, message, (), "give it another name or type, or use `'json'`")


def _not_avro(name: str, type: DataType) -> str | None:
    if (key := other_key(type)) is not None:
        return f"the keys of an Avro map are strings, not {key}"
    return _not_a_name(name, type, "Avro")


def _not_a_name(name: str, type: DataType, system: str) -> str | None:
    names = [name]
    for part in types_in(type):
        if isinstance(part, StructType):
            names += [field.name for field in part.fields]
    wrong = next((one for one in names if not _AVRO_NAME.fullmatch(one)), None)
    return None if wrong is None else f"`{wrong}` is not a name in {system} (letters, digits and _)"


def _protobuf_columns(place: Span, node: str, columns: Sequence[Column]) -> Iterator[Finding]:
    for column in columns:
        problem = _not_a_name(column.name, column.type, "Protobuf") or _not_protobuf(column.type)
        if problem is not None:
            message = f"Protobuf cannot hold the column `{column.name}` of `{node}`: {problem}"
            yield Finding("VSC508", place, message, (), "give it another name or type, or use `'json'`")


def _not_protobuf(type: DataType) -> str | None:
    for part in types_in(type):
        inner = part.element if isinstance(part, ArrayType) else part.value if isinstance(part, MapType) else None
        if isinstance(inner, ArrayType | MapType):
            return "an array or a map holds no arrays or maps"
        if isinstance(part, MapType) and str(part.key) not in _PROTOBUF_KEYS:
            return f"the keys of a map are not {part.key}"
    return None


def _avro_options(options: Options, places: Mapping[str, Span], role: Role) -> Iterator[Finding]:
    for name, form in _OF_FORMAT.items():
        if name not in options:
            continue
        given = options.get(form)
        if given != "avro" and not (isinstance(given, str) and "${" in given):
            message = f"`{name}` is for Avro, and `{form} = 'avro'` is not given"
            yield Finding("VSC514", places[name], message, (), f"write `{form} = 'avro'`, or remove `{name}`")
        elif options[name] == "any" and role == "sink":
            message = f"a sink writes one schema id, and `{name}` is 'any'"
            yield Finding("VSC514", places[name], message, (), f"write the id, such as `{name} = 1`")


def _registry_options(options: Options, places: Mapping[str, Span]) -> Iterator[Finding]:
    """Options of a schema registry, which only some formats have."""
    forms = {name: options[name] for name in ("format", "key_format", "inner_key_format") if name in options}
    if "registry" not in options:
        for name in (one for one in _OF_REGISTRY if one in options):
            message = f"`{name}` is for a schema registry, and `registry` is not given"
            yield Finding("VSC514", places[name], message, (), f"write `registry = '${{url}}'`, or remove `{name}`")
        for name, form in forms.items():
            if form == "protobuf" or (form == "avro" and name == "inner_key_format"):
                message = f"the schemas of {str(form).title()} come from a schema registry, and `registry` is not given"
                yield Finding("VSC514", places[name], message, (), "write `registry = '${url}'`")
        return
    if not any(form in REGISTERED or (isinstance(form, str) and "${" in form) for form in forms.values()):
        message = f"a schema registry has schemas of {', '.join(REGISTERED)}, and neither key nor value is one of these"
        yield Finding("VSC514", places["registry"], message, (), "remove `registry`, or write another format")
    for name in (one for one in ("schema_id", "key_schema_id") if one in options):
        message = f"with `registry`, each record says its schema id, and `{name}` cannot be given"
        yield Finding("VSC514", places[name], message, (), f"remove `{name}`")


def _listing(columns: Sequence[Column]) -> str:
    return ", ".join(code(f"{named(column.name)} {column.type}") for column in columns) or "none"
