"""Sinks of files with folders by the values of columns (`partition_by`): the columns are there, and their values can
name folders."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.suggest import nearest, renamed
from vsc.plan import Schema
from vsc.plan.types import BIGINT, BOOLEAN, DATE, INT, SMALLINT, STRING, TINYINT

__all__ = ["check_partition_folders"]

_NAMEABLE = frozenset((STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, DATE))


def check_partition_folders(clause: syntax.ConnectorClause, node: str, schema: Schema) -> Iterator[Finding]:
    """What is wrong with the columns that `partition_by` of a sink of `node` names (VSC505, VSC506)."""
    given = next((option.value for option in clause.options if option.name.text == "partition_by"), None)
    if not isinstance(given, syntax.ColumnNames):
        return
    columns = {column.name: column.type for column in (*schema.key, *schema.value)}
    seen: set[str] = set()
    for name in given.names:
        type_ = columns.get(name.text)
        if name.text in seen:
            yield Finding("VSC506", name.span, f"`{name.text}` is given twice", (), "remove one of them")
        elif type_ is None:
            near = nearest(name.text, columns)
            help = f"write `{near}`" if near is not None else "name one of its columns"
            message = f"`{node}` has no column `{name.text}` for `partition_by`"
            yield Finding("VSC505", name.span, message, (), help, renamed(name.span, name.text, columns))
        elif name.text.startswith("."):
            yield Finding(
                "VSC505", name.span, f"Spark reads no folder `{name.text}=...`: its name begins with a dot", (),
                "give the column another name",
            )  # fmt: skip
        elif type_ not in _NAMEABLE:
            yield Finding(
                "VSC505", name.span, f"`{name.text}` is {type_}, whose values do not name folders", (),
                "use a text, a whole number, a boolean or a date, such as `cast(at as date)` in a column of its own",
            )  # fmt: skip
        seen.add(name.text)
    if columns.keys() <= seen:
        yield Finding(
            "VSC505", given.span, f"no column of `{node}` is left for the files", (),
            "leave a column out: what folders say is not in their files",
        )  # fmt: skip
