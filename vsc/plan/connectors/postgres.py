"""Facts of tables of PostgreSQL, which topologies call `jdbc`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import parse_qsl, unquote

from vsc.plan.connectors.dataset import Dataset
from vsc.plan.connectors.facts import (
    MAX_AHEAD,
    MODE,
    VARIABLE,
    WITH_TIMESTAMP,
    ConnectorFacts,
    OptionSpec,
    Role,
    Values,
    Wrong,
)
from vsc.plan.connectors.place import Place

__all__ = ["HOST", "PARAMETERS", "URL", "PostgresFacts"]

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
_POSTGRES = "jdbc:postgresql:"
_NAME = re.compile(r'"(?:[^"]|"")*"|[^.,"\s]+')


class PostgresFacts(ConnectorFacts):
    """Tables of PostgreSQL."""

    kind = "jdbc"
    digests = True
    options: ClassVar[Mapping[str, OptionSpec]] = {
        "url": OptionSpec("string", "'jdbc:postgresql://localhost/db'"),
        "table": OptionSpec("string", "'payments'"),
        "create": OptionSpec("true or false", "true"),
        "mode": MODE,
        "max_ahead": MAX_AHEAD,
        "with_timestamp": WITH_TIMESTAMP,
    }
    required = ("url", "table")
    source_only = ("max_ahead",)
    sink_only = ("create",)
    stream_sink_only = ("mode", "with_timestamp")
    main = "url"
    json_values = True
    newest_only = True

    def untimed(self, options: Values) -> str:
        """The time of the epoch: zero."""
        return "time zero"

    def packages(self, role: Role, options: Values) -> tuple[str, ...]:
        """Tasks read and write with the same driver."""
        return ("psycopg",)

    def wrong_value(self, name: str, value: str) -> Wrong:
        """The URL."""
        return _url(value) if name == "url" else None

    def wrong_name(self, role: Role, name: str, options: Values) -> Wrong:
        """Parameters of the connection that vsc does not support."""
        return _parameter(name)

    def place(self, options: Mapping[str, str]) -> Place:
        """The table, with its schema, in the database."""
        return Place((self.kind, options["url"].partition("?")[0]), self.dataset(options, "").name, "table")

    def dataset(self, options: Mapping[str, str], files: str) -> Dataset:
        """The table, with its database and its schema, at the first of the hosts.

        Without a schema it is in the first of `currentSchema`, else in ``public``: which one has it the server knows.
        """
        matched = URL.fullmatch(options["url"])
        host = None if matched is None else HOST.fullmatch((matched["hosts"] or "").partition(",")[0])
        *schema, table = _names(options["table"]) or [options["table"]]
        if matched is None or host is None:  # a variable without a value: nothing is known of what it may hold
            return Dataset("postgres", ".".join([*schema, table]))
        given = {name.lower(): value for name, value in (*parse_qsl(matched["parameters"] or ""), *options.items())}
        path = [name for name in _names(given.get("currentschema", "")) if name != "$user"]
        names = [unquote(matched["database"]), *(schema or [*path, "public"][:1]), table]
        server = f"{host['name'] or 'localhost'}:{host['port'] or '5432'}"
        return Dataset(f"postgres://{server}", ".".join(filter(None, names)))


def _names(text: str) -> list[str]:
    """The names in a dotted name, or in a list of them, as SQL reads them: without quotes, else in lower case."""
    return [_name(part) for part in _NAME.findall(text)]


def _name(part: str) -> str:
    if part.startswith('"'):
        return part[1:-1].replace('""', '"')
    if VARIABLE.search(part):
        return part
    return "".join(char.lower() if char.isascii() else char for char in part)


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
