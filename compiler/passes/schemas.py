"""The columns of every node: their names and types, and the typed expressions that they are computed by.

Each node's facts follow from those of its inputs; a node whose inputs are wrong has none, and nothing is reported about
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions import Scope, ScopeInput, coerce, type_expression
from vsc.compiler.passes.aggregates import WINDOW_BOUNDS, aggregate_shape
from vsc.compiler.passes.columns import equal_names, value_type_problem
from vsc.compiler.passes.distinct import distinct_shape
from vsc.compiler.passes.items import ItemRules, scope_input, select, visible
from vsc.compiler.passes.joins import join_shape
from vsc.compiler.passes.keys import declared_key, new_key
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.merges import difference
from vsc.compiler.passes.shapes import Shape, ShapeResult, Shapes
from vsc.compiler.passes.windows import Windows
from vsc.compiler.source import SourceFile, Span
from vsc.compiler.topology import Topology
from vsc.plan import (
    Column,
    Explode,
    Filter,
    Item,
    Map,
    Materialize,
    Merge,
    Operation,
    Rekey,
    Schema,
    ToStream,
    ToTable,
    expressions,
)
from vsc.plan.record import record
from vsc.plan.types import BIGINT, BOOLEAN, INT, SMALLINT, TIMESTAMP, TINYINT, ArrayType
from vsc.plan.words import article

__all__ = ["check_schemas"]

_NO_TIME_YET = (
    "a record has no event time yet",
    "name a column; without a `timestamp` clause the record's own time is used",
)


def check_schemas(
    source: SourceFile, topology: Topology, order: tuple[str, ...], kinds: Kinds, windows: Windows
) -> tuple[Shapes, tuple[Finding, ...]]:
    """The shape of every node of `order` that has one, and what is wrong with columns, keys and expressions."""
    findings: list[Finding] = []
    pass_ = _Schemas(source, kinds, windows, {}, findings.append)
    for name in order:
        declaration = topology.nodes[name]
        if isinstance(declaration, syntax.SourceDecl):
            shape, wrong = pass_.source_node(declaration)
        else:
            shape, wrong = pass_.derived(declaration.operation)
        findings.extend(wrong)
        if shape is not None:
            pass_.shapes[name] = shape
    return pass_.shapes, tuple(findings)


@record
class _Schemas:
    """The shapes found so far, and how to find the next one."""

    source: SourceFile
    kinds: Kinds
    windows: Windows
    shapes: dict[str, Shape]
    doubt: Callable[[Finding], None]

    # ----------------------------------------------------------------------------------------------------- sources

    def source_node(self, decl: syntax.SourceDecl) -> ShapeResult:
        """Declared columns, key, timestamp, delete when."""
        declared = [(column.name.text, column.name.span) for column in decl.columns]
        findings = [finding for finding, _ in equal_names(declared, "VSC201")]
        for column in decl.columns:
            if (problem := value_type_problem(column.type.type)) is not None:
                message = f"`{column.name.text}` cannot be {article(column.type.type)}: {problem}"
                findings.append(Finding("VSC215", column.type.span, message, (), "choose another type"))
        doubtful = bool(findings)
        key, wrong = declared_key(decl)
        findings.extend(wrong)
        columns = tuple(Column(column.name.text, column.type.type) for column in decl.columns)
        by_name = {column.name: column for column in columns}
        schema = Schema(tuple(by_name[n] for n in key), tuple(c for c in columns if c.name not in key))
        scope = Scope((ScopeInput(decl.name.text, 0, schema),), _NO_TIME_YET, doubt=self.doubt)
        timestamp = None
        if decl.timestamp is not None:
            timestamp, wrong = self._timestamp(decl.timestamp, scope)
            findings.extend(wrong)
        condition = None
        if decl.delete_when is not None:
            condition, wrong = self._condition("delete when", decl.delete_when, scope)
            findings.extend(wrong)
        if doubtful:
            return None, findings
        return Shape(schema, condition=condition, timestamp=timestamp, columns=columns), findings

    def _timestamp(self, expr: syntax.Expression, scope: Scope) -> tuple[Item | None, list[Finding]]:
        typed = type_expression(expr, scope)
        if typed.expr is None:
            return None, list(typed.findings)
        text, found = self.source.slice(expr.span), typed.expr.type
        if found in (TINYINT, SMALLINT, INT) and not isinstance(typed.expr, expressions.Literal):
            match expr:
                case syntax.Chain(part, (syntax.Link(op="*", operand=syntax.Literal()),)):
                    pass
                case part:
                    pass
            seconds = self.source.slice(part.span)
            message = f"event time must be a timestamp or a bigint of milliseconds, which {article(found)} cannot hold"
            form = f"timestamp cast({seconds} as bigint) * 1000"
            help = f"if {code(seconds)} is in seconds, write {code(form)}"
            return None, [Finding("VSC402", expr.span, message, (), help)]
        fitting = typed.expr if found == TIMESTAMP else coerce(typed.expr, BIGINT)
        if fitting is not None:
            return Item("timestamp", fitting, text), []
        message = f"event time must be a timestamp or a bigint of milliseconds, not {article(found)}"
        help = f"write {code(f'cast({text} as timestamp)')}, or choose another column"
        return None, [Finding("VSC402", expr.span, message, (), help)]

    # ----------------------------------------------------------------------------------------------------- derived

    def derived(self, operation: syntax.Operation) -> ShapeResult:
        """The shape of an operation's result; None without a finding if an input has no shape."""
        shapes = [self.shapes.get(read.name.text) for read in operation.inputs]
        if shapes[0] is None:
            return None, []
        scope = Scope((scope_input(operation.inputs[0], 0, shapes[0].schema),), doubt=self.doubt)
        return _SHAPES[type(operation)](self, operation, shapes[0].schema, scope)

    def _filter(self, operation: syntax.Filter, schema: Schema, scope: Scope) -> ShapeResult:
        condition, findings = self._condition("where", operation.predicate, scope)
        return Shape(schema, None if condition is None else Filter(condition)), findings

    def _aggregate(self, operation: syntax.Aggregate, schema: Schema, scope: Scope) -> ShapeResult:
        stream = self.kinds.get(operation.input.name.text) == "stream"
        return aggregate_shape(self.source, operation, schema, scope, stream)

    def _as_it_is(self, operation: syntax.Operation, schema: Schema, scope: Scope) -> ShapeResult:
        return Shape(schema, _AS_IT_IS.get(type(operation))), []

    def _condition(self, name: str, expr: syntax.Expression, scope: Scope) -> tuple[Item | None, list[Finding]]:
        typed = type_expression(expr, scope)
        if typed.expr is None:
            return None, list(typed.findings)
        fitting = coerce(typed.expr, BOOLEAN)
        if fitting is None:
            message = f"`{name}` takes a boolean, but this is {article(typed.expr.type)}"
            return None, [Finding("VSC214", expr.span, message, (), "write a comparison, like `a > 0`")]
        return Item(name, fitting, self.source.slice(expr.span)), []

    def _map(self, operation: syntax.Map, schema: Schema, scope: Scope) -> ShapeResult:
        name = visible(operation.input)
        stream = self.kinds.get(operation.input.name.text) == "stream"
        change = "give the new column another name"
        if stream:
            rekey = f"rekey {named(operation.input.name.text)} by ..."
            change += f", or give the stream another key: {code(rekey)}"
        own = frozenset((name, column.name) for column in schema.key)
        rules = ItemRules(schema.key, own, ((name, schema.value),), change, self._bounds(operation.input))
        found = select(self.source, operation.items, scope, rules)
        return None if found.schema is None else Shape(found.schema, Map(found.items)), list(found.findings)

    def _explode(self, operation: syntax.Explode, schema: Schema, scope: Scope) -> ShapeResult:
        typed = type_expression(operation.expr, scope)
        if typed.expr is None:
            return None, list(typed.findings)
        if not isinstance(typed.expr.type, ArrayType):
            message = f"`explode` takes an array, but this is {article(typed.expr.type)}"
            return None, [Finding("VSC217", operation.expr.span, message, (), "choose an array column")]
        name, element = operation.alias.text, typed.expr.type.element
        if name in {column.name for column in schema.key}:
            message = f"this would change the key column `{name}`"
            return None, [Finding("VSC208", operation.alias.span, message, (), "choose another name after `as`")]
        value = tuple(Column(name, element) if column.name == name else column for column in schema.value)
        if name not in {column.name for column in value}:
            value = (*value, Column(name, element))
        findings = _beside((*schema.key, *value), [(name, operation.alias.span)])
        item = Item(name, typed.expr, self.source.slice(operation.expr.span))
        return Shape(Schema(schema.key, value), Explode(item)), findings

    def _rekey(self, operation: syntax.Rekey, schema: Schema, scope: Scope) -> ShapeResult:
        items, findings = new_key(self.source, operation.keys, scope)
        if findings:
            return None, findings
        key = tuple(Column(item.name, item.expr.type) for item in items)
        names = {column.name for column in key}
        value = tuple(column for column in (*schema.key, *schema.value) if column.name not in names)
        places = [(item.name, part.span) for item, part in zip(items, operation.keys, strict=True)]
        return Shape(Schema(key, value), Rekey(items)), _beside(value, places)

    def _to_table(self, operation: syntax.ToTable, schema: Schema, scope: Scope) -> ShapeResult:
        findings: list[Finding] = []
        condition = None
        if operation.delete_when is not None:
            condition, findings = self._condition("delete when", operation.delete_when, scope)
        if not schema.key:
            name = operation.input.name.text
            findings.append(
                Finding("VSC210", operation.input.span, f"`{name}` has no key, and a table needs one", (),
                        f"declare it with `key COLUMN`, or give it one: {code(f'rekey {named(name)} by ...')}")
            )  # fmt: skip
            return None, findings
        return Shape(schema, ToTable(condition)), findings

    def _merge(self, operation: syntax.Merge, schema: Schema, scope: Scope) -> ShapeResult:
        shapes = [self.shapes.get(read.name.text) for read in operation.inputs]
        findings = list(_merged_twice(operation))
        for read, shape in zip(operation.inputs[1:], shapes[1:], strict=True):
            stream = self.kinds.get(read.name.text) == "stream"  # all else is refused as that
            if not stream or shape is None:
                continue
            head = operation.inputs[0]
            differs = difference(read.name.text, shape.schema, head.name.text, schema)
            if differs is not None:
                label = Label(head.span, "the first stream of this `merge`")
                findings.append(Finding("VSC218", read.span, differs[0], (label,), differs[1]))
        return Shape(schema, Merge()), findings

    def _join(self, join: syntax.Join, left: Schema, scope: Scope) -> ShapeResult:
        right, form = self.shapes.get(join.right.name.text), join_form(self.kinds, join)
        if right is None or form is None:
            return None, []
        fixed = self._bounds(join.left) if form == "table-table" else frozenset[str]()
        if form == "table-table" and not join.on and fixed != self._bounds(join.right):
            return None, []  # refused already: one has windows, the other has none
        return join_shape(self.source, join, form, scope, right.schema, fixed)

    def _bounds(self, read: syntax.Input) -> frozenset[str]:
        """The key columns of an input that are the bounds of its window."""
        return frozenset(WINDOW_BOUNDS) if read.name.text in self.windows.tables else frozenset()


def _merged_twice(merge: syntax.Merge) -> Iterator[Finding]:
    first: dict[str, syntax.Input] = {}
    for read in merge.inputs:
        if (earlier := first.setdefault(read.name.text, read)) is not read:
            message = f"{code(named(read.name.text))} is merged with itself: each of its records comes twice"
            yield Finding("VSC341", read.span, message, (Label(earlier.span, "first here"),), "remove one of them")


def _beside(columns: Iterable[Column], named: Sequence[tuple[str, Span]]) -> list[Finding]:
    """What is wrong with the columns that a statement names, given all other columns of the result."""
    new = {name for name, _ in named}
    others: list[tuple[str, Span | None]] = [(column.name, None) for column in columns if column.name not in new]
    return [finding for finding, _ in equal_names([*others, *named], "VSC203")]


_AS_IT_IS: dict[type, Operation] = {syntax.ToStream: ToStream(), syntax.Materialize: Materialize()}
_SHAPES: dict[type, Callable[[_Schemas, Any, Schema, Scope], ShapeResult]] = {
    syntax.Distinct: distinct_shape,
    syntax.Filter: _Schemas._filter,
    syntax.Map: _Schemas._map,
    syntax.Explode: _Schemas._explode,
    syntax.Rekey: _Schemas._rekey,
    syntax.Merge: _Schemas._merge,
    syntax.ToTable: _Schemas._to_table,
    syntax.ToStream: _Schemas._as_it_is,
    syntax.Join: _Schemas._join,
    syntax.Aggregate: _Schemas._aggregate,
    syntax.Suppress: _Schemas._as_it_is,
    syntax.Materialize: _Schemas._as_it_is,
}
"""The shape of a statement's result, given the schema of its first input and the scope of its expressions."""
