"""Kafka's client for Python: a connector's options as librdkafka takes them, a look at a topic before a run, and how
far the run has read for consumer groups.

Guarantees: a topic that is not there, a broker that does not answer and credentials that it refuses are reported within
seconds. Values of options never show: they may be secrets. Not for reading: Spark does that with Kafka's Java client,
which is why options are written as that one takes them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from vsc.extras import required
from vsc.runtime.errors import SinkError, SourceError
from vsc.runtime.spark.base.options import Options

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException

__all__ = [
    "PREFIX",
    "ConsumerGroup",
    "NotForPython",
    "admin_for_python",
    "brokers",
    "check_topic",
    "client_settings",
    "common",
    "is_empty",
    "offset_ranges",
    "quiet",
    "topic_id",
]

PREFIX = "kafka."
"""What the names of Kafka's own options begin with."""
LOOK_SECONDS = 5
_COMMON = ("bootstrap.", "security.", "sasl.", "ssl.")
_LOGIN = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")
_STORES = ("ssl.truststore.", "ssl.keystore.")
_PEM = {
    "ssl.truststore.certificates": ("ssl.ca.pem",),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
}
_INVALID = "Invalid value"
_PROPERTY = re.compile(r'property:? "([^"]+)"')
_NOISE = re.compile(r"^\S+?/(?:bootstrap|\d+): | \(after \d+ms in state \w+.*?\)", re.DOTALL)
_log = logging.getLogger(__name__)

quiet = logging.getLogger("vsc.kafka")
"""Takes what librdkafka would print on stderr."""
quiet.addHandler(logging.NullHandler())
quiet.propagate = False


class NotForPython(ValueError):
    """An option that only Kafka's Java client can use; the text is its name and what to give instead."""


def client_settings(options: Options) -> dict[str, str]:
    """What librdkafka takes of the connector's options. NotForPython for a file or a login that it cannot use."""
    given = {n.removeprefix(PREFIX): v for n, v in options.spark.items() if n.startswith(PREFIX)}
    settings = {"bootstrap.servers": options.text("bootstrap_servers")}
    settings |= {n: v for n, v in given.items() if n != "sasl.jaas.config" and not n.startswith(_STORES)}
    if settings.get("ssl.endpoint.identification.algorithm") == "":
        settings["ssl.endpoint.identification.algorithm"] = "none"
    if "sasl.jaas.config" in given:
        settings |= _login(given["sasl.jaas.config"])
    settings |= {name: given[text] for text, names in _PEM.items() if text in given for name in names}
    return settings | dict(_files(given))


def common(settings: Mapping[str, str]) -> dict[str, str]:
    """Of `client_settings`, what every client needs, whatever it does."""
    return {name: value for name, value in settings.items() if name.startswith(_COMMON)}


def _login(jaas: str) -> dict[str, str]:
    login = {name: re.sub(r"\\(.)", r"\1", double or single) for name, double, single in _LOGIN.findall(jaas)}
    if set(login) != {"username", "password"}:
        raise NotForPython("'kafka.sasl.jaas.config' has no username and password: use PLAIN or SCRAM")
    return {f"sasl.{name}": value for name, value in login.items()}


def _files(given: dict[str, str]) -> Iterator[tuple[str, str]]:
    for store, pem in (
        ("truststore", ["ssl.ca.location"]),
        ("keystore", ["ssl.certificate.location", "ssl.key.location"]),
    ):
        path, kind = given.get(f"ssl.{store}.location"), given.get(f"ssl.{store}.type", "JKS").upper()
        if path is None:
            continue
        if kind == "PEM":
            yield from ((name, path) for name in pem)
        elif kind == "PKCS12" and store == "keystore":
            yield "ssl.keystore.location", path
            yield "ssl.keystore.password", given.get("ssl.keystore.password", "")
        else:
            raise NotForPython(f"'kafka.ssl.{store}.location' is a {kind} file: give a PEM file, and its type as PEM")


def check_topic(options: Options, use: Literal["read", "write"]) -> None:
    """SourceError or SinkError if the topic cannot be reached, is not there, or may not be used; MissingExtra without
    the client.

    A source whose options only Java understands is left to Spark.
    """
    with required("the kafka connector"):
        from confluent_kafka import KafkaException, Producer
        from confluent_kafka.admin import AclOperation

    raised: type[SourceError | SinkError] = SourceError if use == "read" else SinkError
    topic, servers = options.text("topic"), options.text("bootstrap_servers")
    told: list[KafkaError] = []
    try:
        admin = _admin(options, told)
        if use == "write":
            Producer(client_settings(options), logger=quiet)  # which knows its options as soon as it is made
    except NotForPython as error:
        if use == "read" and options.get("group") is None:
            return
        raise raised(f"{options.place}: {error}", "see docs/connectors/kafka.md") from error
    except KafkaException as error:
        if use == "read" and _INVALID not in str(error):
            return  # Java's client may well know it
        raise raised(f"{options.place}: {_wrong_setting(error)}", "correct the option, or remove it") from None
    try:
        allowed = _described(admin, topic, include_authorized_operations=True).authorized_operations
    except KafkaException as error:
        admin.poll(0)
        if error.args[0].name() == "_TIMED_OUT" and _is_there(admin, told, topic):
            return  # the one broker that was asked what is allowed has just gone away
        message, help = _why(error.args[0], told, topic, servers)
        raise raised(f"{options.place}: {message}", help) from None
    if allowed is not None and (AclOperation.READ if use == "read" else AclOperation.WRITE) not in allowed:
        raise raised(f"{options.place}: Kafka does not allow this user to {use} the topic {topic!r}", _ALLOW)


def _is_there(admin: Any, told: list[KafkaError], topic: str) -> bool:
    """Whether any broker answers, and knows the topic."""
    from confluent_kafka import KafkaException

    if any(one.name() == "_ALL_BROKERS_DOWN" for one in told):
        return False
    try:
        return topic in admin.list_topics(timeout=LOOK_SECONDS).topics
    except KafkaException:
        return False


def brokers(options: Options) -> tuple[tuple[str, int], ...]:
    """The hosts and ports that brokers tell clients to connect to, sorted; none if only Java's client could ask, or
    none answers."""
    from confluent_kafka import KafkaException

    try:
        admin = admin_for_python(options)
        found = () if admin is None else admin.list_topics(timeout=LOOK_SECONDS).brokers.values()
    except KafkaException:
        return ()
    return tuple(sorted((one.host, one.port) for one in found))


def is_empty(options: Options) -> bool:
    """Whether the topic holds no record; False if that cannot be found out."""
    try:
        found = offset_ranges(options)
    except SourceError:
        return False
    return bool(found) and all(low == high for low, high in found.values())


def offset_ranges(options: Options) -> dict[int, tuple[int, int]]:
    """For each partition of the topic that a source reads, its first offset and the one after its last. SourceError
    if Kafka does not tell."""
    from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    topic = options.text("topic")
    given = options.spark.get("kafka.isolation.level", "read_committed")
    level = IsolationLevel.READ_UNCOMMITTED if given == "read_uncommitted" else IsolationLevel.READ_COMMITTED
    try:
        admin = _admin(options, [])
        partitions = admin.list_topics(topic, LOOK_SECONDS).topics[topic].partitions
        places = [TopicPartition(topic, number) for number in partitions]
        asked = [
            admin.list_offsets(dict.fromkeys(places, spec), isolation_level=level)
            for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
        ]
        low, high = ({at.partition: one.result(LOOK_SECONDS).offset for at, one in of.items()} for of in asked)
    except NotForPython as error:
        raise SourceError(f"{options.place}: {error}", "see docs/connectors/kafka.md") from error
    except KafkaException as error:
        why = error.args[0].str()
        raise SourceError(f"{options.place}: Kafka does not say which offsets {topic!r} has: {why}", _ALLOW) from None
    return {number: (low[number], high[number]) for number in partitions}


def admin_for_python(options: Options) -> Any | None:
    """A client that asks brokers; None if only Java's client understands the options."""
    from confluent_kafka import KafkaException

    try:
        return _admin(options, [])
    except (NotForPython, KafkaException):
        return None


def topic_id(options: Options, admin: Any) -> str:
    """The id of a connector's topic, which `admin` asks for. SourceError if Kafka does not tell."""
    from confluent_kafka import KafkaException

    topic = options.text("topic")
    try:
        # as the client for Java writes it, in the Base64 of URLs
        return str(_described(admin, topic).topic_id).replace("+", "-").replace("/", "_")
    except KafkaException as error:
        message, help = _why(error.args[0], [], topic, options.text("bootstrap_servers"))
        raise SourceError(f"{options.place}: {message}", help) from None


def _described(admin: Any, topic: str, **more: Any) -> Any:
    """What Kafka says of a topic. KafkaException if it does not."""
    from confluent_kafka import TopicCollection

    asked = admin.describe_topics(TopicCollection([topic]), request_timeout=LOOK_SECONDS, **more)[topic]
    return asked.result(LOOK_SECONDS + 5)


def _wrong_setting(error: KafkaException) -> str:
    """What librdkafka has against a setting, without its value."""
    name = _PROPERTY.search(str(error))
    if name is None:
        return "Kafka's client does not take the 'kafka.' options together"
    what = "does not take the value of" if _INVALID in str(error) else "does not know"
    return f"Kafka's client {what} the option 'kafka.{name.group(1)}'"


def _admin(options: Options, told: list[KafkaError]) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({**common(client_settings(options)), "error_cb": told.append}, logger=quiet)


_ALLOW = "give it the permission, or give another user's credentials"


def _why(error: KafkaError, told: list[KafkaError], topic: str, servers: str) -> tuple[str, str]:
    """What is wrong, and what to do."""
    if error.name() == "UNKNOWN_TOPIC_OR_PART":
        return f"Kafka at {servers} has no topic {topic!r}", "create it, or correct `topic`"
    if error.name() == "TOPIC_AUTHORIZATION_FAILED":
        return f"Kafka does not allow this user to see the topic {topic!r}", _ALLOW
    if error.name() == "TOPIC_EXCEPTION":
        return f"{topic!r} is not a name for a topic", "correct `topic`"
    named = {one.name(): _NOISE.sub("", one.str()) for one in reversed(told)}
    if "_AUTHENTICATION" in named:
        what = f"Kafka at {servers} refuses the credentials: {named['_AUTHENTICATION']}"
        return what, "correct the 'kafka.sasl.' options"
    if "_SSL" in named:
        return f"no secure connection to Kafka at {servers}: {named['_SSL']}", "correct the 'kafka.ssl.' options"
    causes = [named[name] for name in ("_RESOLVE", "_TRANSPORT") if name in named] or [
        "it closes the connection; 'kafka.security.protocol' may be wrong" if named else error.str()
    ]
    return f"no Kafka broker answers at {servers}: {causes[0]}", "start it, or correct `bootstrap_servers`"


class ConsumerGroup:
    """How far a query has read, in the consumer group that a source names: for lag monitors only.

    Guarantees: a group never says more than what is written. vsc itself goes by its checkpoint, so a commit that
    fails is only reported.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._consumer: Any = None

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Takes note of the offsets that come next, by topic and partition."""
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        group = self._options.text("group")
        try:
            if self._consumer is None:
                own = {"group.id": group, "enable.auto.commit": False, "socket.timeout.ms": 10_000}
                self._consumer = Consumer({**common(client_settings(self._options)), **own}, logger=quiet)
            places = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
            if places:
                self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            why = error.args[0].str()
            _log.warning(f"{self._options.place}: Kafka did not take the offsets of group {group!r}: {why}")
