"""The columns of a join: the key on which its inputs match, the key of its result, and what is selected.

A join with a stream keeps the stream's key, or has the one that its `on` gives; a join of two tables, or of two
streams, has the left one's.
An unqualified key column belongs to the result, a qualified one to its input: in an outer join they can differ.
"""

from __future__ import annotations

from dataclasses import replace

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions import Scope
from vsc.compiler.passes.items import ItemRules, scope_input, select, visible
from vsc.compiler.passes.keys import JoinKey, equal_keys, join_on, new_key, under_key
from vsc.compiler.passes.kinds import JoinForm, join_form
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult
from vsc.compiler.passes.stream_joins import equal_keys_of_streams, read_bounds
from vsc.compiler.passes.within_aggregates import has_calls, within_shape
from vsc.compiler.source import SourceFile
from vsc.plan import REVISION, Call, Column, Item, Schema, StreamStreamJoin
from vsc.plan.expressions import Column as ColumnExpr
from vsc.plan.expressions import Expr, Literal
from vsc.plan.types import INT, TIMESTAMP

__all__ = ["join_shape"]

_LATER = Call("greatest", tuple(Call("event_time", (Literal(side, INT),), TIMESTAMP) for side in (0, 1)), TIMESTAMP)
"""The time of the later record of two streams, or of the later row of two tables; or of the only one."""


def join_shape(known: Known, join: syntax.Join, left: Schema, of_left: Scope) -> ShapeResult:
    """The shape of a join; `of_left` sees its left input. A join of tables keeps the names of a window's bounds."""
    of_right, form = known.shapes.get(join.right.name.text), join_form(known.kinds, join)
    if of_right is None or form is None:
        return None, []
    right, source = of_right.schema, known.source
    fixed = known.bounds(join.left) if form == "table-table" else frozenset[str]()
    if form == "table-table" and not join.on and fixed != known.bounds(join.right):
        return None, []  # refused already: one has windows, the other has none
    if form == "stream-stream" and (join.within is None or join.on or join.materialize is not None):
        return None, []  # refused already
    if visible(join.left) == visible(join.right):
        message = f"both inputs of this join are called `{visible(join.right)}`"
        label = Label(join.left.span, "the other one")
        aliases = f"{named(join.left.name.text)} as a with {named(join.right.name.text)} as b"
        help = f"give them names: {code(aliases)}"
        return None, [Finding("VSC121", join.right.span, message, (label,), help)]
    if form == "stream-global" and not join.on:
        return None, []  # refused already: what it would meet by is not known
    key, findings = _meeting_key(source, join, form, replace(of_left, joined=visible(join.right)), right)
    bounds = None
    if form == "stream-stream":
        bounds, wrong = read_bounds(join, has_calls(join))
        findings.extend(wrong)
    if key is None:
        return None, findings
    if join.within is not None and has_calls(join):
        return within_shape(known, join, of_left, right, bounds) if bounds is not None else (None, findings)
    rekeyed = under_key(left, key.on) if form == "stream-table" and join.on and key.complete else None
    by: tuple[Item, ...] = ()
    of_table = known.kinds.get(join.left.name.text) == "table"
    plain = tuple(Item(column.name, _column(0, column), column.name) for column in left.key)
    if join.correct is not None:
        by, wrong = new_key(source, join.correct.by, of_left)
        findings.extend(wrong)
        if form != "stream-table" or len(by) < len(join.correct.by) or not (by or of_table):
            return None, findings
        by = by or plain
    columns = (
        _result_key(join, form, key, left, right, rekeyed)
        if not by
        else [(Column(item.name, item.expr.type), item.expr) for item in by]
    )
    own = [column.name for column, expr in columns if expr == ColumnExpr(0, column.name, column.type)]
    inputs = (scope_input(join.left, 0, left), scope_input(join.right, 1, right))
    time = _LATER if form in ("stream-stream", "table-table") else None
    named_key = tuple((column.name, expr) for column, expr in columns)
    revision = ColumnExpr(0, REVISION.name, REVISION.type) if by else None
    scope = replace(of_left, inputs=inputs, key=named_key, event_time=time, revision=revision)
    names = {column.name for column, _ in columns}
    starred = tuple(c for c in (*left.key, *left.value) if c.name not in names)
    rules = ItemRules(
        tuple(column for column, _ in columns),
        frozenset((visible(join.left), name) for name in own if join.mode != "outer"),
        ((visible(join.left), starred), (visible(join.right), right.value)),
        "give the column another name",
        fixed,
    )
    selection = select(source, join.items, scope, rules)
    findings.extend(selection.findings)
    if selection.schema is None or findings:
        return None, findings
    if bounds is not None:
        operation = StreamStreamJoin(join.mode, bounds.before, bounds.after, bounds.grace, selection.items)
        return Shape(selection.schema, operation, items=selection.items), findings
    if by and of_table:
        rekeyed = rekeyed or (left, plain)
    moved = rekeyed is not None and (rekeyed[0] != left or of_table)
    on = key.on if form != "stream-table" else ()
    return Shape(selection.schema, items=selection.items, rekeyed=rekeyed if moved else None, on=on, by=by), findings


def _meeting_key(
    source: SourceFile, join: syntax.Join, form: JoinForm, of_left: Scope, right: Schema
) -> tuple[JoinKey | None, list[Finding]]:
    """The key on which the inputs match; it has the result's names, unless the result keeps the left input's names."""
    if form == "stream-stream":
        return equal_keys_of_streams(join, of_left.inputs[0].schema, right)
    if not right.key:
        return None, []
    if not join.on:
        return equal_keys(join, of_left.inputs[0].schema, right)
    return join_on(source, join, right, of_left)


def _result_key(
    join: syntax.Join,
    form: JoinForm,
    key: JoinKey,
    left: Schema,
    right: Schema,
    rekeyed: tuple[Schema, tuple[Item, ...]] | None,
) -> list[tuple[Column, Expr]]:
    """The key columns of a join's result, and the column of an input that each of them is."""
    if join.mode == "outer" and not join.on:
        pairs = zip(left.key, right.key, strict=True)
        return [(a, Call("coalesce", (_column(0, a), _column(1, b)), a.type)) for a, b in pairs]
    if form != "stream-table":
        columns = physical = left.key
    else:
        columns, physical = key.columns, rekeyed[0].key if rekeyed is not None else key.columns
    return [(column, _column(0, at)) for column, at in zip(columns, physical, strict=True)]


def _column(index: int, column: Column) -> ColumnExpr:
    return ColumnExpr(index, column.name, column.type)
