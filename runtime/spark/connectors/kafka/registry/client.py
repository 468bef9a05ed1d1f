"""A schema registry with Confluent's interface, asked by Confluent's client: schemas by their ids and by subjects.

Guarantees: a registry that does not answer, and credentials that it refuses, are errors that name the place within
seconds; the credentials never show. A schema comes with whatever it refers to. Driver only. Not for what schemas say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from vsc.extras import required
from vsc.plan.secrets import masked
from vsc.runtime.errors import ConfigurationError, SinkError, SourceError, VscRuntimeError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.registry.schemas import Kind, WriterSchema

__all__ = ["Registered", "Registry"]

_TIMEOUT_S, _RETRIES, _PAUSE_MS, _LATEST_S = 10, 2, 300, 5
_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403
_NO_VERSIONS = (_NO_SUBJECT, _NO_VERSION)
_NO_GUID = (_NO_SCHEMA, 404, 0, -1)
"""What a registry says of a GUID, also one that knows none."""
_IDS = range(1 << 31)
_NEWEST = 100
"""So many versions of a subject are fetched at once."""
_KINDS: dict[str, Kind] = {"AVRO": "avro", "JSON": "json", "PROTOBUF": "protobuf"}

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Registered:
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema: WriterSchema


class Registry:
    """The registry of a source or a sink, in whose name it raises `error`."""

    def __init__(self, options: Options, error: type[SourceError | SinkError]) -> None:
        self._place, self._error, self.url = options.place, error, options.text("registry")
        self._called = options.called
        auth = options.get("registry_auth")
        self._client = _client(self.url, None if auth is None else _credentials(str(auth), options))

    def by_id(self, id: str) -> WriterSchema | None:
        """The schema of an id, or of a GUID; None if the registry does not have it. One that cannot be read is kept as
        such: no record ends a run by what it says of its schema."""
        if id.isdecimal() and int(id) not in _IDS:
            return None
        missing = (_NO_SCHEMA,) if id.isdecimal() else _NO_GUID
        get, key = (self._client.get_schema, int(id)) if id.isdecimal() else (self._client.get_schema_by_guid, id)
        return self._asked(lambda: self._readable(get(key)), f"the schema {id}", missing)

    def newest(self, subject: str) -> Registered | None:
        """The newest version of a subject; None if there is no such subject."""
        return self._asked(
            lambda: self._registered(self._client.get_latest_version(subject)), f"the subject {subject!r}", _NO_VERSIONS
        )

    def versions(self, subject: str, known: Container[str] = ()) -> list[Registered]:
        """The newest versions of a subject whose ids are not `known`, oldest first; none if there is no such
        subject."""

        def found() -> list[Registered]:
            numbers = sorted(self._client.get_versions(subject))[-_NEWEST:]
            versions = [self._client.get_version(subject, number) for number in numbers]
            new = [version for version in versions if str(version.schema_id) not in known]
            return [Registered(v.subject, v.version, v.schema_id, self._readable(v.schema)) for v in new]

        return self._asked(found, f"the versions of {subject!r}", _NO_VERSIONS) or []

    def register(self, subject: str, kind: Kind, text: str) -> int:
        """The id of a schema, as the registry writes it, registered for a subject."""
        from confluent_kafka.schema_registry import Schema

        schema = Schema(text, kind.upper())
        id = self._asked(lambda: self._client.register_schema(subject, schema), f"to register a schema of {subject!r}")
        assert id is not None
        return int(id)

    def registered(self, subject: str, kind: Kind, text: str) -> int | None:
        """The id of a schema that a subject has; None if it does not have it."""
        from confluent_kafka.schema_registry import Schema

        schema = Schema(text, kind.upper())
        return self._asked(
            lambda: int(self._client.lookup_schema(subject, schema).schema_id), f"for a schema of {subject!r}",
            (_NO_SUBJECT, _NO_SCHEMA),
        )  # fmt: skip

    def refuses(self, subject: str, kind: Kind, text: str) -> bool:
        """Whether a schema could not be registered, as it is not compatible with those of the subject."""
        from confluent_kafka.schema_registry import Schema

        schema = Schema(text, kind.upper())
        fits = self._asked(
            lambda: bool(self._client.test_compatibility(subject, schema)), f"whether a schema fits {subject!r}",
            _NO_VERSIONS,
        )  # fmt: skip
        return fits is False

    def compiled(self, text: str, imports: Mapping[str, str]) -> WriterSchema:
        """A schema of Protobuf, from its text and those of the files that it imports."""
        from vsc.runtime.spark.connectors.kafka.registry.protoc import compiled

        try:
            return WriterSchema("protobuf", compiled(text, imports))
        except ValueError as error:
            raise self._error(f"{self._place}: protoc does not take a schema of Protobuf: {error}") from None

    def _registered(self, found: Any) -> Registered:
        return Registered(found.subject, found.version, found.schema_id, self._whole(found.schema))

    def _readable(self, schema: Any) -> WriterSchema:
        """A schema, or why it cannot be read."""
        try:
            return self._whole(schema)
        except VscRuntimeError as error:
            return WriterSchema("unreadable", error.message.removeprefix(f"{self._place}: "))

    def _whole(self, schema: Any) -> WriterSchema:
        """A schema with those that it refers to."""
        kind = _KINDS.get(schema.schema_type or "AVRO")
        if kind is None:
            raise self._error(
                f"{self._place}: the registry has a schema of {schema.schema_type}, which vsc cannot read"
            )
        referred, text = list(self._referred(schema, {}).items()), schema.schema_str
        if kind == "avro" and referred:
            from vsc.runtime.spark.connectors.kafka.registry.avro_resolution import inlined

            text = inlined(text, [one for _, one in referred])
        if kind == "protobuf":
            return self.compiled(text, dict(referred))
        if kind == "avro":
            self._check_avro(text)
        return WriterSchema(kind, text)

    def _check_avro(self, text: str) -> None:
        from fastavro.schema import SchemaParseException, UnknownType, expand_schema

        try:
            expand_schema(json.loads(text))
        except (SchemaParseException, UnknownType, ValueError, KeyError, RecursionError) as error:
            why = " ".join(str(error).split())[:200]
            raise self._error(f"{self._place}: fastavro does not take a schema of Avro: {why}") from None

    def _referred(self, schema: Any, found: dict[str, str]) -> dict[str, str]:
        """The texts of what a schema refers to, by name: each after those that it refers to itself."""
        for reference in schema.references or ():
            if reference.name not in found:
                version = self._version(reference.subject, reference.version)
                self._referred(version.schema, found)
                found[reference.name] = version.schema.schema_str
        return found

    def _version(self, subject: str, number: int) -> Any:
        """A version that a schema refers to."""
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            return self._client.get_version(subject, number)
        except SchemaRegistryError as error:
            if error.error_code not in (_NO_SUBJECT, _NO_VERSION):
                raise
            raise self._error(
                f"{self._place}: it refers to version {number} of {subject!r}, which the registry does not have"
            ) from None

    def _asked(self, answer: Callable[[], _T], what: str, missing: tuple[int, ...] = ()) -> _T | None:
        """The client's `answer`, its errors in the user's words; None for the codes of what is `missing`."""
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            return answer()
        except VscRuntimeError:
            raise
        except SchemaRegistryError as error:
            if error.error_code in missing:
                return None
            raise self._refused(what, error) from None
        except Exception as error:  # whatever its HTTP client raises, and what is not JSON
            why = masked(" ".join(str(error).split()))[:200] or type(error).__name__
            raise self._error(
                f"{self._place}: the schema registry at {self.url} does not answer: {why}",
                f"start it, or correct {self._called('registry')}",
            ) from None

    def _refused(self, what: str, error: Any) -> VscRuntimeError:
        if error.http_status_code in (401, 403):
            return self._error(
                f"{self._place}: the schema registry at {self.url} refuses the credentials "
                f"(HTTP {error.http_status_code})", f"correct {self._called('registry_auth')}"
            )  # fmt: skip
        why = " ".join(str(error.error_message).split())[:300]
        return self._error(
            f"{self._place}: the schema registry at {self.url}, asked for {what}, says: {why} "
            f"(HTTP {error.http_status_code})", f"correct {self._called('registry')}, or what it says"
        )  # fmt: skip


@lru_cache(maxsize=16)
def _client(url: str, auth: tuple[str, str] | str | None) -> Any:
    """A client, with what it has fetched; `auth` is a user with a password, or a token."""
    with required("a schema registry", "registry"):
        from confluent_kafka.schema_registry import SchemaRegistryClient
    settings: dict[str, Any] = {
        "url": url, "timeout": _TIMEOUT_S, "max.retries": _RETRIES, "retries.wait.ms": _PAUSE_MS,
        "cache.latest.ttl.sec": _LATEST_S,
    }  # fmt: skip
    if isinstance(auth, tuple):
        settings["basic.auth.user.info"] = ":".join(auth)
    elif auth is not None:
        settings |= {
            "bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": auth,
            "bearer.auth.logical.cluster": "",
        }  # fmt: skip
    return SchemaRegistryClient(settings)


def _credentials(given: str, options: Options) -> tuple[str, str] | str:
    """A user and a password, or a token, as an option or the file that it names has them."""
    text, place, called = given, options.place, options.called("registry_auth")
    if given.startswith("file:"):
        try:
            text = Path(given.removeprefix("file:").removeprefix("//")).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ConfigurationError(
                f"{place}: the file of {called} cannot be read: {why}", "correct its path"
            ) from None
    kind, _, token = text.strip().partition(" ")
    if kind.lower() == "bearer" and token:
        return token.strip()
    user, colon, password = text.strip().partition(":")
    if not colon:
        raise ConfigurationError(
            f"{place}: {called} is neither USER:PASSWORD nor Bearer TOKEN",
            "give one of them, as a variable or in a file ('file:PATH')",
        )
    return user, password
