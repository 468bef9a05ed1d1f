"""Options that cannot be, when a run has replaced their variables, or a plan was not made by this compiler."""

from __future__ import annotations

import pytest

from vsc.plan.connectors.facts import Values
from vsc.plan.nodes import Connector
from vsc.plan.settings import problems
from vsc.runtime.errors import SinkError, SourceError
from vsc.runtime.spark.base.options import Options, refuse

FILES = {"path": "p", "format": "json"}
KAFKA = {"bootstrap_servers": "b:1", "topic": "t", "format": "json"}


@pytest.mark.parametrize(
    ("kind", "own", "spark", "message"),
    [
        ("kafka", KAFKA, {"minPartitions": "8"}, "'minPartitions' would split a topic partition between tasks"),
        ("kafka", KAFKA, {"maxRecordsPerPartition": "8"}, "would split a topic partition between tasks"),
        ("kafka", KAFKA, {"subscribe": "x"}, "'subscribe' is given by `topic`"),
        ("kafka", KAFKA, {"maxOffsets": "8"}, "'maxOffsets' is not an option of a Kafka source"),
        ("kafka", KAFKA, {"maxOffsetsPerTrigger": "x"}, "is a whole number of at least 1, not 'x'"),
        ("kafka", {**KAFKA, "topic": ""}, {}, "`topic` is empty"),
        ("files", {"path": " ", "format": "json"}, {}, "`path` is empty"),
        ("files", {"path": "p", "format": "csv"}, {"quote": "ab"}, "'quote' is a single ASCII character"),
        ("files", {"path": "p", "format": "json"}, {"checkpointLocation": "c"}, "is given to a run"),
        ("delta", {"path": "p"}, {"readChangeFeed": "maybe"}, "'readChangeFeed' is true or false, not 'maybe'"),
        (
            "delta",
            {"path": "p"},
            {"startingVersion": "lastest"},
            "is a version of the table or 'latest', not 'lastest'",
        ),
        ("delta", {"path": "p"}, {"startingTimestamp": "monday"}, "is a date or a time, not 'monday'"),
        ("delta", {"path": "p"}, {"startingTimestamp": "2026-99-99"}, "is a date or a time, not '2026-99-99'"),
        ("delta", {"path": "p"}, {"startingTimestamp": "2026-02-30"}, "is a date or a time, not '2026-02-30'"),
        ("delta", {"path": "p"}, {"startingTimestamp": "2026-02-03 25:00"}, "not '2026-02-03 25:00'"),
        ("delta", {"path": "p"}, {"startingVersion": "9" * 20}, "is a version of the table or 'latest', not"),
        ("delta", {"path": "p"}, {"maxFilesPerTrigger": "99999999999"}, "of at most 2,147,483,647, not '99999999999'"),
        ("delta", {"path": "p"}, {"maxBytesPerTrigger": "much"}, "is a number of bytes, not 'much'"),
        ("files", {"path": "p", "format": "json"}, {"maxFileAge": "old"}, "is a span of time, not 'old'"),
        ("files", {"path": "p", "format": "json"}, {"modifiedAfter": "2026-05-04"}, "not for a stream of files"),
        ("files", {"path": "p", "format": "csv"}, {"modifiedBefore": "2026-05-04"}, "not for a stream of files"),
        ("files", {"path": "p", "format": "json"}, {"pathGlobFilter": "["}, "a `[` without its `]`"),
        ("files", {"path": "p", "format": "json"}, {"timestampFormat": "YYYY"}, "has `YYYY`, which Spark does not"),
        ("files", {"path": "p", "format": "csv"}, {"dateFormat": "EEE"}, "has `EEE`, which Spark does not know"),
        ("files", {"path": "p", "format": "json"}, {"lineSep": ""}, "'lineSep' is empty"),
        (
            "files",
            {"path": "p", "format": "json"},
            {"maxFilesPerTrigger": 1, "maxBytesPerTrigger": 9},
            "an epoch is bounded by files or by bytes, not by both",
        ),
        *(
            ("files", {"path": "d/p", "format": "json"}, {"cleanSource": "archive", "sourceArchiveDir": folder}, told)
            for folder, told in (("", "'sourceArchiveDir' is empty"), ("d/p/x/", "in the folder that is read"))
        ),
        ("files", {"path": "p", "format": "json"}, {"maxFilesPerTrigger": "9" * 5000}, "of at most 2,147,483,647"),
        ("delta", {"path": "p"}, {"excludeRegex": "*.parquet"}, "a `*` that repeats nothing"),
        ("delta", {"path": "p"}, {"maxBytesPerTrigger": "0k"}, "is a number of bytes, not '0k'"),
        ("iceberg", {"path": "p"}, {"streaming-max-rows-per-micro-batch": "2147483648"}, "of at most 2,147,483,647"),
        ("kafka", KAFKA, {"maxTriggerDelay": "soon"}, "'maxTriggerDelay' is a span of time, not 'soon'"),
        ("kafka", KAFKA, {"kafkaConsumer.pollTimeoutMs": "1s"}, "is a number of milliseconds, not '1s'"),
        ("kafka", KAFKA, {"fetchOffset.numRetries": "x"}, "is a number of attempts, not 'x'"),
        (
            "kafka",
            KAFKA,
            {"minOffsetsPerTrigger": 10, "maxOffsetsPerTrigger": 5},
            "'minOffsetsPerTrigger' is 10, and an epoch takes at most 5 offsets",
        ),
        ("rate", {"rows_per_second": 1}, {"rampUpTime": "abc"}, "'rampUpTime' is a span of time, not 'abc'"),
        ("rate", {"rows_per_second": 1}, {"numPartitions": "2147483648"}, "of at most 2,147,483,647"),
        ("rate", {"rows_per_second": 2**63}, {}, "`rows_per_second` cannot be 9223372036854775808"),
        ("files", {"path": "p", "format": "json"}, {"cleanSource": "move"}, "'cleanSource' cannot be 'move'"),
        ("files", {"path": "p", "format": "json"}, {"cleanSource": "archive"}, "'archive' needs a folder"),
        ("files", {"path": "p", "format": "parquet"}, {"int96RebaseMode": "x"}, "'int96RebaseMode' cannot be 'x'"),
        (
            "delta",
            {"path": "p"},
            {"startingVersion": "1", "startingTimestamp": "2026-05-04"},
            "'startingVersion' says already where reading begins",
        ),
        ("iceberg", {"path": "p"}, {"stream-from-timestamp": "202x"}, "is milliseconds since 1970, not '202x'"),
        ("iceberg", {"path": "p"}, {"streaming-max-rows-per-micro-batch": "0"}, "is a whole number of at least 1"),
        ("iceberg", {"path": "p"}, {"streaming-skip-delete-snapshots": "y"}, "is true or false, not 'y'"),
        ("iceberg", {"path": "p"}, {"branch": "x"}, "'branch' is not an option of an Iceberg source"),
        ("files", {"path": "p", "format": "parquet"}, {"header": True}, "vsc does not support the option 'header'"),
        ("delta", {"path": "~/p"}, {}, "`path` begins with `~`, which only a shell replaces"),
        ("kafka", {**KAFKA, "bootstrap_servers": "b:port"}, {}, "`bootstrap_servers` is not a list of brokers"),
        ("iceberg", {"path": "p", "history": "scd2"}, {"x": "y"}, "'x' has no effect: a history is read once, whole"),
    ],
)
def test_a_source_is_refused(kind: str, own: dict[str, str], spark: dict[str, str], message: str) -> None:
    options = Options("source 's' (line 1)", Connector(kind, tuple(own.items()), tuple(spark.items())))
    with pytest.raises(SourceError) as caught:
        refuse(options, "source", SourceError)
    assert caught.value.message.startswith("source 's' (line 1): ")
    assert message in caught.value.message
    assert caught.value.help


@pytest.mark.parametrize(
    ("kind", "own", "spark", "message"),
    [
        ("kafka", KAFKA, {"kafka.acks": "1"}, "vsc sets 'kafka.acks' itself"),
        ("kafka", KAFKA, {"kafka.transactional.id": "x"}, "vsc sets 'kafka.transactional.id' itself"),
        ("kafka", KAFKA, {"acks": "1"}, "'acks' is not an option of a Kafka sink"),
        ("files", FILES, {"mode": "append"}, "'mode' has no effect on JSON files that a sink writes"),
        ("files", FILES, {"maxFilesPerTrigger": "1"}, "'maxFilesPerTrigger' has no effect on JSON files"),
        ("files", {**FILES, "format": "orc"}, {"header": True}, "'header' has no effect on ORC files"),
        ("files", FILES, {"codec": "gzip"}, "'codec' has no effect on JSON files"),
        ("files", FILES, {"writeNonAsciiCharacterAsCodePoint": 1}, "is true or false, not '1'"),
        ("files", FILES, {"partitionBy": "k"}, "'partitionBy' is given by `partition_by`"),
        ("files", FILES, {"compression": "zstd"}, "'compression' cannot be 'zstd' for JSON"),
        ("files", {**FILES, "format": "parquet"}, {"compression": "snapy"}, "cannot be 'snapy' for Parquet"),
        ("files", {**FILES, "format": "csv"}, {"header": "maybe"}, "'header' is true or false, not 'maybe'"),
        *(
            ("files", {**FILES, "format": "csv"}, {name: value}, told)
            for name, value, told in (
                ("sep", "", "'sep' cannot be ''"),
                ("delimiter", "\\", "'delimiter' cannot be '\\'"),
                ("quote", "ab", "'quote' is a single character, not 'ab'"),
                ("lineSep", "abc", "'lineSep' is at most two characters for CSV"),
                ("extension", ".csv", "'extension' is made of letters, not '.csv'"),
                ("encoding", "utf8", "'encoding' cannot be 'utf8'"),
                ("timestampFormat", "YYYY", "has `YYYY`, which Spark does not know"),
            )
        ),
        ("files", FILES, {"lineSep": ""}, "'lineSep' is empty"),
        ("files", FILES, {"maxRecordsPerFile": 0}, "'maxRecordsPerFile' is a whole number of at least 1, not '0'"),
        ("delta", {"path": "p"}, {"delta.x": "y"}, "quoted options are properties of a table that is created"),
    ],
)
def test_a_sink_is_refused(kind: str, own: dict[str, str], spark: dict[str, str], message: str) -> None:
    options = Options("the sink", Connector(kind, tuple(own.items()), tuple(spark.items())))
    with pytest.raises(SinkError) as caught:
        refuse(options, "sink", SinkError)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("kind", "own", "spark"),
    [
        ("kafka", KAFKA, {"failOnDataLoss": False, "maxOffsetsPerTrigger": 100, "kafka.linger.ms": "5"}),
        ("kafka", {**KAFKA, "bootstrap_servers": "${h}:${p}, SASL_SSL://[::1]:9092,b"}, {}),
        ("kafka", {**KAFKA, "topic": "${t}", "bootstrap_servers": "${b}"}, {"maxOffsetsPerTrigger": "${n}"}),
        ("delta", {"path": "p"}, {"maxBytesPerTrigger": "1g", "startingVersion": "1"}),
        ("delta", {"path": "p"}, {"startingVersion": "latest"}),
        *(
            ("delta", {"path": "p"}, {"startingTimestamp": time})
            for time in (
                "2026-05-04 10:00:00",
                "2026",
                "2026-5",
                "2026-5-4T",
                "2026-05-04T10:00:00.5Z",
                "2026-05-04 10:00 Europe/Berlin",
                "2026-05-04T10:00:00+02:00",
            )
        ),
        ("files", {"path": "p", "format": "json"}, {"cleanSource": "ARCHIVE", "sourceArchiveDir": "d"}),
        ("files", {"path": "p", "format": "json"}, {"maxFileAge": "36500d", "pathGlobFilter": "[!.]*"}),
        ("files", {"path": "p", "format": "json"}, {"cleanSource": "archive", "sourceArchiveDir": "pq"}),
        ("files", {"path": "p", "format": "json"}, {"cleanSource": "off", "sourceArchiveDir": "p/q"}),
        ("kafka", KAFKA, {"minOffsetsPerTrigger": 5, "maxOffsetsPerTrigger": 5, "maxTriggerDelay": "5m"}),
        ("rate", {"rows_per_second": 2**63 - 1}, {"rampUpTime": "5s", "numPartitions": 2**31 - 1}),
        ("files", {"path": "p", "format": "parquet"}, {"datetimeRebaseMode": "LEGACY"}),
        ("iceberg", {"path": "p"}, {"stream-from-timestamp": "0", "streaming-skip-delete-snapshots": True}),
        ("files", {"path": "p", "format": "csv"}, {"sep": r"\t", "header": True, "lineSep": r"\r"}),
        ("jdbc", {"url": "jdbc:postgresql://a:1,b:2/d?sslmode=require", "table": "t"}, {"password": "p"}),
    ],
)
def test_others_are_not(kind: str, own: Values, spark: Values) -> None:
    assert list(problems(kind, "source", own, spark)) == []


@pytest.mark.parametrize(
    ("own", "spark"),
    [
        (FILES, {"compression": "GZIP", "ignoreNullFields": False, "fs.s3a.endpoint": "e"}),
        (FILES, {"compression": "org.apache.hadoop.io.compress.ZStandardCodec"}),
        ({**FILES, "format": "csv"}, {"header": "${h}", "sep": ";", "compression": "${c}", "maxRecordsPerFile": 5}),
        ({**FILES, "format": "csv"}, {"comment": "#", "codec": "gzip"}),
        (FILES, {"writeNonAsciiCharacterAsCodePoint": True}),
        (FILES, {"lineSep": "abc", "encoding": "utf-16", "timestampFormat": "EEE yyyy"}),
        ({**FILES, "format": "csv"}, {"quote": "", "lineSep": "ab", "extension": "tsv", "sep": "||", "escape": "ü"}),
        ({**FILES, "format": "parquet"}, {"compression": "zstd", "parquet.block.size": "1"}),
        ({**FILES, "format": "${f}"}, {"compression": "zlib", "x": "y"}),
    ],
)
def test_what_a_files_sink_writes_is_not(own: Values, spark: Values) -> None:
    assert list(problems("files", "sink", own, spark)) == []


@pytest.mark.parametrize(
    ("own", "help"),
    [
        ({}, "write `bootstrap_servers = ...`, without quotes around the name"),
        ({"bootstrap_servers": "b:1"}, "remove 'kafka.bootstrap.servers'"),
    ],
)
def test_an_option_that_vsc_names_itself_is_not_removed_where_it_is_the_only_one(own: Values, help: str) -> None:
    found = list(problems("kafka", "source", {"topic": "t", "format": "json", **own}, {"kafka.bootstrap.servers": "b"}))
    assert [one.help for one in found] == [help]
