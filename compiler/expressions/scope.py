"""What the names in an expression mean: the inputs that an expression sees, and how a name resolves to a column.

The rules, from ``docs/language.md``:

* The first part of ``a.b`` is an input if one has that name, else a column.
* An alias hides its input's name.
* The unqualified name of a key column means the result's key. Any other unqualified name that several inputs have is
  an error.
* A qualified name means that input's own value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.diagnostics.suggest import nearest, renamed
from vsc.compiler.diagnostics.wording import code, listed, named, string
from vsc.compiler.expressions.refusal import Refused, refuse
from vsc.plan.expressions import Call, Column, Expr, Literal
from vsc.plan.nodes import Schema
from vsc.plan.record import record
from vsc.plan.types import STRING, ArrayType, MapType, StructType

__all__ = ["CONSTANTS", "Functions", "Scope", "ScopeInput", "Typed", "field_of"]


@record
class Typed:
    """A typed expression. `expr` is None if and only if there are `findings`, all of them errors."""

    expr: Expr | None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class ScopeInput:
    """An input as an expression sees it.

    `name` is its alias, or the node's name if it has none. `hides` is the node's name if an alias hides it. `index` is
    the input's number in plan columns. `physical` maps a column's name to its name in the plan's schema of that input,
    where the two differ: a re-keyed input can keep its own column beside the key of the same name.
    """

    name: str
    index: int
    schema: Schema
    hides: str | None = None
    physical: Mapping[str, str] = field(default_factory=dict)

    def column(self, name: str) -> Column | None:
        """The column called `name`, as the plan refers to it; None if it does not exist."""
        for column in (*self.schema.key, *self.schema.value):
            if column.name == name:
                return Column(self.index, self.physical.get(name, name), column.type)
        return None

    def names(self) -> list[str]:
        """The names of all columns, key columns first."""
        return [column.name for column in (*self.schema.key, *self.schema.value)]


Functions = Mapping[str, syntax.FunctionDecl]
"""The functions that a topology declares, by name."""


def _ignored(finding: Finding) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Scope:
    """The inputs of an expression.

    `key` has the names of the result's key columns and the expressions that they mean; None means the key columns of
    the first input. `no_event_time` is set where `event_time` is not allowed: the message that says why, and the help.
    `event_time`: what ``event_time()`` means, if not the time of the first input.
    `aggregate` types calls of aggregate functions; if it is None, such calls are not allowed. `grouped` has the columns
    of the grouped rows; outside an aggregate call, only those that are grouped by can be used. `doubt` takes the
    warnings about expressions that are valid. `functions` are the user's, by name; `nodes` are all that there
    are. `joined` is the right input of a join, which its `on` does not see. `revision`: what ``revision()`` means; None
    where results are not corrected.
    """

    inputs: tuple[ScopeInput, ...]
    no_event_time: tuple[str, str] | None = None
    key: tuple[tuple[str, Expr], ...] | None = None
    aggregate: Callable[[syntax.FunctionCall], Typed] | None = None
    grouped: frozenset[str] = frozenset()
    doubt: Callable[[Finding], None] = _ignored
    event_time: Expr | None = None
    functions: Functions = field(default_factory=dict)
    nodes: Collection[str] = ()
    joined: str | None = None
    revision: Expr | None = None

    def input(self, name: str) -> ScopeInput | None:
        """The input called `name`; None if it does not exist."""
        return next((i for i in self.inputs if i.name == name), None)

    def key_column(self, name: str) -> Expr | None:
        """The expression that the unqualified `name` means if it is a column of the result's key; None otherwise."""
        if self.key is not None:
            return dict(self.key).get(name)
        if not self.inputs or name not in {column.name for column in self.inputs[0].schema.key}:
            return None
        return self.inputs[0].column(name)

    def resolve(self, reference: syntax.ColumnRef) -> Expr:
        """The column, or the field of a struct column, that `reference` names. Raises Refused."""
        first, *rest = reference.parts
        source = self.input(first.text)
        if source is not None and rest:
            typed: Expr = self._qualified(source, rest.pop(0))
        else:
            typed = self._bare(first, rest)
            self._refuse_misspelt(first, rest, typed)
        for part in rest:
            typed = field_of(typed, part)
        return typed

    def _qualified(self, source: ScopeInput, name: syntax.Name) -> Expr:
        column = source.column(name.text)
        if column is not None:
            return column
        if name.text in self.grouped:
            raise _not_grouped(name)
        raise refuse(
            "VSC110",
            name.span,
            f"`{source.name}` has no column `{name.text}`",
            _suggestion(name.text, source.names()) or f"its columns are {listed(source.names())}",
            renamed(name.span, name.text, source.names()),
        )

    def _bare(self, name: syntax.Name, rest: list[syntax.Name]) -> Expr:
        key = self.key_column(name.text)
        if key is not None:
            return key
        candidates = [(i, column) for i in self.inputs if (column := i.column(name.text)) is not None]
        if len(candidates) > 1:
            owners = [i.name for i, _ in candidates]
            raise refuse(
                "VSC111",
                name.span,
                f"`{name.text}` is a column of {listed(owners)}",
                f"say which one: {' or '.join(code(f'{named(owner)}.{named(name.text)}') for owner in owners)}",
            )
        if candidates:
            return candidates[0][1]
        if name.text in self.grouped:
            raise _not_grouped(name)
        raise self._unknown(name, rest)

    def refuse_column(self, name: syntax.Name) -> None:
        """Raises Refused if the constant `name` has the name of a column: neither hides the other."""
        owner = next((i.name for i in self.inputs if i.column(name.text) is not None), None)
        if owner is not None or self.key_column(name.text) is not None:
            qualified = f"write {code(f'{named(owner)}.{named(name.text)}')} for the column, or " if owner else ""
            whose = f"a column of `{owner}`" if owner else "a column of the key"
            raise refuse("VSC111", name.span, f"`{name.text}` is a constant, and {whose}",
                         f"{qualified}give the constant another name")  # fmt: skip

    def _refuse_misspelt(self, first: syntax.Name, rest: list[syntax.Name], found: Expr) -> None:
        """Raises Refused for ``rate.rate`` if `rate` is a column without fields and ``rates.rate`` is a column."""
        if not rest or isinstance(found.type, StructType | ArrayType | MapType):
            return
        near = nearest(first.text, [i.name for i in self.inputs])
        meant = None if near is None else self.input(near)
        if meant is not None and meant.column(rest[0].text) is not None:
            message = f"`{first.text}` is a column of type {found.type}, and has no fields"
            raise refuse("VSC114", first.span, message,
                         f"did you mean {code(f'{named(meant.name)}.{named(rest[0].text)}')}?",
                         renamed(first.span, first.text, [meant.name]))  # fmt: skip

    def _unknown(self, name: syntax.Name, rest: list[syntax.Name]) -> Refused:
        source = self.input(name.text)
        if source is not None:
            example = next(iter(source.names()), "column")
            message = f"`{name.text}` is an input here, not a column"
            return refuse(
                "VSC113",
                name.span,
                message,
                f"name one of its columns, like {code(f'{named(name.text)}.{named(example)}')}",
            )
        hidden = next((i for i in self.inputs if i.hides == name.text), None)
        if hidden is not None:
            message = f"`{name.text}` is called `{hidden.name}` here"
            help = f"write {code(named(hidden.name))} for it: the alias hides the name"
            return refuse("VSC113", name.span, message, help, Fix(name.span, named(hidden.name)) if rest else None)
        columns = sorted({column for i in self.inputs for column in i.names()})
        if self.key is not None:
            columns = sorted({*columns, *(key for key, _ in self.key)})
        if not rest:
            from vsc.compiler.expressions.elsewhere import instead_of_column  # only for a text with mistakes

            help = instead_of_column(name.text, _suggestion(name.text, columns)) or _columns_of(self.inputs)
            message, fix = f"there is no column `{name.text}`", renamed(name.span, name.text, columns)
            return refuse("VSC110", name.span, message, help, fix)
        if name.text == self.joined:
            help = f"write columns of {code(named(self.inputs[0].name))}: on the right is always the key"
            return refuse("VSC113", name.span, f"`on` does not see `{name.text}`, only the left input", help)
        if name.text in self.nodes and self.inputs:
            first, other = named(self.inputs[0].name), named(name.text)
            help = f"read both in a join: {code(f'join {first} with {other} on ... select ...')}"
            if len(self.inputs) > 1:
                help = f"join the result with {code(other)} in a statement of its own"
            return refuse("VSC113", name.span, f"`{name.text}` is not an input here", help)
        names = [*(i.name for i in self.inputs), *columns]
        help = _suggestion(name.text, names) or f"the inputs here are {listed([i.name for i in self.inputs])}"
        message, fix = f"there is no input and no column `{name.text}`", renamed(name.span, name.text, names)
        return refuse("VSC113", name.span, message, help, fix)


CONSTANTS = Scope((), ("a constant has no event time", "write `event_time()` where the constant is used"))
"""What the value of a constant sees: no row."""


def field_of(base: Expr, name: syntax.Name) -> Expr:
    """The field `name` of the struct `base`. Raises Refused if it has no such field or is not a struct.

    Unlike in Spark, an array of structs is refused as well.
    """
    if not isinstance(base.type, StructType):
        help = "only a struct has fields"
        if isinstance(base.type, ArrayType):
            help = "take an element of the array first, like `a[0].f`"
        elif isinstance(base.type, MapType):
            help = f"write {code(f'[{string(name.text)}]')} for the element of a map"
        raise refuse("VSC114", name.span, f"a value of type {base.type} has no field `{name.text}`", help)
    for member in base.type.fields:
        if member.name == name.text:
            return Call("get_field", (base, Literal(name.text, STRING)), member.type)
    names = [member.name for member in base.type.fields]
    message = f"the struct has no field `{name.text}`"
    help = _suggestion(name.text, names) or f"its fields are {listed(names)}"
    raise refuse("VSC114", name.span, message, help, renamed(name.span, name.text, names))


def _not_grouped(name: syntax.Name) -> Refused:
    message = f"the rows of a group can have different values of `{name.text}`"
    column = named(name.text)
    return refuse("VSC117", name.span, message, f"write {code(f'max({column})')}, or group by {code(column)} as well")


def _suggestion(name: str, candidates: list[str]) -> str | None:
    found = nearest(name, candidates)
    return None if found is None else f"did you mean {code(named(found))}?"


def _columns_of(inputs: tuple[ScopeInput, ...]) -> str:
    if not inputs or not any(i.names() for i in inputs):
        return "there are no columns here: write a constant expression"
    return "; ".join(f"`{i.name}` has {listed(i.names())}" for i in inputs if i.names())
