"""What is wrong with a connector's options, as far as they alone tell: without files, servers and tables.

The compiler asks for what is written, a run again for what its variables say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal as Choice
from typing import NamedTuple

__all__ = [
    "CELL_OPTIONS",
    "CELL_TEXTS",
    "FILE_OPTIONS",
    "HOST",
    "LINE_OPTIONS",
    "PARAMETERS",
    "TABLE_NAME",
    "TEXT_FORMATS",
    "URL",
    "VARIABLE",
    "Problem",
    "Scalar",
    "Values",
    "cell_problems",
    "of_files",
    "problems",
]

Scalar = str | int | float | bool
Values = Mapping[str, Scalar]
"""Options by name, as written: a text may hold variables."""

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A variable inside a text."""

TABLE_NAME = re.compile(r"[^.`]+|`(?:[^`]|``)+`")
"""A part of the name of a lake table."""

URL = re.compile(r"jdbc:postgresql:(?://(?P<hosts>[^/?]*)/?)?(?P<database>[^?/]*)(?:\?(?P<parameters>.*))?")
"""A database, as PostgreSQL's JDBC driver takes it."""
HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*)(?::(?P<port>\d{1,5}))?")
PARAMETERS = {
    "user": "user", "password": "password", "sslmode": "sslmode", "sslrootcert": "sslrootcert", "sslcert": "sslcert",
    "sslkey": "sslkey", "sslpassword": "sslpassword", "channelbinding": "channel_binding",
    "applicationname": "application_name", "connecttimeout": "connect_timeout", "options": "options",
    "gssencmode": "gssencmode", "kerberosservername": "krbsrvname", "currentschema": "currentSchema",
}  # fmt: skip
"""The driver's parameters, in lower case, and what libpq calls them."""

TEXT_FORMATS = frozenset(("timestampformat", "dateformat"))
"""Spark's options, in lower case, for how times are written."""
FILE_OPTIONS = frozenset(
    ("maxfilespertrigger", "maxbytespertrigger", "latestfirst", "filenameonly", "maxfileage", "cleansource",
     "sourcearchivedir", "pathglobfilter", "modifiedbefore", "modifiedafter", "recursivefilelookup",
     "ignoremissingfiles")
)  # fmt: skip
"""Spark's options, in lower case, that say which files are read, not how."""
LINE_OPTIONS = frozenset(("linesep", "multiline"))
"""Spark's options for JSON, in lower case, that say where records end."""
CELL_OPTIONS = frozenset(("sep", "delimiter", "quote", "escape", "nullvalue", "header", "linesep"))
"""Spark's options for CSV that are honoured, in lower case; those of Spark's file source go on to Spark."""

_OF_TEXT: Mapping[Scalar | None, frozenset[str]] = {"csv": CELL_OPTIONS, "json": LINE_OPTIONS}

_TEXTS = frozenset(
    ("path", "topic", "table", "url", "bootstrap_servers", "group", "headers", "schema", "key_schema", "valid_from",
     "valid_to")
)  # fmt: skip
"""Options of vsc's own that name something."""
_NUMBERS = frozenset(
    ("maxfilespertrigger", "maxbytespertrigger", "maxoffsetspertrigger", "minoffsetspertrigger", "numpartitions")
)
_FLAGS = frozenset(
    ("failondataloss", "latestfirst", "filenameonly", "recursivefilelookup", "multiline", "mergeschema",
     "ignoremissingfiles")
)  # fmt: skip
_FLAGS_OF_DELTA = frozenset(("readchangefeed", "ignoredeletes", "ignorechanges", "skipchangecommits"))
_SIZES = frozenset(("delta",))
"""The connectors whose 'maxBytesPerTrigger' may have a unit, as in '1g'."""
_RUNS = {
    "checkpointlocation": "`vsc run --checkpoint DIR`",
    "trigger": "`vsc run --trigger`", "processingtime": "`vsc run --trigger`",
}  # fmt: skip
"""Options of a whole query, which a run is given."""
_BAD_ROWS = frozenset(("mode", "columnnameofcorruptrecord", "badrecordspath", "ignorecorruptfiles"))
_SPLITS = frozenset(("minpartitions", "maxrecordsperpartition"))
_PREFIX = "kafka."
_OF_KAFKA = {
    "subscribe": "topic", "subscribepattern": "topic", "assign": "topic", "topic": "topic",
    "kafka.bootstrap.servers": "bootstrap_servers", "startingoffsets": "starting_offsets",
    "includeheaders": "headers", "kafka.auto.offset.reset": "starting_offsets",
}  # fmt: skip
_OWN = {
    "files": {"path": "path", "paths": "path", "format": "format"},
    "kafka": _OF_KAFKA,
    "rate": {"rowspersecond": "rows_per_second"},
}
"""Spark's options that vsc has its own for."""
_SETS = frozenset(
    ("kafka.key.deserializer", "kafka.value.deserializer", "kafka.key.serializer", "kafka.value.serializer",
     "kafka.enable.auto.commit", "kafka.interceptor.classes")
)  # fmt: skip
"""What neither Spark nor vsc lets be set."""
_GUARANTEES = frozenset(
    ("kafka.transactional.id", "kafka.enable.idempotence", "kafka.acks", "kafka.request.required.acks",
     "kafka.max.in.flight.requests.per.connection", "kafka.max.in.flight", "kafka.group.id")
)  # fmt: skip
_SOURCE_OPTIONS = {
    "kafka": frozenset(
        ("maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "failondataloss",
         "kafkaconsumer.polltimeoutms", "fetchoffset.numretries", "fetchoffset.retryintervalms", "groupidprefix")
    ),
    "delta": frozenset(
        ("readchangefeed", "startingversion", "startingtimestamp", "maxfilespertrigger", "maxbytespertrigger",
         "ignoredeletes", "ignorechanges", "skipchangecommits", "excluderegex", "failondataloss")
    ),
    "iceberg": frozenset(
        ("stream-from-timestamp", "streaming-skip-delete-snapshots", "streaming-skip-overwrite-snapshots",
         "streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch")
    ),
}  # fmt: skip
"""The options of Spark, in lower case, that a source takes; of Kafka, beside Kafka's own."""
_SOURCES = {"delta": "a Delta source", "iceberg": "an Iceberg source"}
_SERVER = re.compile(r"(?:\w+://)?[^\s,;/]+")
_POSTGRES = "jdbc:postgresql:"
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_ISOLATION = ("read_committed", "read_uncommitted")
CELL_TEXTS = {r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\r\n": "\r\n"}
"""What a topology's text, which has no escapes of its own, can only say like this; Spark reads ``\\t`` so as well."""


class Problem(NamedTuple):
    """An option that cannot be as it is. `of_value` is false if it is the option itself that cannot be."""

    option: str
    quoted: bool
    of_value: bool
    message: str
    help: str


def problems(kind: str, role: Choice["source", "sink"], options: Values, spark: Values) -> Iterator[Problem]:
    """What is wrong with the options of a connector: its own, and Spark's."""
    for name, value in options.items():
        if (problem := _own_value(kind, role, name, value)) is not None:
            yield Problem(name, False, True, *problem)
    for name, value in spark.items():
        problem = _name(kind, role, name, options)
        if problem is not None:
            yield Problem(name, True, False, *problem)
        elif role == "source" and (problem := _value(kind, name, _text(value))) is not None:
            yield Problem(name, True, True, *problem)
    if kind == "files" and role == "source" and options.get("format") == "csv":
        yield from cell_problems(spark)


def of_files(name: str) -> bool:
    """Whether an option of Spark says which files are read, or is one of Hadoop's for their file system."""
    return name.lower() in FILE_OPTIONS or "." in name


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _own_value(kind: str, role: Choice["source", "sink"], name: str, value: Scalar) -> tuple[str, str] | None:
    """What is wrong with an option of vsc's own."""
    if name in ("schema_id", "key_schema_id") and type(value) is int and not 0 <= value < 1 << 31:
        return f"`{name}` cannot be {value}", "write the id of the schema, a number of 0 or more"
    if not isinstance(value, str):
        return None
    if name in _TEXTS and not value.strip():
        return f"`{name}` is empty", f"name one: `{name} = '...'`"
    if name == "url":
        return _url(value)
    value = VARIABLE.sub("x", value)
    if name == "path" and role == "sink" and {*"*?"} & {*value}:
        return "a sink writes to one folder, and this is a pattern for several", "name a folder"
    if name == "topic" and (not _TOPIC.fullmatch(value) or value in (".", "..")):
        return f"'{value}' is not a name for a topic", "a topic's name is made of letters, digits, `.`, `_` and `-`"
    if name == "bootstrap_servers" and not all(_SERVER.fullmatch(one.strip()) for one in value.split(",")):
        return f"`{name}` is not a list of brokers", f"write `{name} = 'HOST:PORT, HOST:PORT'`"
    if name == "table" and kind in _SOURCES and ".".join(TABLE_NAME.findall(value)) != value:
        return f"'{value}' is not the name of a table", "write TABLE, SCHEMA.TABLE or CATALOG.SCHEMA.TABLE"
    return None


def _url(url: str) -> tuple[str, str] | None:
    """What is wrong with the URL of a database. No message shows it: it may hold a password."""
    known = VARIABLE.split(url)[0]
    if known != url:
        wrong = not (known.startswith(_POSTGRES) or _POSTGRES.startswith(known))
    else:
        wrong = URL.fullmatch(url) is None
    if wrong:
        help = "write url = 'jdbc:postgresql://HOST:PORT/DATABASE'; of databases vsc knows PostgreSQL alone"
        return "the url is not one of PostgreSQL", help
    matched = URL.fullmatch(url)
    if matched is None or known != url:
        return None
    if not all(HOST.fullmatch(one) for one in (matched["hosts"] or "").split(",")):
        return "the url has a host that cannot be read", "write HOST or HOST:PORT"
    names = [pair.partition("=")[0] for pair in (matched["parameters"] or "").split("&") if pair]
    return next((problem for name in names if (problem := _parameter(name)) is not None), None)


def _parameter(name: str) -> tuple[str, str] | None:
    """What is wrong with a parameter of a connection to a database, whatever its value."""
    if name.lower() in PARAMETERS:
        return None
    help = "remove it (vsc connects with libpq, not with the JDBC driver); it knows " + ", ".join(sorted(PARAMETERS))
    return f"vsc does not support the connection parameter '{name}'", help


def _name(kind: str, role: Choice["source", "sink"], name: str, options: Values) -> tuple[str, str] | None:
    """What is wrong with an option of Spark, whatever its value."""
    lower = name.lower()
    if lower in _RUNS:
        return f"'{name}' is given to a run: {_RUNS[lower]}", f"remove '{name}'"
    if (own := _OWN.get(kind, {}).get(lower)) is not None:
        return f"'{name}' is given by `{own}`", f"remove '{name}'"
    if kind == "jdbc":
        return _parameter(name)
    if kind == "kafka":
        return _name_for_kafka(role, name)
    if kind == "files" and role == "source":
        return _name_for_files(name, options.get("format"))
    if kind not in _SOURCES:
        return None
    if role == "sink":
        if options.get("create", False) is not False and options["create"] != "false":
            return None
        message = f"quoted options are properties of a table that is created, such as '{name}'"
        return message, "add create = true, or remove them"
    if "history" in options:
        return f"'{name}' has no effect: a history is read once, whole", f"remove '{name}'"
    if lower not in _SOURCE_OPTIONS[kind]:
        known = ", ".join(sorted(_SOURCE_OPTIONS[kind]))
        return f"'{name}' is not an option of {_SOURCES[kind]}", f"those that there are: {known}"
    return None


def _name_for_kafka(role: Choice["source", "sink"], name: str) -> tuple[str, str] | None:
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
    of_spark = _SOURCE_OPTIONS["kafka"] if role == "source" else frozenset[str]()
    if lower in of_spark or name.startswith(_PREFIX):
        return None
    help = f"Kafka's own options begin with '{_PREFIX}'"
    return f"'{name}' is not an option of a Kafka {role}", help + (
        f"; Spark's are {', '.join(sorted(of_spark))}" if of_spark else ""
    )


def _name_for_files(name: str, form: Scalar | None) -> tuple[str, str] | None:
    lower = name.lower()
    if lower in _BAD_ROWS:
        return (
            f"'{name}' would lose rows without a word",
            f"remove '{name}': what happens to rows that cannot be read is said by `vsc run --on-bad-row`",
        )
    if form not in _OF_TEXT or of_files(name) or lower in (known := _OF_TEXT[form] | TEXT_FORMATS | FILE_OPTIONS):
        return None
    return (
        f"vsc does not support the option '{name}' for {str(form).upper()}",
        "those it can are " + ", ".join(sorted(known)),
    )


def _value(kind: str, name: str, value: str) -> tuple[str, str] | None:
    """What is wrong with the value of an option of Spark for a source."""
    lower = name.lower()
    if VARIABLE.search(value):
        return None
    if lower in _NUMBERS and not (kind in _SIZES and lower == "maxbytespertrigger"):
        if not (value.isdecimal() and int(value) > 0):
            return f"'{name}' is a whole number of at least 1, not '{value}'", "write a larger number"
    elif (lower in _FLAGS or (kind == "delta" and lower in _FLAGS_OF_DELTA)) and value.lower() not in ("true", "false"):
        return f"'{name}' is true or false, not '{value}'", "write 'true' or 'false'"
    elif lower == "kafka.isolation.level" and value not in _ISOLATION:
        return f"'{name}' cannot be '{value}'", "write 'read_committed' or 'read_uncommitted'"
    elif kind == "files" and lower == "cleansource" and value.lower() not in ("off", "delete", "archive"):
        return f"'{name}' cannot be '{value}'", "write 'off', 'archive' or 'delete'"
    return None


def cell_problems(spark: Values) -> Iterator[Problem]:
    """What is wrong with the options that say how a CSV file is written."""
    found = {name.lower(): (name, _written_out(value)) for name, value in spark.items()}
    for name, least in (("sep", 1), ("delimiter", 1), ("quote", 0), ("escape", 0)):
        written, value = found.get(name, (name, None))
        if value is not None and not (least <= len(value) <= 1 and value.isascii() and value not in ("\n", "\r")):
            yield Problem(written, True, True, f"'{written}' is a single ASCII character, not {value!r}",
                          f"write one, such as `'{written}' = ';'`")  # fmt: skip
    separator = found.get("sep", found.get("delimiter"))
    if separator is not None and separator[1] is not None:
        others = [found.get("quote", ("", '"'))[1], found.get("escape", ("", ""))[1]]
        if separator[1] in others:
            message = f"{separator[1]!r} cannot separate cells and quote or escape as well"
            yield Problem(separator[0], True, True, message, "choose another character for one of them")
    name, ends = found.get("linesep", ("", "\n"))
    if ends not in (None, "\n", "\r", "\r\n"):
        yield Problem(name, True, True, f"'{name}' is '\\n', '\\r' or '\\r\\n' for CSV, not {ends!r}",
                      f"write `'{name}' = '\\n'`")  # fmt: skip
    name, header = found.get("header", ("", None))
    if header is not None and header.lower() != "true":
        yield Problem(name, True, True, "CSV columns go by the header, it cannot be switched off", f"remove '{name}'")


def _written_out(value: Scalar) -> str | None:
    text = _text(value)
    return None if VARIABLE.search(text) else CELL_TEXTS.get(text, text)
