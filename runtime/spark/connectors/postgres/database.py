"""A PostgreSQL database as users write it (a JDBC URL, Spark's options) and as libpq takes it; connections to it.

Guarantees: what is said of a database, in messages and in a `repr`, never holds a password; a server that does not
answer is an error in bounded time. Not for tables: see `table`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from vsc.extras import required
from vsc.plan.connectors.postgres import HOST, PARAMETERS, URL
from vsc.runtime.errors import DatabaseError
from vsc.runtime.spark.base.options import Options

if TYPE_CHECKING:
    import psycopg

__all__ = ["Database", "database_error"]

_DEFAULTS = {
    "connect_timeout": "10", "application_name": "vsc",
    "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3",
}  # fmt: skip
"""A server that is gone without a word is missed after a minute."""
_PASSING = ("08", "40", "57")
"""SQLSTATE classes: the connection, what another transaction stood in the way of, the operator's intervention."""
_MIN_VERSION = 12
_SETTINGS = """
set client_encoding = 'UTF8'; set timezone = 'UTC'; set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres';
set extra_float_digits = 1; set bytea_output = 'hex'; set array_nulls = on
"""
"""Servers, databases and users may have others, by which the text of a value loses digits or means something else."""


@dataclass(frozen=True, slots=True)
class Database:
    """What to connect to. `name` is its name in messages; `parameters` are libpq's, the password among them."""

    name: str
    parameters: tuple[tuple[str, str], ...] = field(repr=False)
    search_path: str | None = None

    @classmethod
    def of(cls, options: Options) -> Database:
        """The database of a connector's options. Raises DatabaseError for those that cannot be understood."""
        place = options.place
        matched = URL.fullmatch(options.text("url"))
        if matched is None:  # the text may hold a password
            raise DatabaseError(
                f"{place}: the url is not one of PostgreSQL",
                "write url = 'jdbc:postgresql://HOST:PORT/DATABASE'; of databases vsc knows PostgreSQL alone",
            )
        settings = dict(_DEFAULTS)
        hosts = [_host(text, place) for text in (matched["hosts"] or "localhost").split(",")]
        settings["host"], settings["port"] = (",".join(part) for part in zip(*hosts, strict=True))
        if matched["database"]:
            settings["dbname"] = unquote(matched["database"])
        settings |= _known(dict(parse_qsl(matched["parameters"] or "", keep_blank_values=True)), place)
        settings |= _known(options.spark, place)
        timeout = settings["connect_timeout"]
        if not (timeout.isdecimal() and 0 < int(timeout) <= 3600):
            raise DatabaseError(f"{place}: connectTimeout is a number of seconds from 1 to 3600")
        schema = settings.pop("currentSchema", None)
        where = ", ".join(f"{host or 'localhost'}:{port}" for host, port in hosts)
        return cls(f"the database '{settings.get('dbname', '')}' at {where}", tuple(sorted(settings.items())), schema)

    @property
    def servers(self) -> tuple[tuple[str, int], ...]:
        """The hosts and ports of the server."""
        settings = dict(self.parameters)
        hosts, ports = settings["host"].split(","), settings["port"].split(",")
        return tuple((host, int(port)) for host, port in zip(hosts, ports, strict=True))

    @contextmanager
    def connected(self, place: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """A connection in autocommit, for the length of the context. What psycopg raises in it becomes ours.

        `place` names who asks, in messages.
        """
        with required(f"{place}: jdbc"):
            import psycopg
        connection: psycopg.Connection[tuple[Any, ...]] | None = None
        try:
            connection = psycopg.connect(**dict(self.parameters), autocommit=True)  # type: ignore[arg-type]
            self._check_version(connection, place)
            connection.execute(_SETTINGS)
            if self.search_path is not None:
                connection.execute("select set_config('search_path', %s, false)", [self.search_path])
            yield connection
        except psycopg.Error as error:
            raise database_error(error, self, place, connected=connection is not None) from None
        finally:
            if connection is not None:
                connection.close()

    def _check_version(self, connection: psycopg.Connection[tuple[Any, ...]], place: str) -> None:
        version = connection.info.server_version
        if version < _MIN_VERSION * 10_000:
            raise DatabaseError(
                f"{place}: {self.name} is PostgreSQL {version // 10_000}, vsc needs {_MIN_VERSION} or newer"
            )


def database_error(error: psycopg.Error, database: Database, place: str, connected: bool = True) -> DatabaseError:
    """What a failed statement, or a connection that cannot be had, is for the user: the server's own message in it."""
    said = error.diag.message_primary or " ".join(str(error).split())
    if error.diag.message_detail:
        said += f" ({error.diag.message_detail})"
    if not connected:
        return DatabaseError(
            f"{place}: cannot connect to {database.name}: {said}",
            "check that the server runs, and the url, the user and the password",
        )
    passing = error.sqlstate is None or error.sqlstate[:2] in _PASSING
    help = "nothing is half-written: run the same command again" if passing else None
    return DatabaseError(f"{place}: {database.name} says: {said}", help)


def _host(text: str, place: str) -> tuple[str, str]:
    matched = HOST.fullmatch(text)
    if matched is None:
        raise DatabaseError(f"{place}: the url has a host that cannot be read", "write HOST or HOST:PORT")
    return matched["name"].strip("[]") or "localhost", matched["port"] or "5432"


def _known(given: Mapping[str, str], place: str) -> dict[str, str]:
    """The parameters under libpq's names. Raises DatabaseError for others: their values are not shown."""
    unknown = [name for name in given if name.lower() not in PARAMETERS]
    if unknown:
        raise DatabaseError(
            f"{place}: vsc does not support the connection parameter {unknown[0]!r}",
            "remove it (vsc connects with libpq, not with the JDBC driver); it knows " + ", ".join(sorted(PARAMETERS)),
        )
    return {PARAMETERS[name.lower()]: value for name, value in given.items()}
