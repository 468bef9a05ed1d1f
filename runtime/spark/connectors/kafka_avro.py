"""Keys and values of Kafka's records in Avro, as columns of Spark; and the schemas that the options give, checked.

Not for Avro itself: that is `avro_schema` and `avro_codec`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from vsc.extras import required
from vsc.plan.nodes import Column as DeclaredColumn
from vsc.runtime.errors import AvroSchemaError, SinkError
from vsc.runtime.spark.ddl import ddl
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.source_columns import BAD
from vsc.runtime.values import arrow_type

with required("a Kafka connector in Avro"):
    from vsc.runtime.spark.connectors.avro_codec import AvroForm, decoded, encoded
    from vsc.runtime.spark.connectors.avro_schema import derived, is_record, loaded, misfit

__all__ = ["avro_column", "avro_form", "avro_value"]

Part = Literal["key", "value"]
_NOT_A_NAME = re.compile(r"^[0-9]|[^A-Za-z0-9_]")
_IDS = range(1 << 31)


def avro_form(
    options: Options, part: Part, node: str, columns: Sequence[DeclaredColumn], use: Literal["read", "write"]
) -> AvroForm:
    """How `columns` of a node stand in the key or the value of a record. Raises AvroSchemaError if they cannot."""
    prefix = "key_" if part == "key" else ""
    id, path = _id(options, f"{prefix}schema_id", use), options.get(f"{prefix}schema")
    if path is None:
        name = _NOT_A_NAME.sub("_", f"{node}_{part}")
        return AvroForm(derived(name, columns, nullable=part == "value"), tuple(columns), False, id)
    try:
        text = loaded(str(path))
    except ValueError as error:
        raise AvroSchemaError(f"{options.place}: the schema '{path}' {error}", "correct it, or its path") from error
    problem = misfit(text, columns, use)
    if problem is not None:
        raise AvroSchemaError(
            f"{options.place}: the schema '{path}' does not fit: {problem}", "correct the columns, or the schema"
        )
    return AvroForm(text, tuple(columns), not is_record(text), id)


def _id(options: Options, name: str, use: Literal["read", "write"]) -> int | str | None:
    """The schema id: variables make it text."""
    found = options.get(name)
    if found is None or (found == "any" and use == "read"):
        return found if found is None else "any"
    if not str(found).isdecimal() or int(found) not in _IDS:
        known = "a number, or 'any'" if use == "read" else "a number"
        raise AvroSchemaError(f"{options.place}: {name} is {known}, not {found!r}", f"write {name} = 1")
    return int(found)


def avro_column(form: AvroForm, values: Column) -> Column:
    """A struct of the columns in `values`, and of `BAD`: why they cannot be read."""
    fields = [(column.name, column.type) for column in form.columns]
    names = [name for name, _ in fields] + [BAD]

    def decode(found: pa.Array) -> pa.Array:
        columns, problems = decoded(form, found)
        return pa.StructArray.from_arrays([*columns, pa.array(problems, pa.string())], names)

    return _udf(decode, ddl([*fields, (BAD, "string")]))(values)


def avro_value(form: AvroForm, columns: Sequence[Column], place: str) -> Column:
    """The bytes of a record of the columns. SinkError, when it runs, for what its schema cannot hold."""
    if not columns:
        return F.lit(form.header)
    types = [arrow_type(column.type) for column in form.columns]

    def encode(*found: pa.Array) -> pa.Array:
        try:
            return encoded(form, [a if a.type == t else a.cast(t) for a, t in zip(found, types, strict=True)])
        except ValueError as error:
            raise SinkError(f"{place}: {error}", "correct the schema, or the rows") from None

    return _udf(encode, "binary")(*columns)


def _udf(work: Callable[..., pa.Array], made: str) -> Callable[..., Column]:
    found: Callable[..., Column] = arrow_udf(work, made)  # type: ignore[call-overload] # it reads the hints of `work`
    return found
