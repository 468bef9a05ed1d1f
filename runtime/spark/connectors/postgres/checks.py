"""What a table of a database must be like for a source or a sink, and what the user must be allowed.

Guarantees: what is refused here is refused before a row is read, with the column and both types in the message, and
the statement that fixes it in the help; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from vsc.plan.types import DataType
from vsc.runtime.errors import DatabaseError, DatabaseTableError
from vsc.runtime.spark.connectors.postgres.table import Table, parts_of_name
from vsc.runtime.spark.connectors.postgres.types import TableColumn, created_type, fits, gives, merges_keys

if TYPE_CHECKING:
    import psycopg

__all__ = [
    "check_holds_text",
    "check_may_create",
    "check_may_create_table",
    "check_privileges",
    "check_readable",
    "check_sees_every_row",
    "check_table",
    "check_takes_writes",
]

_SHOWN = 12
_ENCODINGS = ("UTF8", "SQL_ASCII")
"""The encodings in which every text can be stored: what is sent is UTF-8."""


def check_readable(table: Table, columns: Mapping[str, DataType], place: str) -> None:
    """Refuses a table of which `columns` cannot be read as they are declared."""
    missing = [name for name in columns if name not in table.columns]
    if missing:
        near = get_close_matches(missing[0], table.columns, 1, 0.5)
        shown = ", ".join(list(table.columns)[:_SHOWN])
        raise DatabaseTableError(
            f"{_where(table, place)} {_lacks(missing, columns)}",
            f"did you mean '{near[0]}'?" if near else f"it has {shown}; add the column, or leave it out",
        )
    for name, type, column in _there(table, columns):
        if not gives(type, column):
            raise DatabaseTableError(
                f"{_where(table, place)}: column '{name}' is {column.type} there, and {type} cannot hold it",
                "declare the column with a type that can (string can always), and cast it in an expression",
            )


def check_table(
    connection: psycopg.Connection[Any], table: Table, columns: Mapping[str, DataType], key: Sequence[str], place: str
) -> None:
    """Refuses a table that cannot hold `columns`, or does not tell keys apart by a unique key, if there is a key."""
    where, alter = _where(table, place), f"alter table {_quoted(connection, table.schema, table.name)}"
    missing = [name for name in columns if name not in table.columns]
    if missing:
        near = get_close_matches(missing[0], table.columns, 1, 0.5)
        added = ", ".join(f"add column {_quoted(connection, n)} {created_type(columns[n])}" for n in missing)
        raise DatabaseTableError(
            f"{where} {_lacks(missing, columns)}",
            (f"did you mean '{near[0]}'? " if near else "") + f"to add what is missing: {alter} {added}",
        )
    for name, type, column in _there(table, columns):
        if column.generated:
            raise DatabaseTableError(
                f"{where}: the server itself fills the column '{name}'", "leave it out of what is written, or rename it"
            )
        altered = f"{alter} alter column {_quoted(connection, name)} type {created_type(type)}"
        if not fits(type, column):
            raise DatabaseTableError(
                f"{where}: column '{name}' is {column.type} there, which cannot hold {type}",
                f"cast it in the topology, or change the column: {altered}",
            )
        if name in key and merges_keys(type, column):
            what = f"is {column.type} there, which" if column.deterministic else "has a collation that"
            raise DatabaseTableError(
                f"{where}: the key column '{name}' {what} treats different keys as equal",
                f'change the column: {altered} collate "C"',
            )
    for column in table.columns.values():
        if column.required and column.name not in columns:
            raise DatabaseTableError(
                f"{where} has a column '{column.name}' that is not null and has no default; it is not written",
                "give it a default, or write it",
            )
    if key:
        _check_key(connection, table, key, where, alter)


def _check_key(connection: psycopg.Connection[Any], table: Table, key: Sequence[str], where: str, alter: str) -> None:
    names, found = ", ".join(key), [unique for unique in table.uniques if unique.columns == frozenset(key)]
    if not found:
        raise DatabaseTableError(
            f"{where} has no unique key over ({names}), by which rows are replaced and deleted",
            f"add one: {alter} add primary key ({_quoted_each(connection, key)})",
        )
    for unique in found:  # the server takes all of them for what rows are replaced by
        if not unique.deterministic:
            raise DatabaseTableError(
                f"{where} has a unique index {unique.name} over ({names}), whose collation treats different keys as "
                "equal",
                f"drop it, or make it with another collation: drop index {unique.name}",
            )


def _there(table: Table, columns: Mapping[str, DataType]) -> Iterator[tuple[str, DataType, TableColumn]]:
    return ((name, type, table.columns[name]) for name, type in columns.items())


def _where(table: Table, place: str) -> str:
    return f"{place}: the table '{table.schema}.{table.name}'"


def _lacks(missing: Sequence[str], columns: Mapping[str, DataType]) -> str:
    named = ", ".join(f"'{name}' ({columns[name]})" for name in missing)
    return f"has no column{'s' if len(missing) > 1 else ''} {named}"


def _quoted(connection: psycopg.Connection[Any], *names: str) -> str:
    """A name, perhaps behind its schema, as a user writes it in a statement: in quotes only where it needs them."""
    return ".".join(_quoted_list(connection, names))


def _quoted_each(connection: psycopg.Connection[Any], names: Sequence[str]) -> str:
    return ", ".join(_quoted_list(connection, names))


def _quoted_list(connection: psycopg.Connection[Any], names: Sequence[str]) -> list[str]:
    found = connection.execute("select quote_ident(n) from unnest(%s::text[]) with ordinality u(n, i) order by i",
                               [list(names)])  # fmt: skip
    return [name for (name,) in found]


# ---------------------------------------------------------------------------------------------- what the user may do


def check_privileges(connection: psycopg.Connection[Any], table: Table, needed: Sequence[str], place: str) -> None:
    """Refuses a table in which the user may not do what is `needed`."""
    for privilege in needed:
        [has] = connection.execute("select has_table_privilege(%s::oid, %s)", [table.oid, privilege]).fetchone() or [0]
        if not has:
            user = connection.info.user
            raise DatabaseTableError(
                f"{place}: the user '{user}' has no privilege to {privilege} on the table "
                f"'{table.schema}.{table.name}'",
                f"grant {', '.join(needed)} on {_quoted(connection, table.schema, table.name)} to "
                f"{_quoted(connection, user)}",
            )


def check_sees_every_row(connection: psycopg.Connection[Any], table: Table, place: str) -> None:
    """Refuses a table of which policies may hide rows, which then are not replaced or deleted."""
    [hides] = connection.execute("select row_security_active(%s::oid)", [table.oid]).fetchone() or [False]
    if hides:
        user = connection.info.user
        raise DatabaseTableError(
            f"{place}: row-level security may hide rows of the table '{table.schema}.{table.name}' from the user "
            f"'{user}': a hidden row would not be deleted",
            f"alter role {_quoted(connection, user)} bypassrls",
        )


def check_takes_writes(connection: psycopg.Connection[Any], database: str, place: str) -> None:
    """Refuses a standby server, and sessions that only read."""
    [reads] = connection.execute("select current_setting('transaction_read_only') = 'on'").fetchone() or [False]
    if reads:
        raise DatabaseError(
            f"{place}: {database} is read-only: it is a standby server, or is set to be",
            "give the url of the primary server, or unset default_transaction_read_only",
        )


def check_holds_text(
    connection: psycopg.Connection[Any], columns: Mapping[str, DataType], database: str, place: str
) -> None:
    """Refuses a database whose encoding has not all of the characters that a text may have."""
    [encoding] = connection.execute("select current_setting('server_encoding')").fetchone() or [""]
    if encoding not in _ENCODINGS and any("string" in str(type) for type in columns.values()):
        raise DatabaseTableError(
            f"{place}: {database} holds text in {encoding}, which cannot hold every string",
            "write to a database in UTF8",
        )


def check_may_create_table(connection: psycopg.Connection[Any], text: str, place: str) -> None:
    """Refuses to create a table where its schema is not there, or the user may create nothing in it."""
    parts = parts_of_name(connection, text, place)
    if len(parts) > 1:
        [there] = connection.execute("select exists (select from pg_namespace where nspname = %s)",
                                     parts[:1]).fetchone() or [False]  # fmt: skip
        schema = parts[0] if there else None
    else:
        [schema] = connection.execute("select current_schema()").fetchone() or [None]
    if schema is None:
        name = f"'{parts[0]}'" if len(parts) > 1 else "of the search path"
        made = f": create schema {_quoted(connection, parts[0])}" if len(parts) > 1 else ", or name another one"
        raise DatabaseTableError(f"{place}: there is no schema {name} to create the table in", f"create it{made}")
    check_may_create(connection, schema, place)


def check_may_create(connection: psycopg.Connection[Any], schema: str, place: str) -> None:
    """Refuses a schema in which the user may not create the tables that vsc needs."""
    [has] = connection.execute("select has_schema_privilege(%s, 'create')", [schema]).fetchone() or [False]
    if not has:
        user = connection.info.user
        raise DatabaseTableError(
            f"{place}: the user '{user}' may not create tables in the schema '{schema}', and vsc needs "
            "some of its own there",
            f"grant create on schema {_quoted(connection, schema)} to {_quoted(connection, user)}",
        )
