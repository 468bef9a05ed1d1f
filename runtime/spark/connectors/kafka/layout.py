"""Which columns of a node stand where in a record of Kafka, and in which format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from vsc.plan.connectors import facts_of
from vsc.plan.connectors.kafka import REGISTERED, SESSION, WINDOW_END, WINDOW_START, WINDOWED
from vsc.plan.nodes import Column, Node
from vsc.plan.types import STRING
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.windowed import KAFKA, WindowBounds, is_kafkas

if TYPE_CHECKING:
    from vsc.runtime.spark.connectors.kafka.avro import AvroForm
    from vsc.runtime.spark.connectors.kafka.registry.writers import Writer

__all__ = ["Layout", "Part", "key_format", "layout"]


@dataclass(frozen=True, slots=True)
class Part:
    """The key or the value of a record (`name`): its format, and the columns in it; `registered`: with a schema that is
    in a registry, once that is known by its `writer`. `bounds`: of the window behind a key."""

    name: Literal["key", "value"]
    form: str
    columns: tuple[Column, ...]
    avro: AvroForm | None
    registered: bool = False
    writer: Writer | None = None
    bounds: WindowBounds | None = None

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """The columns, and those of a window's bounds."""
        return self.columns if self.bounds is None else (*self.columns, *self.bounds.columns)


@dataclass(frozen=True, slots=True)
class Layout:
    """A record. Without `key`, the key columns are in the value, or there are none. `partition` and `offset` are the
    columns of a source that say where the record stands."""

    key: Part | None
    value: Part
    headers: Column | None
    partition: Column | None = None
    offset: Column | None = None

    @property
    def parts(self) -> list[Part]:
        """The key, if there is one, and the value."""
        return [part for part in (self.key, self.value) if part is not None]


def key_format(options: Options, key: Sequence[Column]) -> str:
    """How the key columns are kept in a record's key; 'none' if there are none, or if they are in its value."""
    given = options.get("key_format")
    if options.get("format") in facts_of(options.connector.kind).of_tables:
        return "none"
    if given is not None or not key:
        return "none" if given is None else str(given)
    return "string" if [column.type for column in key] == [STRING] else "json"


def layout(options: Options, node: Node, columns: Sequence[Column], use: Literal["read", "write"]) -> Layout:
    """The record of `columns` of a node. Raises AvroSchemaError for a schema that does not fit them, and
    ConfigurationError for a format or the name of a column that do not."""
    key = key_format(options, node.schema.key)
    beside = [_named(options, name, columns) for name in facts_of("kafka").beside]
    of_key = {c.name for c in node.schema.key} if key != "none" else set()
    keys = tuple(c for c in columns if c.name in of_key)
    values = tuple(c for c in columns if c.name not in of_key and c not in beside)

    def part(name: Literal["key", "value"], form: str, columns: tuple[Column, ...]) -> Part:
        if form == "string" and [column.type for column in columns] != [STRING]:  # the compiler looks, as above
            given = ", ".join(f"{column.name} {column.type}" for column in columns) or "no columns"
            raise ConfigurationError(
                f"{options.place}: the format 'string' is one column of type string, and the {name} has {given}",
                "use json",
            )
        written = options.get("format" if name == "value" else "key_format")
        written = options.get("inner_key_format") if written == WINDOWED else written
        if options.get("registry") is not None and written in REGISTERED:
            return Part(name, form, columns, None, registered=True)
        if form != "avro":
            return Part(name, form, columns, None)
        from vsc.runtime.spark.connectors.kafka.avro import avro_form  # needs fastavro

        return Part(name, form, columns, avro_form(options, name, node.name, columns, use))

    def key_part() -> Part:
        if key != WINDOWED:
            return part("key", key, keys)
        bounds, inner = _bounds(options, keys)
        given = options.get("inner_key_format")
        form = str(given) if given is not None else KAFKA if is_kafkas(inner) else "json"
        if form in ("avro", "protobuf") and options.get("registry") is None:
            raise ConfigurationError(f"{options.place}: a windowed key in {form} needs a registry", "give `registry`")
        if form == KAFKA and not is_kafkas(inner):
            raise ConfigurationError(
                f"{options.place}: Kafka has no serializer for the key of '{node.name}'",
                "write inner_key_format = 'json'",
            )
        return replace(part("key", form, inner), bounds=bounds)

    return Layout(key_part() if of_key else None, part("value", options.text("format"), values), *beside)


def _bounds(options: Options, key: tuple[Column, ...]) -> tuple[WindowBounds, tuple[Column, ...]]:
    """The window's bounds among the columns of a key, and the others. The compiler looks, unless a variable says so."""
    names = [column.name for column in key]
    if WINDOW_START not in names:
        raise ConfigurationError(f"{options.place}: a windowed key has a column {WINDOW_START!r}", "correct key_format")
    at, size = names.index(WINDOW_START), options.get("window_size")
    if options.get("windows") == SESSION:
        size = None
    elif size is None:
        raise ConfigurationError(f"{options.place} has no option 'window_size'", "add window_size = 1 minute")
    end = key[at + 1] if names[at + 1 :] == [WINDOW_END] else None
    return WindowBounds(key[at], end, None if size is None else int(size)), key[:at]


def _named(options: Options, option: str, columns: Sequence[Column]) -> Column | None:
    """The column that an option names."""
    name = options.get(option)
    if name is None:
        return None
    found = next((column for column in columns if column.name == name), None)
    if found is None:  # the compiler looks, unless a variable gives the name
        raise ConfigurationError(f"{options.place} has no column {name!r} for `{option}`", f"correct `{option}`")
    return found
