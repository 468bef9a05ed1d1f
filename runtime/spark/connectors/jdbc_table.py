"""A table of a database: looked at, checked against the columns that it is to hold, created on request.

Guarantees: what is refused here is refused before a row is read, with the column and both types in the message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from vsc.plan.types import DataType
from vsc.runtime.errors import DatabaseTableError
from vsc.runtime.spark.connectors.jdbc_types import TableColumn, created_type, fits

if TYPE_CHECKING:
    import psycopg

__all__ = [
    "Table",
    "check_may_create",
    "check_privileges",
    "check_table",
    "create_table",
    "found_table",
    "identifier",
]

_COLUMNS = """
select a.attname, format_type(a.atttypid, a.atttypmod), t.typname, format_type(t.oid, -1), t.typcategory,
  e.typname, case when w.typtype = 'd' then w.typtypmod else a.atttypmod end,
  a.attnotnull and not a.atthasdef and a.attidentity = '' and a.attgenerated = '' and w.typdefault is null,
  a.attgenerated <> '' or a.attidentity = 'a'
from pg_attribute a
join pg_type w on w.oid = a.atttypid
join pg_type t on t.oid = case when w.typtype = 'd' then w.typbasetype else w.oid end
left join pg_type e on e.oid = t.typelem and t.typcategory = 'A'
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped
order by a.attnum
"""
_UNIQUE = """
select array(select a.attname::text from unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) k
             join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k)
from pg_index i
where i.indrelid = %s and i.indisunique and i.indisvalid and i.indimmediate
  and i.indpred is null and i.indexprs is null
"""
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is there. `uniques` are the column sets of its unique keys."""

    oid: int
    schema: str
    name: str
    columns: Mapping[str, TableColumn]
    uniques: tuple[frozenset[str], ...]

    @property
    def sql(self) -> str:
        """Its name in a statement."""
        return f"{identifier(self.schema)}.{identifier(self.name)}"


def identifier(name: str) -> str:
    """A name in a statement."""
    return '"' + name.replace('"', '""') + '"'


def _sql_name(connection: psycopg.Connection[Any], text: str, place: str) -> str:
    """The table that `text` names, as SQL would read it, perhaps with its schema, in a statement."""
    import psycopg

    try:
        [parts] = connection.execute("select parse_ident(%s)", [text]).fetchone() or [[]]
    except psycopg.errors.InvalidParameterValue:
        parts = []
    if len(parts) not in (1, 2):
        raise DatabaseTableError(
            f"{place}: {text!r} is not the name of a table", "write table = 'NAME' or 'SCHEMA.NAME'"
        )
    return ".".join(map(identifier, parts))


def found_table(
    connection: psycopg.Connection[Any], text: str, place: str, kinds: Sequence[str] = ("r", "p")
) -> Table | None:
    """The table that `text` names; None if it does not exist. Raises DatabaseTableError if it is of none of `kinds`."""
    row = connection.execute(
        "select c.oid, n.nspname, c.relname, c.relkind::text from pg_class c join pg_namespace n on n.oid = "
        "c.relnamespace where c.oid = to_regclass(%s)",
        [_sql_name(connection, text, place)],
    ).fetchone()
    if row is None:
        return None
    oid, schema, name, kind = row
    if kind not in kinds:
        raise DatabaseTableError(f"{place}: {text!r} is not a table", "name a table; a view can only be read")
    columns = {row[0]: TableColumn(*row) for row in connection.execute(_COLUMNS, [oid])}
    uniques = tuple(frozenset(row[0]) for row in connection.execute(_UNIQUE, [oid]))
    return Table(oid, schema, name, columns, uniques)


def create_table(
    connection: psycopg.Connection[Any], text: str, columns: Mapping[str, DataType], key: Sequence[str], place: str
) -> None:
    """Creates the table that `text` names, with a primary key over `key`, if there is one."""
    parts = [f"{identifier(c)} {created_type(t)}{' not null' if c in key else ''}" for c, t in columns.items()]
    if key:
        parts.append(f"primary key ({', '.join(map(identifier, key))})")
    connection.execute(f"create table if not exists {_sql_name(connection, text, place)} ({', '.join(parts)})")


def columns_of(
    table: Table, columns: Mapping[str, DataType], place: str
) -> Iterator[tuple[str, DataType, TableColumn]]:
    """The columns of these names, with their types here and there. DatabaseTableError for one that is not there."""
    for name, type in columns.items():
        column = table.columns.get(name)
        if column is None:
            near = get_close_matches(name, table.columns, 1, 0.5)
            shown = ", ".join(list(table.columns)[:_SHOWN])
            raise DatabaseTableError(
                f"{place}: the table '{table.schema}.{table.name}' has no column '{name}' ({type})",
                f"did you mean '{near[0]}'?" if near else f"it has {shown}; add the column, or leave it out",
            )
        yield name, type, column


def check_table(table: Table, columns: Mapping[str, DataType], key: Sequence[str], place: str) -> None:
    """Refuses a table that cannot hold `columns`, or has no unique key over `key`, if there is one."""
    where = f"{place}: the table '{table.schema}.{table.name}'"
    for name, type, column in columns_of(table, columns, place):
        if column.generated:
            raise DatabaseTableError(
                f"{where}: the server itself fills the column '{name}'", "leave it out of what is written, or rename it"
            )
        if not fits(type, column):
            raise DatabaseTableError(
                f"{where}: column '{name}' is {column.type} there, which cannot hold {type}",
                f"cast it in the topology, or make the column {created_type(type)}",
            )
    for column in table.columns.values():
        if column.required and column.name not in columns:
            raise DatabaseTableError(
                f"{where} has a column '{column.name}' that is not null and has no default; it is not written",
                "give it a default, or write it",
            )
    if key and frozenset(key) not in table.uniques:
        names = ", ".join(key)
        raise DatabaseTableError(
            f"{where} has no unique key over ({names}), by which rows are replaced and deleted",
            f"add one: alter table {table.schema}.{table.name} add primary key ({names})",
        )


def check_privileges(connection: psycopg.Connection[Any], table: Table, needed: Sequence[str], place: str) -> None:
    """Refuses a table in which the user may not do what is `needed`, or a schema in which it may create nothing."""
    for privilege in needed:
        [has] = connection.execute("select has_table_privilege(%s::oid, %s)", [table.oid, privilege]).fetchone() or [0]
        if not has:
            raise DatabaseTableError(
                f"{place}: the user '{connection.info.user}' has no privilege to {privilege} on the table "
                f"'{table.schema}.{table.name}'",
                f"grant {', '.join(needed)} on {table.schema}.{table.name} to it",
            )


def check_may_create(connection: psycopg.Connection[Any], schema: str, place: str) -> None:
    """Refuses a schema in which the user may not create the tables that vsc needs."""
    [has] = connection.execute("select has_schema_privilege(%s, 'create')", [schema]).fetchone() or [False]
    if not has:
        raise DatabaseTableError(
            f"{place}: the user '{connection.info.user}' may not create tables in the schema '{schema}', and vsc needs "
            "some of its own there",
            f"grant create on schema {schema} to it",
        )
