"""Finds the names of a topology: nodes, aliases of inputs, and columns across all statements that hand them on.

It follows the compiler's rules for what a name means (``docs/language.md``), but reports nothing: it skips a name that
it cannot resolve.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from vsc.compiler import syntax
from vsc.compiler.driver import Surveyed
from vsc.compiler.passes.kinds import join_form
from vsc.compiler.passes.survey import Survey
from vsc.compiler.source import Span
from vsc.lsp.symbols import Names, Occurrence, Symbol
from vsc.plan import Schema
from vsc.plan.functions import AGGREGATES
from vsc.plan.record import record

__all__ = ["names_of"]


def names_of(known: Surveyed) -> Names:
    """The names of a text."""
    finder = _Finder(known.survey)
    for statement in known.file.statements:
        finder.statement(statement)
    return Names(finder.found, finder.links, finder.calls)


@record
class _Scope:
    """The inputs that an expression sees, by the names that it uses, and what unqualified key names mean."""

    inputs: Mapping[str, syntax.Input]
    key: Mapping[str, Symbol]


class _Finder:
    """Collects occurrences, and links between columns that are the same."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._functions = survey.topology.functions
        self.found: list[Occurrence] = []
        self.links: list[tuple[Symbol, Symbol]] = []
        self.calls: list[tuple[Span, str]] = []

    def statement(self, statement: syntax.Statement) -> None:
        """Finds the names of a statement."""
        match statement:
            case syntax.ConstantDecl(name=name, value=value):
                self._add(name, Symbol("constant", "", name.text), True)
                self._walk(value, _Scope({}, {}))
            case syntax.FunctionDecl(name=name):
                self._add(name, Symbol("function", "", name.text), True)
            case syntax.SourceDecl():
                self._add(statement.name, Symbol("node", "", statement.name.text), True)
                self._source(statement)
            case syntax.DerivedDecl():
                self._add(statement.name, Symbol("node", "", statement.name.text), True)
                self._derived(statement.name.text, statement.operation)
            case syntax.SinkDecl(name=name, of=of):
                node = name if self._survey.topology.lost(statement) is None else of
                if node is not None:
                    self._add(node, Symbol("node", "", node.text))
            case _:
                return

    def _source(self, declaration: syntax.SourceDecl) -> None:
        node = declaration.name.text
        for column in declaration.columns:
            self._add(column.name, Symbol("column", node, column.name.text), True)
        for name in declaration.key:
            self._add(name, Symbol("column", node, name.text))
        names = {column.name.text for column in declaration.columns}
        scope = _Scope({}, {name: Symbol("column", node, name) for name in names})
        self._expressions((declaration.timestamp, declaration.delete_when), scope)

    # ------------------------------------------------------------------------------------------------------- derived

    def _derived(self, node: str, operation: syntax.Operation) -> None:
        inputs = {}
        for read in operation.inputs:
            self._add(read.name, Symbol("node", "", read.name.text))
            if read.alias is not None:
                self._add(read.alias, Symbol("alias", node, read.alias.text), True)
            inputs[(read.alias or read.name).text] = read
        scope = _Scope(inputs, {})
        match operation:
            case syntax.Join():
                self._join(node, operation, scope)
            case syntax.Aggregate():
                key = self._keys(node, operation.group, scope)
                self._select(node, operation.items, _Scope(inputs, key), {})
            case syntax.Map(items=items, input=read, timestamp=timestamp):
                self._expressions(() if timestamp is None else (timestamp,), scope)
                stars = {(read.alias or read.name).text: self._columns(read)[1]}
                self._select(node, items, scope, stars, self._columns(read)[0])
            case _:
                self._handed_on(node, operation, scope)

    def _handed_on(self, node: str, operation: syntax.Operation, scope: _Scope) -> None:
        """An operation that keeps its input's columns, except those that it defines itself."""
        new: Mapping[str, Symbol] = {}
        match operation:
            case syntax.Rekey(keys=keys):
                new = self._keys(node, keys, scope)
            case syntax.Explode(expr=expr, names=names):
                self._expressions((expr,), scope)
                new = {given.text: Symbol("column", node, given.text) for given in names}
                for given in names:
                    self._add(given, new[given.text], True)
            case _:
                self._expressions((operation,), scope)
        for read in operation.inputs:
            for name in self._names(read):
                if name not in new:
                    self._link(node, name, Symbol("column", read.name.text, name))

    def _join(self, node: str, join: syntax.Join, scope: _Scope) -> None:
        left = (join.left.alias or join.left.name).text
        only_left = _Scope({left: join.left}, {})
        left_key, left_value = self._columns(join.left)
        right_key, right_value = self._columns(join.right)
        key = {name: Symbol("column", join.left.name.text, name) for name in left_key}
        if join.on and join_form(self._survey.kinds, join) == "stream-table":
            self._expressions((item.expr for item in join.on), only_left)
            key = {}
            for item, name in zip(join.on, right_key, strict=False):
                symbol = Symbol("column", join.right.name.text, name)
                if item.alias is not None:
                    symbol = Symbol("column", node, item.alias.text)
                    self._add(item.alias, symbol, True)
                key[symbol.name] = symbol
        else:
            self._expressions((item.expr for item in join.on), only_left)
        stars = {
            left: [name for name in (*left_key, *left_value) if name not in key],
            (join.right.alias or join.right.name).text: right_value,
        }
        self._select(node, join.items, _Scope(scope.inputs, key), stars)

    def _keys(self, node: str, items: Sequence[syntax.KeyItem], scope: _Scope) -> dict[str, Symbol]:
        """The key columns that ``by`` or ``group by`` defines."""
        key = {}
        for item in items:
            self._expressions((item.expr,), scope)
            target = self._target(item.expr, scope)
            if item.alias is not None:
                symbol = Symbol("column", node, item.alias.text)
                self._add(item.alias, symbol, True)
                key[item.alias.text] = symbol
            elif target is not None:
                key[target.name] = target
                self._link(node, target.name, target)
        return key

    def _select(
        self, node: str, items: Sequence[syntax.Item], scope: _Scope, stars: Mapping[str, Sequence[str]],
        kept: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """The columns of a `select`.

        `stars` are the columns that ``*`` stands for; `kept` are key columns of the first input that the result keeps.
        """
        first = next(iter(scope.inputs.values())).name.text
        key = {**{name: Symbol("column", first, name) for name in kept}, **scope.key}
        renamed = set()
        for item in items:
            if isinstance(item, syntax.StarItem):
                self._star(node, item, scope, stars)
                continue
            self._expressions((item.expr,), scope)
            target = self._target(item.expr, scope)
            if item.alias is not None:
                self._add(item.alias, Symbol("column", node, item.alias.text), True)
                if isinstance(item.expr, syntax.ColumnRef) and len(item.expr.parts) == 1:
                    renamed.add(item.expr.parts[0].text)
            elif target is not None:
                self._link(node, target.name, target)
        for name, symbol in key.items():
            if name not in renamed:
                self._link(node, name, symbol)

    def _star(self, node: str, item: syntax.StarItem, scope: _Scope, stars: Mapping[str, Sequence[str]]) -> None:
        if item.qualifier is not None:
            self._input(item.qualifier, scope)
        excluded = {name.text: name for name in item.excluded}
        for visible, columns in stars.items():
            if item.qualifier is not None and item.qualifier.text != visible:
                continue
            for name in columns:
                symbol = Symbol("column", scope.inputs[visible].name.text, name)
                if name in excluded:
                    self._add(excluded[name], symbol)
                else:
                    self._link(node, name, symbol)

    # --------------------------------------------------------------------------------------------------- expressions

    def _expressions(self, parts: Iterable[Any], scope: _Scope) -> None:
        for part in parts:
            self._walk(part, scope)

    def _walk(self, part: Any, scope: _Scope) -> None:
        """Finds every column in a part of the tree. Calls of aggregates see the rows, not the group's key."""
        match part:
            case syntax.ColumnRef():
                self._reference(part, scope)
            case syntax.Constant(name=name):
                self._add(name, Symbol("constant", "", name.text))
            case syntax.FunctionCall(name=name, args=args):
                if name.text in self._functions:
                    self._add(name, Symbol("function", "", name.text))
                else:
                    self.calls.append((name.span, name.text))
                inside = _Scope(scope.inputs, {}) if name.text in AGGREGATES else scope
                for arg in args:
                    if name.text == "event_time" and isinstance(arg, syntax.ColumnRef) and len(arg.parts) == 1:
                        self._input(arg.parts[0], scope)
                    else:
                        self._walk(arg, inside)
            case syntax.Input() | syntax.Name() | syntax.MaterializeClause():
                return
            case tuple():
                self._expressions(part, scope)
            case _ if is_dataclass(part):
                self._expressions((getattr(part, field.name) for field in fields(part)), scope)
            case _:
                return

    def _reference(self, reference: syntax.ColumnRef, scope: _Scope) -> None:
        parts = reference.parts
        qualified = len(parts) > 1 and parts[0].text in scope.inputs
        if qualified:
            self._input(parts[0], scope)
        symbol = self._target(reference, scope, fields=True)
        if symbol is not None:
            self._add(parts[1 if qualified else 0], symbol)

    def _target(self, expr: syntax.Expression, scope: _Scope, fields: bool = False) -> Symbol | None:
        """The column that a plain reference means. With `fields`, also the column in which a path to a field begins."""
        if not isinstance(expr, syntax.ColumnRef):
            return None
        parts = [part.text for part in expr.parts]
        if len(parts) > 1 and (read := scope.inputs.get(parts[0])) is not None:
            fits = fields or len(parts) == 2
            return Symbol("column", read.name.text, parts[1]) if fits and parts[1] in self._names(read) else None
        if len(parts) > 1 and not fields:
            return None
        if (own := scope.key.get(parts[0])) is not None:
            return own
        owner = next((read for read in scope.inputs.values() if parts[0] in self._names(read)), None)
        return None if owner is None else Symbol("column", owner.name.text, parts[0])

    def _input(self, name: syntax.Name, scope: _Scope) -> None:
        """The name of an input before a column."""
        read = scope.inputs.get(name.text)
        if read is None:
            return
        if read.alias is None:
            self._add(name, Symbol("node", "", name.text))
        else:
            defined = next(one for one in self.found if one.span == read.alias.span)
            self._add(name, defined.symbol)

    # -------------------------------------------------------------------------------------------------------- helpers

    def _add(self, name: syntax.Name, symbol: Symbol, definition: bool = False) -> None:
        self.found.append(Occurrence(name.span, symbol, definition))

    def _link(self, node: str, name: str, symbol: Symbol) -> None:
        self.links.append((Symbol("column", node, name), symbol))

    def _schema(self, read: syntax.Input) -> Schema:
        shape = self._survey.shapes.get(read.name.text)
        return Schema((), ()) if shape is None else shape.schema

    def _columns(self, read: syntax.Input) -> tuple[list[str], list[str]]:
        schema = self._schema(read)
        return [column.name for column in schema.key], [column.name for column in schema.value]

    def _names(self, read: syntax.Input) -> Iterator[str]:
        key, value = self._columns(read)
        yield from (*key, *value)
