"""The rows of a Kafka topic for Spark: declared columns from key and value, and what stage 0 needs beside them.

Guarantees: a topic partition is a source partition, read by one task in the order of its offsets; a record that does
not fit is marked with the reason, not lost; a null value is marked as such, and every record has its own time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Column as DeclaredColumn
from vsc.plan.nodes import Node, Source
from vsc.plan.types import STRING
from vsc.runtime.spark.connectors.kafka_client import PREFIX
from vsc.runtime.spark.ddl import ddl
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.source_columns import BAD, CORRUPT, DELETED, KAFKA_PART, OFFSET, PART, TIME

__all__ = ["SOURCE_OPTIONS", "kafka_rows", "key_format"]

_DEFAULTS = {"maxOffsetsPerTrigger": "500000", "kafka.isolation.level": "read_committed"}
"""An epoch is bounded, and what a transaction has not committed is not there: unless the source says otherwise."""
SOURCE_OPTIONS = {
    "maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "failondataloss",
    "kafkaconsumer.polltimeoutms", "fetchoffset.numretries", "fetchoffset.retryintervalms", "groupidprefix",
}  # fmt: skip
"""Spark's options, in lower case, that a source takes beside Kafka's own."""
_SHOWN = 80
_JSON = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "timeZone": "UTC"}


def key_format(options: Options, key: Sequence[DeclaredColumn]) -> str:
    """How the key columns are kept in a record's key; 'none' if there are none, or if they are in its value."""
    given = options.get("key_format")
    if given is not None or not key:
        return "none" if given is None else str(given)
    return "string" if [column.type for column in key] == [STRING] else "json"


def kafka_rows(spark: SparkSession, node: Node, options: Options) -> DataFrame:
    """See `Connector.rows`."""
    source = node.operation
    assert isinstance(source, Source)
    form = key_format(options, node.schema.key)
    of_key = {c.name for c in node.schema.key} if form != "none" else set()
    keys = [c for c in source.columns if c.name in of_key]
    values = [c for c in source.columns if c.name not in of_key]
    records = _records(spark, options)
    parsed = records.select(
        F.col("value").isNull().alias(DELETED), *map(F.col, ("topic", "partition", "offset", "timestamp")),
        _text("key").alias("key"), _text("value").alias("value"),
        _parsed(_object(_text("key"), keys) if form == "json" else _text("key"), form, keys).alias("of_key"),
        _parsed(_text("value"), options.text("format"), values).alias("of_value"),
        F.coalesce(*(_not_text(name) for name in (("key", "value") if keys else ("value",)))).alias("not_text"),
    )  # fmt: skip
    bad_key = F.col("key").isNotNull() & (F.col("of_key").isNull() | F.col("of_key")[CORRUPT].isNotNull())
    unread = F.when(F.col("of_value").isNull(), F.col("value")).otherwise(F.col("of_value")[CORRUPT])
    return parsed.select(
        *(F.col("of_key" if c in keys else "of_value")[c.name].alias(c.name) for c in source.columns),
        F.format_string(KAFKA_PART, "topic", "partition").alias(PART), F.col("offset").alias(OFFSET),
        F.unix_millis("timestamp").alias(TIME), F.col(DELETED),
        F.coalesce("not_text", F.when(bad_key, _misfit(keys)) if keys else F.lit(None)).alias(BAD),
        F.when(F.col("value").isNotNull(), unread).alias(CORRUPT),
    )  # fmt: skip


def _records(spark: SparkSession, options: Options) -> DataFrame:
    """The topic as Spark reads it."""
    own = {
        "subscribe": options.text("topic"),
        f"{PREFIX}bootstrap.servers": options.text("bootstrap_servers"),
        "startingOffsets": str(options.get("starting_offsets") or "earliest"),
    }
    given = {name.lower() for name in options.spark}
    defaults = {name: value for name, value in _DEFAULTS.items() if name.lower() not in given}
    return spark.readStream.format("kafka").options(**defaults, **options.spark, **own).load()


def _text(name: str) -> Column:
    """The bytes of a record's key or value as text; null where they are no UTF-8."""
    return F.try_validate_utf8(F.col(name).cast("string"))


def _not_text(name: str) -> Column:
    return F.when(F.col(name).isNotNull() & _text(name).isNull(), F.lit(f"its {name} is not UTF-8 text"))


def _object(text: Column, keys: Sequence[DeclaredColumn]) -> Column:
    """A key in JSON as an object: that of a single column may be the bare value."""
    if len(keys) != 1:
        return text
    bare = F.concat(F.lit("{" + json.dumps(keys[0].name) + ":"), text, F.lit("}"))
    return F.when(text.rlike(r"^\s*\{"), text).otherwise(bare)


def _parsed(text: Column, form: str, columns: Sequence[DeclaredColumn]) -> Column:
    """A struct of the columns, and of `CORRUPT`: the text where it cannot be read."""
    fields: list[tuple[str, object]] = [*((c.name, c.type) for c in columns), (CORRUPT, "string")]
    if form == "json":
        return F.from_json(text, ddl(fields), _JSON)
    return F.struct(*(text.alias(c.name) for c in columns), F.lit(None).cast("string").alias(CORRUPT))


def _misfit(keys: Sequence[DeclaredColumn]) -> Column:
    key = F.col("key")
    shown = F.when(F.length(key) > _SHOWN, F.concat(F.left(key, F.lit(_SHOWN - 3)), F.lit("..."))).otherwise(key)
    wanted = ddl((c.name, c.type) for c in keys).replace("`", "")
    return F.concat(F.lit("its key '"), shown, F.lit(f"' is not JSON for ({wanted})"))
