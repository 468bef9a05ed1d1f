"""`merge`: how its streams differ, and the text that brings one into the form of the first."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions import Scope
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult
from vsc.plan import Merge, Schema
from vsc.plan.types import DataType
from vsc.plan.words import article

__all__ = ["merge_shape"]

_MOST = 4


def merge_shape(known: Known, operation: syntax.Merge, schema: Schema, scope: Scope) -> ShapeResult:
    """The first stream's columns, which all others must have."""
    shapes = [known.shapes.get(read.name.text) for read in operation.inputs]
    findings = list(_merged_twice(operation))
    for read, shape in zip(operation.inputs[1:], shapes[1:], strict=True):
        stream = known.is_stream(read)  # all else is refused as that
        if not stream or shape is None:
            continue
        head = operation.inputs[0]
        differs = _difference(read.name.text, shape.schema, head.name.text, schema)
        if differs is not None:
            label = Label(head.span, "the first stream of this `merge`")
            findings.append(Finding("VSC218", read.span, differs[0], (label,), differs[1]))
    return Shape(schema, Merge()), findings


def _merged_twice(merge: syntax.Merge) -> Iterator[Finding]:
    first: dict[str, syntax.Input] = {}
    for read in merge.inputs:
        if (earlier := first.setdefault(read.name.text, read)) is not read:
            message = f"{code(named(read.name.text))} is merged with itself: each of its records comes twice"
            yield Finding("VSC341", read.span, message, (Label(earlier.span, "first here"),), "remove one of them")


def _difference(name: str, schema: Schema, head: str, wanted: Schema) -> tuple[str, str] | None:
    """How the stream `name` differs from the first one, `head`, and what to write; None if it does not."""
    key, wanted_key = ([(c.name, c.type) for c in s.key] for s in (schema, wanted))
    if key != wanted_key:
        message = f"`{name}` has {_key_text(key)}, and `{head}` has {_key_text(wanted_key)}"
        if not wanted_key:
            rekey = code(f"rekey {named(head)} by ...")
            return message, f"give {code(named(head))} the key of {code(named(name))} as well: {rekey}"
        items = [_key_item(column, type, schema) for column, type in wanted_key]
        rekey = f"rekey {named(name)} by {', '.join(items)}"
        return message, f"give it the same key: {code(rekey)}"
    own, columns = ({c.name: c.type for c in s.value} for s in (schema, wanted))
    extra = [column for column in own if column not in columns]
    missing = [column for column in columns if column not in own]
    other = [column for column in columns if column in own and columns[column] != own[column]]
    if not (extra or missing or other):
        return None
    told = [f"`{name}` lacks {_names(missing)}"] * bool(missing)
    told += [f"`{head}` lacks {_names(extra)}, which `{name}` has"] * bool(extra)
    told += [
        f"`{column}` is {article(own[column])} in `{name}` and {article(columns[column])} in `{head}`"
        for column in other[:_MOST]
    ]
    star = f"* except ({', '.join(map(named, (*extra, *other)))})" if extra or other else "*"
    items = [f"cast(null as {columns[column]}) as {named(column)}" for column in missing]
    items += [f"cast({named(column)} as {columns[column]}) as {named(column)}" for column in other]
    form = f"map {named(name)} select {', '.join([star, *items])}"
    return "; ".join(told), f"bring it into the same form: {code(form)}"


def _key_text(key: list[tuple[str, DataType]]) -> str:
    return f"the key ({', '.join(f'{name} {type}' for name, type in key)})" if key else "no key"


def _key_item(column: str, type: DataType, schema: Schema) -> str:
    """The item of a key column, made from the column of that name if the stream has one."""
    found = {c.name: c.type for c in (*schema.key, *schema.value)}.get(column)
    if found is None:
        return f"... as {named(column)}"
    return named(column) if found == type else f"cast({named(column)} as {type}) as {named(column)}"


def _names(columns: list[str]) -> str:
    shown = [f"`{column}`" for column in columns[:_MOST]]
    return ", ".join(shown) + (f" and {len(columns) - _MOST} more" if len(columns) > _MOST else "")
