"""The columns of an aggregate: its group, the bounds of its window, and what is selected.

An item is an expression over the group's columns and calls of aggregate functions, whose arguments see the rows of the
group. A column that is grouped by also keeps its own name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions import AggregateCalls, Scope, ScopeInput
from vsc.compiler.passes.columns import equal_names
from vsc.compiler.passes.items import ItemRules, select, visible
from vsc.compiler.passes.keys import new_key
from vsc.compiler.passes.shapes import WINDOW_BOUNDS, Known, Shape, ShapeResult
from vsc.plan import Column, Item, Schema
from vsc.plan.expressions import Column as ColumnExpr
from vsc.plan.expressions import with_columns
from vsc.plan.types import TIMESTAMP

__all__ = ["aggregate_shape"]

_OF_A_GROUP = ("the rows of a group have different event times", "write `max(event_time())`")


def aggregate_shape(known: Known, operation: syntax.Aggregate, schema: Schema, scope: Scope) -> ShapeResult:
    """The shape of an aggregate over rows with `schema`, those of a stream or of a table; `scope` is that of a row."""
    [read], source, stream = scope.inputs, known.source, known.is_stream(operation.input)
    row = replace(scope, no_event_time=None if stream else _of_a_table(operation.input))
    group, findings = new_key(source, operation.group, row)
    bounds = tuple(Column(name, TIMESTAMP) for name in WINDOW_BOUNDS) if operation.window is not None else ()
    findings.extend(_hidden_bounds(operation, group, bounds))
    findings.extend(_stars(operation))
    if findings:
        return None, findings
    key = (*(Column(item.name, item.expr.type) for item in group), *bounds)
    calls = AggregateCalls(source, row)
    plain = {i.expr.name: i.name for i in group if isinstance(i.expr, ColumnExpr)}
    result = Scope(
        (_group_input(read, plain, key),),
        row.no_event_time or _OF_A_GROUP,
        key=tuple((column.name, ColumnExpr(0, column.name, column.type)) for column in key),
        aggregate=calls.take,
        grouped=frozenset(read.names()),
        doubt=scope.doubt,
        functions=scope.functions,
        nodes=scope.nodes,
    )
    name = visible(operation.input)
    own = frozenset((name, column) for column, grouped in plain.items() if column == grouped)
    change = "give the column another name"
    selection = select(
        source, operation.items, result, ItemRules(key, own, (), change, frozenset(b.name for b in bounds))
    )
    findings.extend(selection.findings)
    if selection.schema is None or findings:
        return None, findings
    renamed = {old.name: new.name for old, new in zip(key, selection.schema.key, strict=True)}

    def named_anew(column: ColumnExpr) -> ColumnExpr:
        return replace(column, name=renamed.get(column.name, column.name))

    items = tuple(Item(item.name, with_columns(item.expr, named_anew), item.text) for item in selection.items)
    columns = zip(group, selection.schema.key, strict=False)
    group = tuple(replace(item, name=column.name) for item, column in columns)
    return Shape(selection.schema, items=items, group=group, calls=calls.calls), findings


def _group_input(read: ScopeInput, plain: Mapping[str, str], key: tuple[Column, ...]) -> ScopeInput:
    """The input as items see it: plain columns of the group also have their own names."""
    types = {column.name: column.type for column in key}
    columns = tuple(Column(name, types[grouped]) for name, grouped in plain.items())
    return replace(read, schema=Schema((), columns), physical=dict(plain))


def _of_a_table(read: syntax.Input) -> tuple[str, str]:
    """Why an aggregate of a table cannot use the event time (a row is retracted by its columns), and what to do."""
    message = "an aggregate over a table has the columns of its rows, not their event time"
    return message, f"make it a column first, as in {code(f'map {named(read.name.text)} select *, event_time() as at')}"


def _hidden_bounds(
    operation: syntax.Aggregate, group: tuple[Item, ...], bounds: tuple[Column, ...]
) -> Iterator[Finding]:
    if operation.window is None or len(group) != len(operation.group):
        return
    place = operation.window.span
    names = [(item.name, part.span) for item, part in zip(group, operation.group, strict=True)]
    taken = {name.lower(): (name, span) for name, span in names}
    for bound in bounds:
        if bound.name not in taken:
            continue
        name, span = taken[bound.name]
        for finding, _ in equal_names([(bound.name, place), (name, span)], "VSC203"):
            label = Label(place, f"the window has a key column `{bound.name}`")
            yield replace(finding, labels=(label,), help="give it another name: `as ...`")


def _stars(operation: syntax.Aggregate) -> Iterator[Finding]:
    for item in operation.items:
        if isinstance(item, syntax.StarItem):
            message = "`*` does not work here: the rows of a group have different values"
            yield Finding(
                "VSC117",
                item.span,
                message,
                (),
                "select aggregates such as `count(*) as n`: the group columns are there anyway",
            )
