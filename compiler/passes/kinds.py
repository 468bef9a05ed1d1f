"""Streams and tables: every operation must read the right kind of node, and make the kind that was declared.

The rest of the compiler relies on the kinds found here. A node whose kind is uncertain has no entry, and what reads it
is not checked: the cause has been reported, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal as Choice

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Fix, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.source import Span
from vsc.compiler.topology import Topology

__all__ = ["JoinForm", "Kind", "Kinds", "check_kinds", "join_form", "steady"]

Kind = Choice["stream", "table", "global table"]
Kinds = Mapping[str, Kind]
JoinForm = Choice["stream-stream", "stream-table", "stream-global", "table-table"]


NO_REORDER = (
    "a look-up as of a time needs no order of arrival: let the stream that looks into the table wait, with the `grace` "
    "of its join"
)
"""What to do instead of reordering a table."""


def check_kinds(topology: Topology, order: tuple[str, ...]) -> tuple[Kinds, tuple[Finding, ...]]:
    """The kind of every node of `order` whose kind is certain, and what does not fit."""
    kinds: dict[str, Kind] = {}
    findings: list[Finding] = []
    for name in order:
        declaration = topology.nodes[name]
        if isinstance(declaration, syntax.SourceDecl):
            kinds[name] = declaration.kind
            findings.extend(_misplaced_in_source(declaration))
            continue
        wrong = _wrong_inputs(topology, kinds, declaration.operation)
        findings.extend(wrong)
        made = None if wrong else _made(kinds, declaration.operation)
        if made is None:
            continue
        if made != declaration.kind:
            findings.append(_mismatch(topology, declaration, made))
            continue
        kinds[name] = made
        findings.extend(_misplaced_clauses(topology, kinds, declaration.operation))
    nodes = (sink.name for sink in topology.sinks if topology.lost(sink) is None)
    findings.extend(_global(topology, name) for name in nodes if kinds.get(name.text) == "global table")
    return kinds, tuple(findings)


def join_form(kinds: Kinds, join: syntax.Join) -> JoinForm | None:
    """Which kind of join this is; None if the kinds of its inputs are unknown or cannot be joined.

    A join of two tables that is corrected takes the left one's rows like the records of a stream.
    """
    forms: dict[tuple[Kind | None, Kind | None], JoinForm] = {
        ("stream", "stream"): "stream-stream",
        ("stream", "table"): "stream-table",
        ("stream", "global table"): "stream-global",
        ("table", "table"): "table-table" if join.correct is None else "stream-table",
    }
    return forms.get((kinds.get(join.left.name.text), kinds.get(join.right.name.text)))


# ---------------------------------------------------------------------------------------------------------- results


def _made(kinds: Kinds, operation: syntax.Operation) -> Kind | None:
    match operation:
        case syntax.Filter(input=read) | syntax.Map(input=read) | syntax.Explode(input=read):
            return kinds.get(read.name.text)
        case syntax.Join():
            form = join_form(kinds, operation)
            of_tables = form == "table-table" or (form == "stream-table" and operation.correct is not None)
            return None if form is None else "table" if of_tables else "stream"
        case _:
            return operation.makes


def _mismatch(topology: Topology, declaration: syntax.DerivedDecl, made: Kind) -> Finding:
    operation = declaration.operation
    labels: tuple[Label, ...] = ()
    if isinstance(operation, syntax.Filter | syntax.Map | syntax.Explode | syntax.Join):
        deciding = operation.left if isinstance(operation, syntax.Join) else operation.input
        labels = (_declared(topology, deciding, made),)
    what = f"`{operation.word}`" if "_" in operation.word else f"this `{operation.word}`"
    return Finding(
        "VSC106", declaration.kind_span, f"{what} makes a {made}, not a {declaration.kind}", labels,
        f"write {code(f'{made} {named(declaration.name.text)} = ...')}", Fix(declaration.kind_span, made),
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- inputs


def _wrong_inputs(topology: Topology, kinds: Kinds, operation: syntax.Operation) -> list[Finding]:
    if isinstance(operation, syntax.Join):
        return _wrong_join(topology, kinds, operation)
    found = []
    for read in operation.inputs:
        kind, wanted = kinds.get(read.name.text), operation.reads
        if kind == "global table":
            found.append(_global(topology, read.name))
        elif kind is not None and wanted is not None and kind != wanted:
            found.append(_wrong_kind(topology, read, operation.word, wanted, kind))
        elif kind == "table" and isinstance(operation, syntax.Explode) and operation.position is None:
            found.append(_no_position(topology, read, operation.alias))
    return found


def _no_position(topology: Topology, read: syntax.Input, element: syntax.Name) -> Finding:
    message = f"`explode` of the table `{read.name.text}` needs the position of an element: it is part of its key"
    return Finding(
        "VSC107", element.span, message, (_declared(topology, read, "table"),),
        f"write {code(f'as (position, {named(element.text)})')}: what goes from an array is removed from the result",
    )  # fmt: skip


def _wrong_kind(topology: Topology, read: syntax.Input, word: str, wanted: Kind, kind: Kind) -> Finding:
    name = named(read.name.text)
    actions = {
        "suppress": f"aggregate {code(name)} into a table first",
        "materialize": f"turn it into a table first: {code(f'to_table {name}')}",
        "reorder": NO_REORDER,
        "to_stream": f"use {code(name)} as it is: it is a stream already",
        "to_table": f"use {code(name)} as it is, or {code(f'materialize {name}')}: it is a table already",
    }
    action = actions.get(word, f"turn it into a stream first: {code(f'to_stream {name}')}")
    return Finding(
        "VSC107", read.span, f"`{word}` reads a {wanted}, but `{read.name.text}` is a {kind}",
        (_declared(topology, read, kind),), action,
    )  # fmt: skip


def _global(topology: Topology, name: syntax.Name) -> Finding:
    declaration = topology.nodes[name.text]
    label = Label(declaration.kind_span.to(declaration.name.span), f"`{name.text}` is a global table")
    message = f"the global table `{name.text}` can only be joined with a stream, on its right side"
    return Finding("VSC120", name.span, message, (label,), f"declare {code(named(name.text))} as `table`")


def _wrong_join(topology: Topology, kinds: Kinds, join: syntax.Join) -> list[Finding]:
    left, right = kinds.get(join.left.name.text), kinds.get(join.right.name.text)
    if left is None or right is None:
        return []
    if left == "stream" and right == "stream" and join.within is None:
        return [_two_streams(topology, join)]
    if left == "global table":
        return [_global(topology, join.left.name)]
    if left == "table" and right == "global table":
        return [_global(topology, join.right.name)]
    if left == "table" and right == "stream":
        return [_swapped(topology, join)]
    return []


def _two_streams(topology: Topology, join: syntax.Join) -> Finding:
    left, right = join.left.name.text, join.right.name.text
    mode = "" if join.mode == "inner" else f"{join.mode} "
    return Finding(
        "VSC108", join.right.span, f"a join of two streams needs `within`: `{left}` and `{right}`",
        (_declared(topology, join.left, "stream"), _declared(topology, join.right, "stream")),
        "say how far apart in time records may be that meet: "
        + code(f"{mode}join {named(left)} with {named(right)} within 1 hour ..."),
    )  # fmt: skip


def _swapped(topology: Topology, join: syntax.Join) -> Finding:
    left, right = join.left.name.text, join.right.name.text
    return Finding(
        "VSC107", join.left.span.to(join.right.span),
        f"a stream goes on the left of a join and a table on the right, but `{left}` is a table and `{right}` a stream",
        (_declared(topology, join.left, "table"), _declared(topology, join.right, "stream")),
        f"write {code(f'join {named(right)} with {named(left)}')}",
    )  # fmt: skip


def _declared(topology: Topology, read: syntax.Input, kind: Kind) -> Label:
    declaration = topology.nodes[read.name.text]
    return Label(declaration.kind_span.to(declaration.name.span), f"`{read.name.text}` is a {kind}")


# ---------------------------------------------------------------------------------------------------------- clauses


def _misplaced_clauses(topology: Topology, kinds: Kinds, operation: syntax.Operation) -> list[Finding]:
    match operation:
        case (
            syntax.Filter(input=read, materialize=clause)
            | syntax.Map(input=read, materialize=clause)
            | syntax.Explode(input=read, materialize=clause)
        ):
            stream, time = kinds.get(read.name.text) == "stream", getattr(operation, "timestamp", None)
            if clause is not None and stream:
                return [_no_store(clause)]
            return [] if time is None or stream else [_no_time(time, read)]
        case syntax.Aggregate(input=read, window=window, materialize=clause):
            if window is not None and kinds.get(read.name.text) == "table":
                wrong = _no_window(topology, kinds, window, read)
                if not wrong and clause is not None and window.emit == "final":
                    message = "final windows of a table are not stored: they come out once"
                    wrong = [_misplaced(clause.span, message, "remove the clause, or `materialize` them on their own")]
                return wrong
            return []
        case syntax.Join():
            return _misplaced_in_join(kinds, operation)
        case _:
            return []


def _misplaced_in_source(source: syntax.SourceDecl) -> list[Finding]:
    if source.kind != "stream":
        if source.reordered is None:
            return []
        message = f"`{source.name.text}` is a table, whose rows do not wait for earlier ones"
        return [_misplaced(source.reordered.span, message, NO_REORDER)]
    found = []
    if source.materialize is not None:
        found.append(_no_store(source.materialize))
    if source.delete_when is not None:
        found.append(_misplaced(source.delete_when.span, "a stream has no rows to delete",
                                "remove `delete when`, or declare a `table`"))  # fmt: skip
    return found


def _misplaced_in_join(kinds: Kinds, join: syntax.Join) -> list[Finding]:
    form = join_form(kinds, join)
    if form == "stream-stream":
        return _misplaced_with_within(join)
    wrong: list[Finding] = []
    if join.within is not None:
        wrong.append(_misplaced(join.within.span, "only a join of two streams has `within`",
                                "remove the clause: a table's row meets records of any time"))  # fmt: skip
    if form != "stream-table":
        wrong.extend(
            _misplaced(part.alias.span, "the result keeps the key of the left input: `on` cannot rename columns here",
                       f"remove {code(f'as {named(part.alias.text)}')}")
            for part in join.on if part.alias is not None
        )  # fmt: skip
    if form == "table-table":
        if join.grace is not None:
            wrong.append(_misplaced(join.grace.span, "a join of two tables has no `grace`: it does not wait",
                                    "remove the `grace` clause"))  # fmt: skip
        if join.mode == "outer" and join.on:
            wrong.append(_misplaced(join.mode_span, "an `outer` join uses the key of both tables, without `on`",
                                    "write `left join`, or leave out `on`"))  # fmt: skip
        return wrong
    if join.mode == "outer":
        wrong.append(_misplaced(join.mode_span, "a join of a stream with a table cannot be `outer`: the stream side is "
                                "always there", "write `left join`: it keeps every record of the stream"))  # fmt: skip
    if join.materialize is not None and (join.correct is None or form == "stream-global"):
        wrong.append(_no_store(join.materialize))
    if form == "stream-global":
        if join.grace is not None:
            wrong.append(_misplaced(join.grace.span, "a join with a global table has no `grace`: it keeps no history",
                                    "remove the `grace` clause"))  # fmt: skip
        if not join.on:
            wrong.append(_misplaced(join.right.span, "a join with a global table needs `on`",
                                    f"write {code(f'with {named(join.right.name.text)} on ...')}"))  # fmt: skip
    return wrong


def _misplaced_with_within(join: syntax.Join) -> list[Finding]:
    """What does not belong to a join of two streams."""
    found = []
    if join.on:
        rekey = f"rekey {named(join.left.name.text)} by ..."
        found.append(_misplaced(join.on[0].span.to(join.on[-1].span), "two streams are joined by their keys, without "
                                "`on`", f"give a stream another key first: {code(rekey)}"))  # fmt: skip
    if join.materialize is not None:
        found.append(_no_store(join.materialize))
    return found


def _no_store(clause: syntax.MaterializeClause) -> Finding:
    return _misplaced(
        clause.span, "a stream has no store to materialize",
        "remove the clause, or make a table of the stream: `to_table ... materialize ...`",
    )  # fmt: skip


def _no_time(time: syntax.Expression, read: syntax.Input) -> Finding:
    name = read.name.text
    return _misplaced(
        time.span, f"`{name}` is a table: its rows are valid from the time of the change that brought them",
        f"remove the `timestamp` clause, or write it where {code(named(name))} is made of a stream",
    )  # fmt: skip


def _no_window(topology: Topology, kinds: Kinds, window: syntax.Window, read: syntax.Input) -> list[Finding]:
    """Refuses windows over a table, unless the times of its rows never change."""
    name = read.name.text
    if not steady(topology, kinds, name):
        message = f"`{name}` is a table whose rows get new times: a row would leave one window and enter another"
        help = "remove the `window` clause; streams have windows, and tables that a join with `correct` makes"
        return [_misplaced(window.span, message, help)]
    return []


def steady(topology: Topology, kinds: Kinds, name: str) -> bool:
    """Whether the times of a table's rows never change: it is the result of a join with `correct`, perhaps filtered and
    mapped."""
    declaration = topology.nodes.get(name)
    while isinstance(declaration, syntax.DerivedDecl):
        match declaration.operation:
            case syntax.Join() as join:
                return join.correct is not None and join_form(kinds, join) == "stream-table"
            case syntax.Filter(input=read, materialize=None) | syntax.Map(input=read, materialize=None):
                declaration = topology.nodes.get(read.name.text)
            case _:
                return False
    return False


def _misplaced(span: Span, message: str, action: str) -> Finding:
    return Finding("VSC109", span, message, (), action)
