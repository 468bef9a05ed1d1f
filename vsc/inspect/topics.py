"""The source statement of a topic of Kafka whose schemas are in a registry. It asks the registry, not Kafka."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vsc.extras import required
from vsc.inspect.model import InspectError, Kind
from vsc.plan.connectors.debezium import DEBEZIUM
from vsc.plan.nodes import Column, Connector
from vsc.plan.types import quoted_name

__all__ = ["TopicWanted", "topic_statement"]


@dataclass(frozen=True, slots=True)
class TopicWanted:
    """A registry, and what the user has decided of the source; None: as the schemas say."""

    url: str
    auth: str | None = None
    name: str | None = None
    kind: Kind | None = None
    record: str | None = None
    key: tuple[str, ...] = ()


def topic_statement(topic: str, wanted: TopicWanted) -> str:
    """The statement that reads a topic. InspectError if the registry has no schema of its values, or does not say."""
    with required("vsc inspect --registry", "registry"):
        from vsc.runtime.errors import SourceError, VscRuntimeError
        from vsc.runtime.spark.base.options import Options
        from vsc.runtime.spark.connectors.kafka.registry.client import Registry
        from vsc.runtime.spark.connectors.kafka.registry.columns import Columns, columns_of, columns_of_rows

    given = (("registry", wanted.url), *((("registry_auth", wanted.auth),) if wanted.auth is not None else ()))
    try:
        registry = Registry(Options("vsc inspect", Connector("kafka", given, ()), of_command=True), SourceError)
        value, key = registry.newest(f"{topic}-value"), registry.newest(f"{topic}-key")
        if value is None:
            raise InspectError(
                f"the schema registry at {wanted.url} has no subject {topic}-value",
                "name a topic whose values have a schema under its own name",
            )
        rows = None if wanted.kind == "stream" else columns_of_rows(value.schema)
        columns = columns_of(value.schema, wanted.record) if rows is None else rows
        keys = Columns(()) if key is None else columns_of(key.schema)
    except VscRuntimeError as error:
        raise InspectError(error.message, error.help) from None
    except ValueError as error:
        raise InspectError(f"the schema of {topic}-value {error}", "name a message with --record") from None
    names = {column.name for column in keys.columns} if rows is None else set()
    of_key = "none of its key" if key is None else f"version {key.version} of its key (id {key.id})"
    lines = [f"-- schemas of {topic}: version {value.version} of its value (id {value.id}), {of_key}"]
    lines += [f"-- {name} is not read: it is {why}" for name, why in {**keys.left_out, **columns.left_out}.items()]
    declared = [
        *(keys.columns if rows is None else ()),
        *(column for column in columns.columns if column.name not in names),
    ]
    lines += [f"-- {column.name} of the value is not read: the key has it" for column in columns.columns
              if column.name in names]  # fmt: skip
    form = value.schema.kind if rows is None else DEBEZIUM
    options = ["bootstrap_servers = '${brokers}'", f"topic = '{topic}'", f"format = '{form}'"]
    if key is not None:
        options += [f"key_format = '{key.schema.kind}'"] if rows is None else []
        clause = [column.name for column in keys.columns]
    else:
        clause = list(wanted.key)
        if clause:
            options += ["key_format = 'none'"] if rows is None else []
        else:
            lines.append("-- no schema says what the key is: if it is text, add a column and `key` for it")
    if wanted.record is not None:
        options.append(f"record_name = '{wanted.record}'")
    options.append("registry = '${registry}'")
    if wanted.auth is not None:
        options.append("registry_auth = '${registry_auth}'")
    kind = wanted.kind or ("stream" if rows is None else "table")
    name = wanted.name or re.sub(r"\W+", "_", topic)
    lines += [f"{kind} {quoted_name(name)} (", *_declared(declared), ")", "from kafka ("]
    lines += [f"  {option}{',' * (i + 1 < len(options))}" for i, option in enumerate(options)]
    lines.append(")" + ("" if clause else ";"))
    if clause:
        lines.append(f"key {', '.join(map(quoted_name, clause))};")
    return "\n".join(lines) + "\n"


def _declared(columns: list[Column]) -> list[str]:
    widest = max((len(quoted_name(column.name)) for column in columns), default=0)
    return [
        f"  {quoted_name(column.name):<{widest}} {column.type}{',' * (i + 1 < len(columns))}"
        for i, column in enumerate(columns)
    ]
