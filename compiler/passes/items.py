"""`select`: from the items as written to the columns of the result.

The key columns of the result come first, listed or not. Listing one by its bare name changes nothing, with ``as`` it
renames it; a second listing is a copy. ``*`` is every column of an input except its key columns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.suggest import nearest, renamed
from vsc.compiler.diagnostics.wording import code, listed, named
from vsc.compiler.expressions import Scope, ScopeInput, type_expression
from vsc.compiler.passes.columns import equal_names, value_type_problem
from vsc.compiler.source import SourceFile, Span
from vsc.plan import Column, Item, Schema
from vsc.plan.record import record
from vsc.plan.types import VOID

__all__ = ["ItemRules", "Selected", "scope_input", "select", "visible"]


@record
class ItemRules:
    """What `select` needs to know about its node.

    `key` is the result's key before it is renamed. `own` names, by input and column, the columns that are the result's
    key for certain, so listing one by its qualified name lists the key. `starred` are the columns that ``*`` stands
    for, by input. `change` says what to write instead of giving a key column another value. `fixed` are the key columns
    that keep their names: the bounds of a window.
    """

    key: tuple[Column, ...]
    own: frozenset[tuple[str, str]]
    starred: tuple[tuple[str, tuple[Column, ...]], ...]
    change: str
    fixed: frozenset[str] = frozenset()


@record
class Selected:
    """The result's schema and its value columns; `schema` is None if an item is wrong."""

    schema: Schema | None
    items: tuple[Item, ...]
    findings: tuple[Finding, ...]


@record
class _Output:
    """A column of the result: its name and where it is written, its expression, and whether it comes from ``*``."""

    name: str
    name_span: Span
    expr: syntax.Expression
    text: str
    starred: bool = False


def select(source: SourceFile, items: Sequence[syntax.Item], scope: Scope, rules: ItemRules) -> Selected:
    """The columns that `items` make."""
    findings: list[Finding] = []
    renamed: dict[str, syntax.SelectItem] = {}
    outputs: list[_Output] = []
    unnamed = False
    for item in items:
        if isinstance(item, syntax.StarItem):
            outputs.extend(_expand(item, rules, findings))
            continue
        listed = _listed_key(item, scope, rules)
        if listed is not None and listed not in renamed:
            renamed[listed] = item
            continue
        name = _name_of(item, scope)
        if name is None:
            unnamed = True
            findings.extend(_nameless(source, item, scope))
            continue
        outputs.append(_Output(name.text, item.span, item.expr, source.slice(item.expr.span)))
    findings.extend(_fixed(renamed, rules))
    key = tuple(_renamed(column, renamed.get(column.name)) for column in rules.key)
    findings.extend(_clashes(key, renamed, outputs, rules))
    made, wrong = _typed(outputs, scope)
    findings.extend(wrong)
    complete = not unnamed and not wrong and not findings
    schema = Schema(key, tuple(Column(i.name, i.expr.type) for i in made)) if complete else None
    return Selected(schema, tuple(made), tuple(findings))


def _renamed(column: Column, item: syntax.SelectItem | None) -> Column:
    if item is None or item.alias is None:
        return column
    return Column(item.alias.text, column.type)


def _fixed(renamed: dict[str, syntax.SelectItem], rules: ItemRules) -> list[Finding]:
    return [
        Finding("VSC208", item.alias.span, f"`{name}` is a bound of the window and cannot be renamed", (),
                f"to copy it, list it as well: {code(f'{named(name)}, {named(name)} as {named(item.alias.text)}')}")
        for name, item in renamed.items()
        if name in rules.fixed and item.alias is not None and item.alias.text != name
    ]  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- listing


def _listed_key(item: syntax.SelectItem, scope: Scope, rules: ItemRules) -> str | None:
    """The key column that an item lists, if it does."""
    if not isinstance(item.expr, syntax.ColumnRef):
        return None
    names = {column.name for column in rules.key}
    match [part.text for part in item.expr.parts]:
        case [name] if name in names:
            return name
        case [qualifier, name] if item.alias is None and scope.input(qualifier) is not None:
            return name if (qualifier, name) in rules.own and name in names else None
        case _:
            return None


def _name_of(item: syntax.SelectItem, scope: Scope) -> syntax.Name | None:
    """The name of an item's column: after `as`, or its own if it is a plain column."""
    if item.alias is not None:
        return item.alias
    if not isinstance(item.expr, syntax.ColumnRef):
        return None
    parts = item.expr.parts
    plain = len(parts) == 1 or (len(parts) == 2 and scope.input(parts[0].text) is not None)
    return parts[-1] if plain else None


def _nameless(source: SourceFile, item: syntax.SelectItem, scope: Scope) -> list[Finding]:
    """What is wrong inside an item without a name; if nothing is, that its name is missing."""
    typed = type_expression(item.expr, scope)
    if typed.findings:
        return list(typed.findings)
    text = source.slice(item.expr.span)
    shown = text if len(text) <= 40 and "\n" not in text else "..."
    return [Finding("VSC207", item.span, "this column has no name", (), f"write {code(f'{shown} as NAME')}")]


# ------------------------------------------------------------------------------------------------------------- stars


def _expand(item: syntax.StarItem, rules: ItemRules, findings: list[Finding]) -> list[_Output]:
    qualifier = item.qualifier
    inputs = [name for name, _ in rules.starred]
    if qualifier is not None and qualifier.text not in inputs:
        near = nearest(qualifier.text, inputs)
        findings.append(
            Finding("VSC216", qualifier.span, f"there is no input `{qualifier.text}` here", (),
                    f"write {code(f'{named(near)}.*')}" if near else f"the inputs here are {listed(inputs)}",
                    renamed(qualifier.span, qualifier.text, inputs))
        )  # fmt: skip
        return []
    chosen = [(n, cs) for n, cs in rules.starred if qualifier is None or n == qualifier.text]
    columns = {column.name for _, found in chosen for column in found}
    findings.extend(_bad_exceptions(item, columns, {column.name for column in rules.key}))
    left_out = {name.text for name in item.excluded}
    return [
        _Output(column.name, item.span, _reference(name, column.name, item.span), f"{name}.{column.name}", True)
        for name, found in chosen
        for column in found
        if column.name not in left_out
    ]


def _bad_exceptions(item: syntax.StarItem, columns: Collection[str], key: Collection[str]) -> list[Finding]:
    findings = []
    for name in item.excluded:
        if name.text in columns:
            continue
        if name.text in key:
            message = f"`{name.text}` is a key column, which `*` does not include"
            findings.append(Finding("VSC209", name.span, message, (), "remove it: the key is always there"))
            continue
        near = nearest(name.text, columns)
        action, fix = f"write {code(named(near))}" if near else "remove it", renamed(name.span, name.text, columns)
        findings.append(Finding("VSC209", name.span, f"`*` has no column `{name.text}`", (), action, fix))
    return findings


def _reference(qualifier: str, column: str, span: Span) -> syntax.ColumnRef:
    return syntax.ColumnRef((syntax.Name(qualifier, span), syntax.Name(column, span)), span)


# ----------------------------------------------------------------------------------------------------------- results


def _clashes(
    key: Sequence[Column], renamed: dict[str, syntax.SelectItem], outputs: Sequence[_Output], rules: ItemRules
) -> list[Finding]:
    """Columns with the name of a key column or of each other."""
    keys = {column.name: old.name for column, old in zip(key, rules.key, strict=True)}
    findings = []
    listed: list[tuple[str, Span | None]] = []
    unlisted: list[tuple[str, Span | None]] = []
    for column, old in zip(key, rules.key, strict=True):
        item = renamed.get(old.name)
        (unlisted if item is None else listed).append((column.name, None if item is None else item.span))
    rest = []
    for output in outputs:
        if output.name in keys:
            findings.append(_key_clash(output, keys[output.name], renamed, rules))
        else:
            rest.append(output)
    names = [*unlisted, *listed, *((output.name, output.name_span) for output in rest)]
    for finding, index in equal_names(names, "VSC203"):
        help = finding.help
        if index >= len(key):
            again = rest[index - len(key)]
            help = "remove it: `*` already includes it" if _in_star(again, rest) else _other_name(again)
        findings.append(Finding(finding.code, finding.span, finding.message, finding.labels, help))
    return findings


def _in_star(again: _Output, outputs: list[_Output]) -> bool:
    """Whether a listed column is also part of a `*`."""
    column = isinstance(again.expr, syntax.ColumnRef) and again.expr.parts[-1].text == again.name
    return column and not again.starred and any(o.starred and o.name == again.name for o in outputs)


def _key_clash(output: _Output, old: str, renamed: dict[str, syntax.SelectItem], rules: ItemRules) -> Finding:
    if isinstance(output.expr, syntax.ColumnRef) and output.expr.parts[-1].text == output.name:
        labels = (Label(renamed[old].span, "the key column is listed here"),) if old in renamed else ()
        message = f"the result has a key column `{output.name}` already"
        return Finding("VSC203", output.name_span, message, labels, _other_name(output))
    return Finding("VSC208", output.name_span, f"this would change the key column `{output.name}`", (), rules.change)


def _other_name(output: _Output) -> str:
    if not isinstance(output.expr, syntax.ColumnRef):
        return "give it another name after `as`"
    names = [part.text for part in output.expr.parts]
    if output.starred:
        side, column = names
        form = f"{named(side)}.{named(column)} as {named(f'{side}_{column}')}"
        return f"write {code(form)}, or leave it out: {code(f'{named(side)}.* except ({named(column)})')}"
    other = "_".join(names) if len(names) > 1 else f"{names[0]}_2"
    form = f"{'.'.join(map(named, names))} as {named(other)}"
    return f"write {code(form)}"


def _typed(outputs: Sequence[_Output], scope: Scope) -> tuple[list[Item], list[Finding]]:
    made: list[Item] = []
    findings: list[Finding] = []
    for output in outputs:
        typed = type_expression(output.expr, scope)
        findings.extend(typed.findings)
        if typed.expr is None:
            continue
        if (problem := value_type_problem(typed.expr.type)) is not None:
            action = "write `cast(null as TYPE)`" if typed.expr.type == VOID else "give it another type"
            message = f"the column `{output.name}` has no type that can be kept: {problem}"
            findings.append(Finding("VSC215", output.expr.span, message, (), action))
            continue
        made.append(Item(output.name, typed.expr, output.text))
    return made, findings


def visible(read: syntax.Input) -> str:
    """The name under which an expression sees an input."""
    return read.alias.text if read.alias is not None else read.name.text


def scope_input(read: syntax.Input, index: int, schema: Schema) -> ScopeInput:
    """An input as an expression sees it."""
    hides = read.name.text if read.alias is not None and read.alias.text != read.name.text else None
    return ScopeInput(visible(read), index, schema, hides)
