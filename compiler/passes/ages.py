"""How old a row may be that a join of a stream finds, and which clauses about it a join can have."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import JoinForm, Kinds, join_form
from vsc.compiler.passes.options import too_long
from vsc.compiler.passes.stores import Stores
from vsc.compiler.passes.within_aggregates import has_calls
from vsc.compiler.topology import Topology

__all__ = ["check_ages"]

_WITH: dict[JoinForm, str] = {
    "table-table": "of two tables", "stream-stream": "of two streams", "stream-global": "with a global table",
}  # fmt: skip
_NOT_FOR: dict[JoinForm, str] = {
    "table-table": "it joins the newest rows", "stream-stream": "`within` says how far apart records may be",
}  # fmt: skip


def check_ages(topology: Topology, order: tuple[str, ...], kinds: Kinds, stores: Stores) -> tuple[Finding, ...]:
    """Joins with clauses that do not apply to them, or with a `max_age` that nothing can have, or of rows that a
    `suppress` hides (VSC308)."""
    found: list[Finding] = []
    for name in order:
        declaration = topology.nodes[name]
        if isinstance(declaration, syntax.DerivedDecl) and isinstance(declaration.operation, syntax.Join):
            join = declaration.operation
            form = join_form(kinds, join)
            found.extend(_misplaced(join, form))
            if join.max_age is not None and form in ("stream-table", "stream-global"):
                found.extend(_max_age(topology, stores, join, join.max_age))
    return tuple(found)


def _misplaced(join: syntax.Join, form: JoinForm | None) -> Iterator[Finding]:
    """The clauses that a join of this form does not have."""
    written = (
        ("strictly before", join.strictly_before, True),
        ("max_age", None if join.max_age is None else join.max_age.span, False),
        ("drop older_than_retention", join.drop_older, True),
    )
    aggregates = form == "stream-stream" and has_calls(join)
    for word, span, of_history in written[1:] if aggregates else written:
        if span is not None and form is not None and (of_history or form in _NOT_FOR) and form != "stream-table":
            message = f"a join {_WITH[form]} has no {code(word)}: {_NOT_FOR.get(form, 'that keeps no history')}"
            yield Finding("VSC109", span, message, (), f"remove the {code(word)} clause")
    if join.drop_older is not None and form == "stream-table" and join.mode == "inner":
        message = "a `join` drops every record that finds no row: `drop older_than_retention` is of a `left join`"
        yield Finding("VSC109", join.drop_older, message, (), "remove the clause, or write `left join`")


def _max_age(topology: Topology, stores: Stores, join: syntax.Join, max_age: syntax.MaxAge) -> Iterator[Finding]:
    if (wrong := too_long(max_age.duration, "VSC125")) is not None:
        yield wrong
    if join.strictly_before is not None and not max_age.duration.milliseconds:
        message = "nothing is ever found: a row that is valid strictly before the record is older than `max_age 0 ms`"
        yield Finding("VSC125", max_age.span, message, (), "make `max_age` longer, or remove `strictly before`")
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
    by_key = isinstance(operation, syntax.Join) and not operation.on and operation.correct is None
    reads = operation.inputs if by_key or operation.row_by_row else ()
    return next(filter(None, (_hiding(topology, stores, read.name.text) for read in reads)), None)
