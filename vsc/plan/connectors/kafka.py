"""Facts of Kafka."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from vsc.plan.connectors.dataset import Dataset
from vsc.plan.connectors.debezium import DEBEZIUM, DEBEZIUM_OPTIONS, debezium_problems
from vsc.plan.connectors.facts import (
    MAX_AHEAD,
    VARIABLE,
    WITH_TIMESTAMP,
    ConnectorFacts,
    OptionSpec,
    Problem,
    Role,
    Values,
    Wrong,
    given,
)
from vsc.plan.connectors.place import Place
from vsc.plan.connectors.spark_values import wrong_age, wrong_number

__all__ = ["REGISTERED", "SESSION", "WINDOWED", "WINDOW_END", "WINDOW_START", "KafkaFacts"]

_PREFIX = "kafka."
_SPLITS = frozenset(("minpartitions", "maxrecordsperpartition"))
_SETS = frozenset(
    ("kafka.key.deserializer", "kafka.value.deserializer", "kafka.key.serializer", "kafka.value.serializer",
     "kafka.enable.auto.commit", "kafka.interceptor.classes")
)  # fmt: skip
"""What neither Spark nor vsc lets be set."""
_GUARANTEES = frozenset(
    ("kafka.transactional.id", "kafka.enable.idempotence", "kafka.acks", "kafka.request.required.acks",
     "kafka.max.in.flight.requests.per.connection", "kafka.max.in.flight", "kafka.group.id")
)  # fmt: skip
_OF_SPARK = frozenset(
    ("maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "failondataloss",
     "kafkaconsumer.polltimeoutms", "fetchoffset.numretries", "fetchoffset.retryintervalms", "groupidprefix")
)  # fmt: skip
"""The options of Spark, in lower case, that a source takes beside Kafka's own."""
_COUNTED = {
    "kafkaconsumer.polltimeoutms": "a number of milliseconds", "fetchoffset.numretries": "a number of attempts",
    "fetchoffset.retryintervalms": "a number of milliseconds",
}  # fmt: skip
_SERVER = re.compile(r"(?:\w+://)?(?:\[[^\s\]]+\]|[^\s,;/:\[\]]+)(?::\d{1,5})?")
_URL = re.compile(r"\d+|https?://\S+")
"""The URL of a registry; a variable alone stands for one."""
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_ISOLATION = ("read_committed", "read_uncommitted")
SUBJECTS = ("topic", "record", "topic-record")
"""What the subject of a value's schema is called after: see `subject_name_strategy`."""
REGISTERED = ("avro", "protobuf", "json", DEBEZIUM)
"""The formats whose schemas a registry has; of change events, in Avro or JSON."""
WINDOWED, SESSION = "windowed", "session"
"""The format of keys that hold a window, and what says that it is a session."""
WINDOW_START, WINDOW_END = "window_start", "window_end"
"""The columns of a window's bounds, as windowed tables have them."""
_SCHEMA_ID = OptionSpec("whole number or 'any'", "1")


class KafkaFacts(ConnectorFacts):
    """Topics of Kafka."""

    kind = "kafka"
    options: ClassVar[Mapping[str, OptionSpec]] = {
        "bootstrap_servers": OptionSpec("string", "'localhost:9092'"),
        "topic": OptionSpec("string", "'payments'"),
        "format": OptionSpec("string", "'json'", ("json", "avro", "protobuf", "string", "debezium")),
        "key_format": OptionSpec("string", "'string'", ("string", "json", "avro", "protobuf", WINDOWED, "none")),
        "headers": OptionSpec("string", "'headers'"),
        "partition": OptionSpec("string", "'part'"),
        "offset": OptionSpec("string", "'place'"),
        "schema": OptionSpec("string", "'payments.avsc'"),
        "schema_id": _SCHEMA_ID,
        "key_schema": OptionSpec("string", "'payments-key.avsc'"),
        "key_schema_id": _SCHEMA_ID,
        "registry": OptionSpec("string", "'${registry}'"),
        "registry_auth": OptionSpec("string", "'${registry_auth}'"),
        "subject_name_strategy": OptionSpec("string", "'topic'", SUBJECTS),
        "record_name": OptionSpec("string", "'com.example.Payment'"),
        "register": OptionSpec("true or false", "true"),
        "windows": OptionSpec("string", f"'{SESSION}'", ("time", SESSION)),
        "window_size": OptionSpec("duration", "1 minute"),
        "inner_key_format": OptionSpec("string", "'json'", ("kafka", "json", "avro", "protobuf")),
        "starting_offsets": OptionSpec("string", "'earliest'"),
        "group": OptionSpec("string", "'payments'"),
        **DEBEZIUM_OPTIONS,
        "max_ahead": MAX_AHEAD,
        "with_timestamp": WITH_TIMESTAMP,
    }
    required = ("bootstrap_servers", "topic", "format")
    source_only = ("partition", "offset", "starting_offsets", "group", "max_ahead", *DEBEZIUM_OPTIONS)
    sink_only = ("register",)
    beside = ("headers", "partition", "offset")
    of_tables = (DEBEZIUM,)
    removes = True
    stream_sink_only = ("with_timestamp",)
    main = "topic"
    own_names: ClassVar[Mapping[str, str]] = {
        "subscribe": "topic", "subscribepattern": "topic", "assign": "topic", "topic": "topic",
        "kafka.bootstrap.servers": "bootstrap_servers", "startingoffsets": "starting_offsets",
        "includeheaders": "headers", "kafka.auto.offset.reset": "starting_offsets",
    }  # fmt: skip
    client = (_PREFIX, "Kafka's client")

    def packages(self, role: Role, options: Values) -> tuple[str, ...]:
        """Tasks write with Kafka's client, and read with Spark's."""
        avro = "avro" in (options.get(name) for name in ("format", "key_format", "inner_key_format"))
        avro = avro or (options.get("format") == DEBEZIUM and "registry" in options)
        return ("confluent-kafka",) * (role == "sink") + ("fastavro",) * avro

    def wrong_value(self, name: str, value: str) -> Wrong:
        """Names of topics, and lists of brokers."""
        value = VARIABLE.sub("1", value)
        if name == "topic" and (not _TOPIC.fullmatch(value) or value in (".", "..")):
            return f"'{value}' is not a name for a topic", "a topic's name is made of letters, digits, `.`, `_` and `-`"
        if name == "registry" and not all(_URL.fullmatch(one.strip()) for one in value.split(",")):
            return f"`{name}` is not the URL of a schema registry", f"write `{name} = 'http://HOST:PORT'`"
        if name == "bootstrap_servers" and not all(_SERVER.fullmatch(one.strip()) for one in value.split(",")):
            return f"`{name}` is not a list of brokers", f"write `{name} = 'HOST:PORT, HOST:PORT'`"
        return None

    def wrong_name(self, role: Role, name: str, options: Values) -> Wrong:
        """Options that would break an order or a guarantee, and those that are not Kafka's."""
        lower = name.lower()
        if role == "source" and lower in _SPLITS:
            return (
                f"'{name}' would split a topic partition between tasks, and its order would be lost",
                "remove it; 'maxOffsetsPerTrigger' bounds an epoch",
            )
        if role == "sink" and lower in _GUARANTEES:
            return f"vsc sets '{name}' itself, to write each result once", f"remove '{name}'"
        if lower in _SETS:
            return f"'{name}' cannot be set: Kafka's records are read and written as bytes", f"remove '{name}'"
        of_spark = _OF_SPARK if role == "source" else frozenset[str]()
        if lower in of_spark or name.startswith(_PREFIX):
            return None
        help = f"Kafka's own options begin with '{_PREFIX}'"
        return f"'{name}' is not an option of a Kafka {role}", help + (
            f"; Spark's are {', '.join(sorted(of_spark))}" if of_spark else ""
        )

    def wrong_word(self, name: str, value: str) -> Wrong:
        """Which records are read, and how long is waited for them."""
        lower = name.lower()
        if lower == "maxtriggerdelay":
            return wrong_age(name, value)
        if lower in _COUNTED:
            return wrong_number(name, value, _COUNTED[lower], 3)
        if lower == "kafka.isolation.level" and value not in _ISOLATION:
            return f"'{name}' cannot be '{value}'", "write 'read_committed' or 'read_uncommitted'"
        return None

    def wrong_together(self, role: Role, options: Values, spark: Values) -> Iterator[Problem]:
        """Options of change events; bounds of an epoch that exclude each other."""
        yield from debezium_problems(role, options)
        found = given(spark)
        (name, least), (_, most) = (
            found.get(one, ("", "")) for one in ("minoffsetspertrigger", "maxoffsetspertrigger")
        )
        if role == "source" and least.isdecimal() and most.isdecimal() and int(least) > int(most):
            message = f"'{name}' is {least}, and an epoch takes at most {most} offsets"
            yield Problem(name, True, True, message, "write a smaller number than 'maxOffsetsPerTrigger'")

    def place(self, options: Mapping[str, str]) -> Place:
        """The topic, in the cluster of these brokers."""
        servers = sorted(server.strip() for server in options["bootstrap_servers"].split(","))
        return Place((self.kind, *servers), options["topic"], "topic")

    def dataset(self, options: Mapping[str, str], files: str) -> Dataset:
        """The topic, at the first of the brokers."""
        server = options["bootstrap_servers"].partition(",")[0].strip().rpartition("://")[2]
        port = "" if re.search(r"(:\d+|\})$", server) else ":9092"
        return Dataset(f"kafka://{server}{port}", options["topic"])

    def position(self, part: str, offset: int) -> dict[str, str | int]:
        """Topic, partition and offset; a source partition is called `TOPIC-PARTITION`, in the test driver nothing."""
        if not part:
            return {"offset": offset}
        topic, _, partition = part.rpartition("-")
        return {"topic": topic, "partition": int(partition), "offset": offset}
