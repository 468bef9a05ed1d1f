"""The key of a node's records: declared, given by `on` or `by`, or inherited.

The `on` of a join sees its left input only. Its number, order and types are those of the right table's key; types are
widened if that loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Fix, Label
from vsc.compiler.diagnostics.suggest import nearest, renamed
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions import Scope, coerce, type_expression
from vsc.compiler.passes.columns import equal_names, key_type_problem
from vsc.compiler.source import SourceFile, Span
from vsc.plan import Column, Item, Schema
from vsc.plan.expressions import Column as ColumnExpr
from vsc.plan.expressions import Expr, Literal
from vsc.plan.record import record
from vsc.plan.words import article

__all__ = ["JoinKey", "declared_key", "different_keys", "equal_keys", "is_key", "join_on", "new_key", "under_key"]


@record
class JoinKey:
    """The key on which the inputs of a join match: its columns, and the expressions of `on`, if it is written.

    `complete` is false if a part of `on` is wrong (and reported).
    """

    columns: tuple[Column, ...]
    on: tuple[Item, ...] = ()
    complete: bool = True


def is_key(items: Sequence[Item], schema: Schema) -> bool:
    """Whether `items` are the columns of the key as they are, so that under them records stay where they are."""
    return [item.expr for item in items] == [ColumnExpr(0, column.name, column.type) for column in schema.key]


def declared_key(source: syntax.SourceDecl) -> tuple[tuple[str, ...], list[Finding]]:
    """The valid key columns of a source, and what is wrong with the others."""
    columns = {column.name.text: column for column in source.columns}
    findings: list[Finding] = []
    key: dict[str, syntax.Name] = {}
    for name in source.key:
        column = columns.get(name.text)
        if column is None:
            near = nearest(name.text, columns)
            findings.append(
                Finding("VSC204", name.span, f"`{source.name.text}` has no column `{name.text}` for its key", (),
                        f"write {code(named(near))}" if near else "declare the column, or choose another one",
                        renamed(name.span, name.text, columns))
            )  # fmt: skip
        elif name.text in key:
            findings.append(
                Finding("VSC206", name.span, f"`{name.text}` is in the key twice",
                        (Label(key[name.text].span, "first here"),), "remove one of them",
                        _without(source.key, name))
            )  # fmt: skip
        else:
            key[name.text] = name
            if (problem := key_type_problem(column.type.type)) is not None:
                findings.append(
                    Finding("VSC205", name.span, f"`{name.text}` cannot be a key: {problem}",
                            (Label(column.type.span, f"its type is {column.type.type}"),),
                            "choose another column, or another type for it")
                )  # fmt: skip
    if not source.key and source.kind != "stream":
        findings.append(
            Finding("VSC210", source.name.span, f"the table `{source.name.text}` has no key", (), "add `key COLUMN`")
        )
    return tuple(key), findings


def _without(names: Sequence[syntax.Name], one: syntax.Name) -> Fix:
    """The list without `one`, which is not its first name."""
    before = names[names.index(one) - 1]
    return Fix(Span(before.span.end, one.span.end), "")


def _write_on(join: syntax.Join, right: Schema) -> str:
    table = code(named(join.right.name.text))
    return f"write `on EXPR` with expressions for the key {_listed(right.key)} of {table}"


def equal_keys(join: syntax.Join, left: Schema, right: Schema) -> tuple[JoinKey | None, list[Finding]]:
    """The key of a join without `on`, which both inputs have; its names are those of the left input."""
    if not left.key:
        name = join.left.name.text
        return None, [
            Finding("VSC210", join.left.span, f"`{name}` has no key to join by", (),
                    _write_on(join, right))
        ]  # fmt: skip
    if [c.type for c in left.key] == [c.type for c in right.key]:
        return JoinKey(left.key), []
    return None, [different_keys(join, left, right, _write_on(join, right))]


def different_keys(join: syntax.Join, left: Schema, right: Schema, help: str) -> Finding:
    """That the inputs of a join have different keys, and what to do about it."""
    return Finding(
        "VSC211", join.right.span,
        f"`{join.left.name.text}` and `{join.right.name.text}` have different keys",
        (Label(join.left.span, f"its key is {_listed(left.key)}"),
         Label(join.right.span, f"its key is {_listed(right.key)}")),
        help,
    )  # fmt: skip


def join_on(source: SourceFile, join: syntax.Join, right: Schema, scope: Scope) -> tuple[JoinKey, list[Finding]]:
    """The key that `on` gives, and what is wrong with it."""
    findings: list[Finding] = []
    items: list[Item] = []
    columns: list[Column] = []
    if len(join.on) != len(right.key):
        findings.append(
            Finding(
                "VSC212", join.on[0].span.to(join.on[-1].span),
                f"`on` has {_count(len(join.on))}, but `{join.right.name.text}` has a key of {_count(len(right.key))}",
                (Label(join.right.span, f"its key is {_listed(right.key)}"),),
                f"give one expression for each of {_listed(right.key)}",
            )
        )  # fmt: skip
    for part, wanted in zip(join.on, right.key, strict=False):
        typed = type_expression(part.expr, scope)
        findings.extend(typed.findings)
        name = part.alias.text if part.alias is not None else wanted.name
        columns.append(Column(name, wanted.type))
        if typed.expr is None:
            continue
        fitting = coerce(typed.expr, wanted.type)
        if fitting is None:
            findings.append(
                Finding(
                    "VSC212", part.expr.span,
                    f"this is {article(typed.expr.type)}, but `{wanted.name}`, the key of `{join.right.name.text}`, "
                    f"is {article(wanted.type)}",
                    (Label(join.right.span, f"its key is {_listed(right.key)}"),),
                    f"write {code(f'cast({source.slice(part.expr.span)} as {wanted.type})')}, "
                    "if that is what you mean",
                )
            )  # fmt: skip
        else:
            items.append(Item(name, fitting, source.slice(part.expr.span)))
    columns.extend(right.key[len(columns) :])
    names = [(c.name, p.alias.span if p.alias else p.span) for c, p in zip(columns, join.on, strict=False)]
    findings.extend(finding for finding, _ in equal_names(names, "VSC203"))
    complete = len(items) == len(right.key) == len(join.on)
    return JoinKey(tuple(columns), tuple(items), complete), findings


def _named(key: Expr, source: SourceFile, part: syntax.KeyItem) -> str:
    """The help for a key column without a name."""
    if isinstance(key, Literal) and isinstance(key.value, int):
        return "write the column itself: a number does not refer to a column"
    return f"write {code(f'{source.slice(part.span)} as NAME')}"


def new_key(
    source: SourceFile, parts: Sequence[syntax.KeyItem], scope: Scope
) -> tuple[tuple[Item, ...], list[Finding]]:
    """The key columns of a `rekey`: named expressions of types that a key can have."""
    items: list[Item] = []
    findings: list[Finding] = []
    for part in parts:
        typed = type_expression(part.expr, scope)
        findings.extend(typed.findings)
        if typed.expr is None:
            continue
        name = part.alias.text if part.alias is not None else _plain_name(typed.expr)
        if name is None:
            findings.append(
                Finding("VSC207", part.span, "this key column has no name", (), _named(typed.expr, source, part))
            )  # fmt: skip
        elif (problem := key_type_problem(typed.expr.type)) is not None:
            findings.append(
                Finding("VSC205", part.expr.span, f"{article(typed.expr.type)} cannot be a key: {problem}", (),
                        "choose another expression")
            )  # fmt: skip
        else:
            items.append(Item(name, typed.expr, source.slice(part.expr.span)))
    if len(items) == len(parts):
        names = [(item.name, part.span) for item, part in zip(items, parts, strict=True)]
        findings.extend(finding for finding, _ in equal_names(names, "VSC203"))
    return tuple(items), findings


def under_key(schema: Schema, on: tuple[Item, ...]) -> tuple[Schema, tuple[Item, ...]]:
    """A stream under the key that `on` computes, and the expressions of that key.

    A plain column of the new key moves into it; all other columns stay where they are, under their names.
    """
    names = {column.name for column in (*schema.key, *schema.value)}
    key: list[Column] = []
    for index, item in enumerate(on):
        plain = isinstance(item.expr, ColumnExpr) and item.expr.name not in {column.name for column in key}
        name = item.expr.name if isinstance(item.expr, ColumnExpr) and plain else f"on#{index}"
        while not plain and name in names:
            name += "#"
        key.append(Column(name, item.expr.type))
    moved = {column.name for column in key}
    value = tuple(column for column in (*schema.key, *schema.value) if column.name not in moved)
    items = tuple(Item(column.name, item.expr, item.text) for column, item in zip(key, on, strict=True))
    return Schema(tuple(key), value), items


def _plain_name(expr: Expr) -> str | None:
    return expr.name if isinstance(expr, ColumnExpr) else None


def _count(number: int) -> str:
    return f"{number} column{'' if number == 1 else 's'}"


def _listed(key: Sequence[Column]) -> str:
    return "(" + ", ".join(f"{column.name} {column.type}" for column in key) + ")"
