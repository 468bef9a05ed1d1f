"""A table of a database: looked at, created on request. What it must be like: `checks`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vsc.plan.types import DataType
from vsc.runtime.errors import DatabaseTableError
from vsc.runtime.spark.connectors.postgres.types import TableColumn, created_type

if TYPE_CHECKING:
    import psycopg

__all__ = ["Table", "Unique", "create_table", "found_table", "identifier", "parts_of_name"]

_TABLE = """
select c.oid, n.nspname, c.relname, c.relkind::text, c.relhasrules or exists (
  select from pg_trigger t where not t.tgisinternal and t.tgfoid <> 'suppress_redundant_updates_trigger'::regproc
    and t.tgrelid in (select c.oid union select relid from pg_partition_tree(c.oid)))
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = to_regclass(%s)
"""
_COLUMNS = """
with recursive typed(number, type, modifier, not_null, filled) as (
  select attnum, atttypid, atttypmod, attnotnull, atthasdef or attidentity <> '' or attgenerated <> ''
  from pg_attribute where attrelid = %(table)s and attnum > 0 and not attisdropped
  union all
  select c.number, d.typbasetype, greatest(c.modifier, d.typtypmod), c.not_null or d.typnotnull,
    c.filled or d.typdefault is not null
  from typed c join pg_type d on d.oid = c.type and d.typtype = 'd'
)
select a.attname, format_type(a.atttypid, a.atttypmod), t.typname, format_type(t.oid, -1), t.typcategory,
  e.typname, c.modifier, c.not_null and not c.filled, a.attgenerated <> '' or a.attidentity = 'a',
  coalesce(l.collisdeterministic, true)
from typed c
join pg_attribute a on a.attrelid = %(table)s and a.attnum = c.number
join pg_type t on t.oid = c.type and t.typtype <> 'd'
left join pg_type e on e.oid = t.typelem and t.typcategory = 'A'
left join pg_collation l on l.oid = a.attcollation
order by a.attnum
"""
"""What is below the domains of each column, and what they ask for, however many lie on top of each other."""
_UNIQUE = """
select array(select a.attname::text from unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) k
             join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k),
  i.indexrelid::regclass::text,
  not exists (select from unnest(i.indcollation) k join pg_collation l on l.oid = k where not l.collisdeterministic)
from pg_index i
where i.indrelid = %s and i.indisunique and i.indisvalid and i.indimmediate
  and i.indpred is null and i.indexprs is null
"""


@dataclass(frozen=True, slots=True)
class Unique:
    """A unique index over `columns`; `deterministic`: it takes no two texts for the same."""

    columns: frozenset[str]
    name: str
    deterministic: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is there."""

    oid: int
    schema: str
    name: str
    columns: Mapping[str, TableColumn]
    uniques: tuple[Unique, ...]
    has_code: bool
    """Whether triggers or rules of its own, or of its partitions, run as rows are written."""

    @property
    def sql(self) -> str:
        """The table's name in a statement."""
        return f"{identifier(self.schema)}.{identifier(self.name)}"


def identifier(name: str) -> str:
    """A name in a statement."""
    return '"' + name.replace('"', '""') + '"'


def parts_of_name(connection: psycopg.Connection[Any], text: str, place: str) -> list[str]:
    """The table that `text` names, as SQL would read it, perhaps behind its schema. DatabaseTableError for no name."""
    import psycopg

    try:
        [parts] = connection.execute("select parse_ident(%s)", [text]).fetchone() or [[]]
    except psycopg.errors.InvalidParameterValue:
        parts = []
    if len(parts) not in (1, 2):
        raise DatabaseTableError(
            f"{place}: {text!r} is not the name of a table", "write table = 'NAME' or 'SCHEMA.NAME'"
        )
    return list(parts)


def _sql_name(connection: psycopg.Connection[Any], text: str, place: str) -> str:
    return ".".join(map(identifier, parts_of_name(connection, text, place)))


def found_table(
    connection: psycopg.Connection[Any], text: str, place: str, kinds: Sequence[str] = ("r", "p")
) -> Table | None:
    """The table that `text` names; None if it does not exist. Raises DatabaseTableError if it is of none of `kinds`."""
    row = connection.execute(_TABLE, [_sql_name(connection, text, place)]).fetchone()
    if row is None:
        return None
    oid, schema, name, kind, has_code = row
    if kind not in kinds:
        raise DatabaseTableError(f"{place}: {text!r} is not a table", "name a table; a view can only be read")
    columns = {row[0]: TableColumn(*row) for row in connection.execute(_COLUMNS, {"table": oid})}
    uniques = tuple(Unique(frozenset(names), *rest) for names, *rest in connection.execute(_UNIQUE, [oid]))
    return Table(oid, schema, name, columns, uniques, has_code)


def create_table(
    connection: psycopg.Connection[Any], text: str, columns: Mapping[str, DataType], key: Sequence[str], place: str
) -> None:
    """Creates the table that `text` names, with a primary key over `key`, if there is one."""
    parts = [f"{identifier(c)} {created_type(t)}{' not null' if c in key else ''}" for c, t in columns.items()]
    if key:
        parts.append(f"primary key ({', '.join(map(identifier, key))})")
    connection.execute(f"create table if not exists {_sql_name(connection, text, place)} ({', '.join(parts)})")
