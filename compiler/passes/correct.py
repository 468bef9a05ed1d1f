"""`correct`: which joins can be corrected, and for how long (VSC317, VSC318)."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import JoinForm, Kinds, join_form, steady
from vsc.compiler.passes.options import too_long
from vsc.compiler.passes.stores import Stores
from vsc.compiler.passes.survey import Survey
from vsc.compiler.passes.versioning import Statuses, way_labels
from vsc.compiler.topology import Topology
from vsc.plan import Column, Item
from vsc.plan.expressions import Column as ColumnExpr
from vsc.plan.words import duration

__all__ = ["check_correct"]

_NOT_OF: dict[JoinForm, str] = {
    "stream-stream": "two streams: pairs are found whatever their order",
    "stream-global": "a global table: it keeps no history",
}


def check_correct(survey: Survey) -> tuple[Finding, ...]:
    """What is wrong with the joins that have a `correct`."""
    topology, kinds, shapes = survey.topology, survey.kinds, survey.shapes
    found: list[Finding] = []
    for name in survey.order:
        declaration = topology.nodes[name]
        if isinstance(declaration, syntax.DerivedDecl) and isinstance(declaration.operation, syntax.Join):
            join = declaration.operation
            if join.correct is not None:
                found.extend(_checked(survey, join, join.correct))
                if kinds.get(join.left.name.text) == "table":
                    key = shapes[join.left.name.text].schema.key if join.left.name.text in shapes else ()
                    of = shapes[name].by if name in shapes else ()
                    found.extend(_of_table(topology, join, join.correct, kinds, of, key))
    return tuple(found)


def _checked(survey: Survey, join: syntax.Join, correct: syntax.Correct) -> Iterator[Finding]:
    topology, kinds, stores, statuses = survey.topology, survey.kinds, survey.stores, survey.statuses
    form = join_form(kinds, join)
    if form is not None and form != "stream-table":
        message = f"there is no `correct` in a join of {_NOT_OF[form]}"
        yield Finding("VSC317", correct.span, message, (), "remove the `correct` clause")
        return
    if survey.settled_clock == "records":
        message = (
            "`correct` goes by the clock of the input: by that of the records, what is final depends on partitions"
        )
        help = f"remove `correct`, or use the clock of the input: {code(f'topology {named(topology.name)};')}"
        yield Finding("VSC317", correct.span, message, (), help)
    if not correct.by and kinds.get(join.left.name.text) == "stream":
        name = named(join.left.name.text)
        message = f"what names one record of `{join.left.name.text}` is missing: its result replaces the one before"
        yield Finding("VSC210", correct.span, message, (), f"write {code('correct by ID within ...')}, where ID is a "
                      f"column of {code(name)} that no two records share")  # fmt: skip
    yield from _lengths(topology, join, correct, stores, statuses)


def _of_table(
    topology: Topology,
    join: syntax.Join,
    correct: syntax.Correct,
    kinds: Kinds,
    by: tuple[Item, ...],
    key: tuple[Column, ...],
) -> Iterator[Finding]:
    """What is wrong with a corrected join of a table that has this key, `by` which its results are named."""
    left = join.left
    name = left.name.text
    if not steady(topology, kinds, name):
        message = f"`{name}` is a table whose rows get new times: what was joined with one would not be found again"
        help = "remove the `correct` clause; streams are corrected, and tables that a join with `correct` makes"
        yield Finding("VSC317", correct.span, message, (Label(left.span, "the left input"),), help)
        return
    if join.grace is not None:
        message = f"the rows of `{name}` do not wait: they have been given out, and are corrected"
        label = Label(left.span, "the result of a join with `correct`")
        yield Finding("VSC317", join.grace.span, message, (label,), "write `grace` in the first of the joins")
    if by and [item.expr for item in by] != [ColumnExpr(0, column.name, column.type) for column in key]:
        written = ", ".join(named(column.name) for column in key)
        message = f"results of the table `{name}` have its key: an update replaces the result before"
        label = Label(left.span, f"its key is ({written})")
        help = f"leave out `by`, or write {code(f'by {written}')}"
        yield Finding("VSC317", correct.by[0].span.to(correct.by[-1].span), message, (label,), help)


def _lengths(
    topology: Topology, join: syntax.Join, correct: syntax.Correct, stores: Stores, statuses: Statuses
) -> Iterator[Finding]:
    if (wrong := too_long(correct.within, "VSC125")) is not None:
        yield wrong
        return
    waits = None if join.grace is None else join.grace.duration
    if isinstance(waits, syntax.Duration) and waits.milliseconds > correct.within.milliseconds:
        yield Finding(
            "VSC318", waits.span, "a record waits for longer than its results are corrected",
            (Label(correct.within.span, "`within` begins at the record's time, as `grace` does"),),
            f"make `grace` no longer than {duration(correct.within.milliseconds)}, or remove `correct`",
        )  # fmt: skip
    table, status = join.right.name.text, statuses.get(join.right.name.text)
    if status is None:
        return
    if not status.versioned:
        decider = code(named(status.decided_by))
        yield Finding(
            "VSC317", correct.span, f"`correct` needs a versioned table, but `{table}` is unversioned",
            way_labels(topology, table, status),
            f"materialize {decider} versioned, as in `materialize versioned (retention = 7 days)`",
        )  # fmt: skip
        return
    clause = stores.clauses.get(status.decided_by)
    if clause is None or clause.store is None or clause.store.retention is None:
        return
    needed = correct.within.milliseconds + (join.strictly_before is not None)
    if needed > clause.store.retention:
        assert clause.retention_span is not None
        cause = Label(clause.retention_span, f"`{status.decided_by}` keeps its history for no longer than this")
        yield Finding(
            "VSC318", correct.span,
            f"results cannot be corrected for {duration(correct.within.milliseconds)}: `{table}` keeps its history for "
            f"{duration(clause.store.retention)}",
            (cause, *way_labels(topology, table, status)),
            f"make `within` shorter, or raise the retention of {code(named(status.decided_by))} to {duration(needed)} "
            "or more",
        )  # fmt: skip
