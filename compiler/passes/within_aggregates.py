"""What came before each record: a join of two streams whose items aggregate the right one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions import AggregateCalls, Scope, is_aggregate_call
from vsc.compiler.expressions.bounds import parts_of
from vsc.compiler.passes.items import ItemRules, scope_input, select, visible
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult
from vsc.compiler.passes.stream_joins import Bounds
from vsc.plan import Call, Item, Schema, WithinAggregate
from vsc.plan.expressions import Column, Literal, parts, with_columns

__all__ = ["has_calls", "within_shape"]


def has_calls(join: syntax.Join) -> bool:
    """Whether an item of a join calls an aggregate."""
    waiting = [item.expr for item in join.items if isinstance(item, syntax.SelectItem)]
    while waiting:
        part = waiting.pop()
        if is_aggregate_call(part):
            return True
        waiting.extend(parts_of(part))
    return False


def within_shape(known: Known, join: syntax.Join, of_left: Scope, right: Schema, bounds: Bounds) -> ShapeResult:
    """The shape of a join of two streams whose items aggregate the right one; `of_left` sees the left one."""
    wrong = list(_misplaced(join, bounds))
    if wrong:
        return None, wrong
    left, name = of_left.inputs[0].schema, visible(join.left)
    rows = scope_input(join.right, 0, right)
    calls = AggregateCalls(known.source, replace(of_left, inputs=(rows,)), bounds.before)
    seen = replace(rows, index=1, schema=Schema((), ()))
    scope = replace(
        of_left, inputs=(scope_input(join.left, 0, left), seen), aggregate=calls.take, grouped=frozenset(rows.names())
    )
    own = frozenset((name, column.name) for column in left.key)
    rules = ItemRules(left.key, own, ((name, left.value),), "give the column another name")
    selection = select(known.source, join.items, scope, rules)
    findings = [_of_right(join, finding) for finding in selection.findings]
    items = tuple(replace(item, expr=with_columns(item.expr, _of_calls)) for item in selection.items)
    findings += _times_of_right(join, items)
    if selection.schema is None or findings:
        return None, findings
    operation = WithinAggregate(
        join.mode == "left", bounds.before, bounds.after, bounds.grace, join.strictly_before is not None,
        calls.calls, calls.overs, items,
    )  # fmt: skip
    return Shape(selection.schema, operation, items=items), []


def _misplaced(join: syntax.Join, bounds: Bounds) -> Iterator[Finding]:
    assert join.within is not None
    if join.mode == "outer":
        yield Finding("VSC109", join.mode_span, "a join that aggregates its right stream gives one result for each "
                      "left record: it cannot be `outer`", (), "write `left join`")  # fmt: skip
    if not bounds.before + bounds.after:
        yield Finding("VSC125", join.within.span, "`before` or `after` of `within` has to be longer than zero", (),
                      "write how far back it looks: `within (before = 7 days)`")  # fmt: skip
    if join.strictly_before is not None and bounds.after:
        yield Finding("VSC109", join.strictly_before, "with `strictly before`, only earlier records count: there is no "
                      "`after`", (), "remove one of the two: `within (before = 7 days) strictly before`")  # fmt: skip


def _of_right(join: syntax.Join, finding: Finding) -> Finding:
    """A column of the right stream outside of a call, or of the left one inside, in the words of such a join."""
    left, name = visible(join.left), visible(join.right)
    if finding.code == "VSC113" and finding.message.startswith(code(left)):
        message = f"a call aggregates columns of {code(named(name))}, not of {code(named(left))}"
        return replace(finding, message=message, help=f"read {code(named(left))} outside of the call")
    if finding.code != "VSC117":
        return finding
    message = f"each record of {code(named(left))} has many of {code(named(name))}"
    return replace(finding, message=message, help=f"aggregate its columns: {code(f'last({named(name)}.COLUMN)')}")


def _times_of_right(join: syntax.Join, items: tuple[Item, ...]) -> Iterator[Finding]:
    for item, written in zip(items, join.items, strict=False):
        for part in parts(item.expr):
            if isinstance(part, Call) and part.function == "event_time" and part.args:
                which = part.args[0]
                if isinstance(which, Literal) and which.value == 1:
                    message = f"each record has many of {code(named(visible(join.right)))}, each with its own time"
                    yield Finding("VSC116", written.span, message, (), "aggregate it: `max(event_time())`")


def _of_calls(column: Column) -> Column:
    """The results of calls are columns of input 1."""
    return replace(column, input=1) if column.name.startswith("#") else column
