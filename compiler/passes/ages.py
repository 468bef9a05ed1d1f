"""How old a row may be that a join of a stream finds: a length that is possible, of rows whose times are known."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import JoinForm, Kinds, join_form
from vsc.compiler.passes.options import too_long
from vsc.compiler.passes.stores import Stores
from vsc.compiler.topology import Topology

__all__ = ["check_ages"]

_NOT_FOR: dict[JoinForm, str] = {
    "table-table": "tables has no `max_age`: its rows stay until they change",
    "stream-stream": "streams has no `max_age`: `within` says how far apart records may be",
}


def check_ages(topology: Topology, order: tuple[str, ...], kinds: Kinds, stores: Stores) -> tuple[Finding, ...]:
    """Joins whose `max_age` is too long, does not apply, or is of rows that a `suppress` hides (VSC308)."""
    found: list[Finding] = []
    for name in order:
        declaration = topology.nodes[name]
        if isinstance(declaration, syntax.DerivedDecl) and isinstance(declaration.operation, syntax.Join):
            join = declaration.operation
            if join.max_age is not None and (form := join_form(kinds, join)) is not None:
                found.extend(_max_age(topology, stores, join, form, join.max_age))
    return tuple(found)


def _max_age(
    topology: Topology, stores: Stores, join: syntax.Join, form: JoinForm, max_age: syntax.MaxAge
) -> Iterator[Finding]:
    if form in _NOT_FOR:
        yield Finding("VSC109", max_age.span, f"a join of two {_NOT_FOR[form]}", (), "remove the `max_age` clause")
        return
    if (wrong := too_long(max_age.duration, "VSC125")) is not None:
        yield wrong
    table = join.right.name.text
    hiding = _hiding(topology, stores, table)
    if hiding is None:
        return
    copy = named(f"{table}_rows")
    yield Finding(
        "VSC308", max_age.span, f"`max_age` cannot tell how old the rows of `{table}` are",
        (Label(topology.nodes[hiding].name.span, f"`{hiding}` holds rows back, and does not keep since when the last "
               "one that it sent is valid"),),
        f"join with a copy that does: {code(f'table {copy} = materialize {named(table)} unversioned;')}",
    )  # fmt: skip


def _hiding(topology: Topology, stores: Stores, table: str) -> str | None:
    """The `suppress` through which a look-up into `table` goes to the store behind it."""
    declaration = topology.nodes.get(table)
    if not isinstance(declaration, syntax.DerivedDecl) or stores.of(table) is not None:
        return None
    operation = declaration.operation
    if isinstance(operation, syntax.Suppress):
        return table
    by_key = isinstance(operation, syntax.Join) and not operation.on
    reads = operation.inputs if by_key or operation.row_by_row else ()
    return next(filter(None, (_hiding(topology, stores, read.name.text) for read in reads)), None)
