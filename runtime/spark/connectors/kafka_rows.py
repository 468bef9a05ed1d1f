"""The rows of a Kafka topic for Spark: declared columns from key and value, and what stage 0 needs beside them.

Guarantees: a topic partition is a source partition, read by one task in the order of its offsets; a record that does
not fit is marked with the reason, not lost; a null value is marked as such, and every record has its own time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Column as DeclaredColumn
from vsc.plan.nodes import Node
from vsc.plan.types import MapType
from vsc.runtime.spark.connectors.file_rows import shown
from vsc.runtime.spark.connectors.kafka_client import PREFIX
from vsc.runtime.spark.connectors.kafka_layout import Part, layout
from vsc.runtime.spark.ddl import ddl
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.plain_json import plain_pattern
from vsc.runtime.spark.source_columns import BAD, CORRUPT, DELETED, JSON, OFFSET, PART, PART_DIGITS, TIME

if TYPE_CHECKING:
    from vsc.runtime.spark.connectors.kafka_avro import AvroForm

__all__ = ["SOURCE_OPTIONS", "from_json", "kafka_rows", "plain_columns"]

_DEFAULTS = {
    "maxOffsetsPerTrigger": "500000",
    "kafka.isolation.level": "read_committed",
    "kafka.max.poll.records": "10000",
}
"""An epoch is bounded; what a transaction has not committed is not there; and Spark, which asks the broker for the
offsets of a partition with each poll, polls seldom: unless the source says otherwise."""
SOURCE_OPTIONS = {
    "maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "failondataloss",
    "kafkaconsumer.polltimeoutms", "fetchoffset.numretries", "fetchoffset.retryintervalms", "groupidprefix",
}  # fmt: skip
"""Spark's options, in lower case, that a source takes beside Kafka's own."""
_JSON = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "timeZone": "UTC"}


def kafka_rows(spark: SparkSession, node: Node, options: Options) -> DataFrame:
    """See `Connector.rows`."""
    columns = node.source.columns
    record = layout(options, node, columns, "read")
    parts = [_TextPart(p) if p.avro is None else _AvroPart(p.name, p.avro) for p in record.parts]
    headers = [] if record.headers is None else [_headers(record.headers).alias("of_headers")]
    texts = _records(spark, options).select(
        F.col("value").isNull().alias(DELETED), *map(F.col, ("partition", "offset", "timestamp")),
        *(column for part in parts for column in part.texts()), *headers,
    )  # fmt: skip
    parsed = texts.select("*", *(part.parsed().alias(f"of_{part.name}") for part in parts))
    place = {c.name: F.col(f"of_{part.name}")[c.name] for part in record.parts for c in part.columns}
    if record.headers is not None:
        place[record.headers.name] = F.col("of_headers")
    return parsed.select(
        *(place[c.name].alias(c.name) for c in columns),
        _part(options.text("topic")).alias(PART), F.col("offset").alias(OFFSET),
        F.unix_millis("timestamp").alias(TIME), F.col(DELETED),
        F.coalesce(*(part.problem() for part in parts)).alias(BAD), parts[-1].corrupt().alias(CORRUPT),
        parts[-1].plain().alias(JSON),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _TextPart:
    """How the key or the value is read from text."""

    part: Part

    @property
    def name(self) -> str:
        return self.part.name

    def texts(self) -> list[Column]:
        """What is made of the bytes: the text, why it is not text, and whether it is plain."""
        name = self.part.name
        raw, text = F.col(name), F.try_validate_utf8(F.col(name).cast("string"))  # null if the bytes are not UTF-8
        not_text = F.when(raw.isNotNull() & text.isNull(), F.lit(f"its {name} is not UTF-8 text"))
        pattern = _plain_pattern(self.part)
        plain = F.lit(False) if pattern is None else F.coalesce(text.rlike(pattern), F.lit(False))
        return [text.alias(name), not_text.alias(f"{name}_not_text"), plain.alias(f"{name}_plain")]

    def parsed(self) -> Column:
        """A struct of the columns and of `CORRUPT`, of a row of `texts`; null for what is plain."""
        text, form, columns = F.col(self.part.name), self.part.form, self.part.columns
        if _plain_pattern(self.part) is not None:
            text = F.when(~F.col(f"{self.part.name}_plain"), text)
        return _parsed(_object(text, columns) if self._is_json_key else text, form, columns)

    def plain(self) -> Column:
        """The text if it is plain, which is still to be read."""
        return F.when(F.col(f"{self.part.name}_plain"), F.col(self.part.name))

    def problem(self) -> Column:
        """Why the bytes of a row of `parsed` cannot be read, if it has to be said here."""
        not_text = F.col(f"{self.part.name}_not_text")
        if not self._is_json_key:
            return not_text
        bad = F.col("key").isNotNull() & (F.col("of_key").isNull() | F.col("of_key")[CORRUPT].isNotNull())
        return F.coalesce(not_text, F.when(bad, _misfit(self.part.columns)))

    def corrupt(self) -> Column:
        """The text that is not JSON of the columns; of a row of `parsed`."""
        of, text = F.col(f"of_{self.part.name}"), F.col(self.part.name)
        unread = text.isNotNull() & ~F.col(f"{self.part.name}_plain")
        return F.when(unread, F.when(of.isNull(), text).otherwise(of[CORRUPT]))

    @property
    def _is_json_key(self) -> bool:
        return self.part.name == "key" and self.part.form == "json"


@dataclass(frozen=True, slots=True)
class _AvroPart:
    """How the key or the value is read from Avro; see `_TextPart`."""

    name: str
    avro: AvroForm

    def texts(self) -> list[Column]:
        return [F.col(self.name)]

    def parsed(self) -> Column:
        from vsc.runtime.spark.connectors.kafka_avro import avro_column

        return avro_column(self.avro, F.col(self.name))

    def plain(self) -> Column:
        return F.lit(None).cast("string")

    def problem(self) -> Column:
        return F.concat(F.lit(f"its {self.name} is not of its Avro schema: "), F.col(f"of_{self.name}")[BAD])

    def corrupt(self) -> Column:
        return F.lit(None).cast("string")


def _part(topic: str) -> Column:
    """What `kafka_part` gives. (Spark's `format_string` takes as long as the rest of a record.)"""
    number = F.col("partition").cast("string")
    digits = F.lpad(number, F.greatest(F.length(number), F.lit(PART_DIGITS)), F.lit("0"))
    return F.concat(F.lit(f"{topic}-"), digits)


def plain_columns(node: Node, options: Options) -> Sequence[DeclaredColumn]:
    """See `Connector.plain_columns`."""
    value = layout(options, node, node.source.columns, "read").value
    return value.columns if _plain_pattern(value) is not None else ()


def _plain_pattern(part: Part) -> str | None:
    """What the plain texts of a record's value look like; None where there are none."""
    return plain_pattern(part.columns) if part.form == "json" and part.name == "value" else None


def _headers(column: DeclaredColumn) -> Column:
    """The headers as the column has them: all, or in a map the last one of each name."""
    found = F.col("headers")
    if not isinstance(column.type, MapType):
        return found
    names = F.array_distinct(F.transform(found, lambda one: one["key"]))

    def last(name: Column) -> Column:
        return F.element_at(F.filter(found, lambda one: one["key"] == name), -1)["value"]

    return F.map_from_arrays(names, F.transform(names, last))


def _records(spark: SparkSession, options: Options) -> DataFrame:
    """The topic as Spark reads it."""
    own = {
        "subscribe": options.text("topic"),
        f"{PREFIX}bootstrap.servers": options.text("bootstrap_servers"),
        "startingOffsets": str(options.get("starting_offsets") or "earliest"),
        "includeHeaders": str(options.get("headers") is not None).lower(),
    }
    given = {name.lower() for name in options.spark}
    defaults = {name: value for name, value in _DEFAULTS.items() if name.lower() not in given}
    return spark.readStream.format("kafka").options(**defaults, **options.spark, **own).load()


def _object(text: Column, keys: Sequence[DeclaredColumn]) -> Column:
    """A key in JSON as an object: that of a single column may be the bare value."""
    if len(keys) != 1:
        return text
    bare = F.concat(F.lit("{" + json.dumps(keys[0].name) + ":"), text, F.lit("}"))
    return F.when(text.rlike(r"^\s*\{"), text).otherwise(bare)


def from_json(text: Column, columns: Sequence[DeclaredColumn]) -> Column:
    """A struct of the columns, and of `CORRUPT`: the text where it cannot be read."""
    fields: list[tuple[str, object]] = [*((c.name, c.type) for c in columns), (CORRUPT, "string")]
    return F.from_json(text, ddl(fields), _JSON)


def _parsed(text: Column, form: str, columns: Sequence[DeclaredColumn]) -> Column:
    """A struct of the columns, and of `CORRUPT`: the text where it cannot be read."""
    if form == "json":
        return from_json(text, columns)
    return F.struct(*(text.alias(c.name) for c in columns), F.lit(None).cast("string").alias(CORRUPT))


def _misfit(keys: Sequence[DeclaredColumn]) -> Column:
    wanted = ddl((c.name, c.type) for c in keys).replace("`", "")
    return F.concat(F.lit("its key '"), shown(F.col("key")), F.lit(f"' is not JSON for ({wanted})"))
