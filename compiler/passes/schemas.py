"""The columns of every node: their names and types, and the typed expressions that they are computed by.

Each node's facts follow from those of its inputs; a node whose inputs are in doubt has none, and nothing is said about
it. Aggregates have none yet either: what is built on one is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.expressions import Scope, ScopeInput, coerce, type_expression
from vsc.compiler.passes.columns import equal_names, value_type_problem
from vsc.compiler.passes.items import ItemRules, scope_input, select, visible
from vsc.compiler.passes.keys import JoinKey, declared_key, equal_keys, join_on, new_key
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.source import SourceFile
from vsc.compiler.topology import Topology
from vsc.compiler.words import article
from vsc.plan import Column, Item, Schema
from vsc.plan.expressions import Column as ColumnExpr
from vsc.plan.expressions import Expr
from vsc.plan.record import record
from vsc.plan.types import BIGINT, BOOLEAN, TIMESTAMP, ArrayType, DataType

__all__ = ["Shape", "Shapes", "check_schemas"]


@record
class Shape:
    """What a node's records look like and how they come about.

    `items` are the value columns of a `map` or `join`, or the key columns of a `rekey`; `condition` is the `where` or
    `delete when`. `columns` are a source's, as declared. `rekeyed` is there for a stream that gets a new key in front
    of its join: that stream's schema then, which is what `items` see as input 0, and the expressions of its key.
    """

    schema: Schema
    items: tuple[Item, ...] = ()
    condition: Item | None = None
    timestamp: Item | None = None
    columns: tuple[Column, ...] = ()
    rekeyed: tuple[Schema, tuple[Item, ...]] | None = None


Shapes = Mapping[str, Shape]
_Result = tuple[Shape | None, list[Finding]]


def check_schemas(
    source: SourceFile, topology: Topology, order: tuple[str, ...], kinds: Kinds
) -> tuple[Shapes, tuple[Finding, ...]]:
    """The shape of every node of `order` that has one, and what is wrong with columns, keys and expressions."""
    pass_ = _Schemas(source, kinds, {})
    findings: list[Finding] = []
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
    shapes: dict[str, Shape]

    # ----------------------------------------------------------------------------------------------------- sources

    def source_node(self, decl: syntax.SourceDecl) -> _Result:
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
        scope = Scope((ScopeInput(decl.name.text, 0, schema),), allow_event_time=False)
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
        fitting = typed.expr if typed.expr.type == TIMESTAMP else coerce(typed.expr, BIGINT)
        if fitting is not None:
            return Item("timestamp", fitting, self.source.slice(expr.span)), []
        message = f"event time is a timestamp or a bigint of milliseconds, not {article(typed.expr.type)}"
        help = f"write `cast({self.source.slice(expr.span)} as timestamp)`, or choose another column"
        return None, [Finding("VSC402", expr.span, message, (), help)]

    # ----------------------------------------------------------------------------------------------------- derived

    def derived(self, operation: syntax.Operation) -> _Result:
        """The shape of what an operation makes; None with nothing to say where an input has none."""
        if isinstance(operation, syntax.Join):
            return self._join(operation)
        if isinstance(operation, syntax.Merge):
            return self._merge(operation)
        read = self.shapes.get(operation.input.name.text)
        if read is None:
            return None, []
        scope = Scope((scope_input(operation.input, 0, read.schema),))
        match operation:
            case syntax.Filter(predicate=predicate):
                condition, findings = self._condition("where", predicate, scope)
                return Shape(read.schema, condition=condition), findings
            case syntax.Map():
                return self._map(operation, read.schema, scope)
            case syntax.Explode():
                return self._explode(operation, read.schema, scope)
            case syntax.Rekey():
                items, findings = new_key(self.source, operation.keys, scope)
                return _rekeyed(read.schema, items) if not findings else None, findings
            case syntax.ToTable():
                return self._to_table(operation, read.schema, scope)
            case syntax.Aggregate():
                return None, []
            case syntax.ToStream() | syntax.Suppress() | syntax.Materialize():
                return Shape(read.schema), []

    def _condition(self, name: str, expr: syntax.Expression, scope: Scope) -> tuple[Item | None, list[Finding]]:
        typed = type_expression(expr, scope)
        if typed.expr is None:
            return None, list(typed.findings)
        fitting = coerce(typed.expr, BOOLEAN)
        if fitting is None:
            message = f"`{name}` takes a boolean, and this is {article(typed.expr.type)}"
            return None, [Finding("VSC214", expr.span, message, (), "write a comparison, like `a > 0`")]
        return Item(name, fitting, self.source.slice(expr.span)), []

    def _map(self, operation: syntax.Map, schema: Schema, scope: Scope) -> _Result:
        name = visible(operation.input)
        stream = self.kinds.get(operation.input.name.text) == "stream"
        change = "give the new column another name"
        if stream:
            change += f", or give the stream another key: `rekey {operation.input.name.text} by ...`"
        own = frozenset((name, column.name) for column in schema.key)
        found = select(self.source, operation.items, scope, ItemRules(schema.key, own, ((name, schema.value),), change))
        return None if found.schema is None else Shape(found.schema, found.items), list(found.findings)

    def _explode(self, operation: syntax.Explode, schema: Schema, scope: Scope) -> _Result:
        typed = type_expression(operation.expr, scope)
        if typed.expr is None:
            return None, list(typed.findings)
        if not isinstance(typed.expr.type, ArrayType):
            message = f"`explode` goes by an array, and this is {article(typed.expr.type)}"
            return None, [Finding("VSC217", operation.expr.span, message, (), "choose a column with an array")]
        if operation.alias.text in {column.name for column in (*schema.key, *schema.value)}:
            message = f"`{operation.input.name.text}` has a column `{operation.alias.text}` already"
            return None, [Finding("VSC203", operation.alias.span, message, (), "choose another name after `as`")]
        item = Item(operation.alias.text, typed.expr, self.source.slice(operation.expr.span))
        value = (*schema.value, Column(operation.alias.text, typed.expr.type.element))
        return Shape(Schema(schema.key, value), (item,)), []

    def _to_table(self, operation: syntax.ToTable, schema: Schema, scope: Scope) -> _Result:
        findings: list[Finding] = []
        condition = None
        if operation.delete_when is not None:
            condition, findings = self._condition("delete when", operation.delete_when, scope)
        if not schema.key:
            name = operation.input.name.text
            findings.append(
                Finding("VSC210", operation.input.span, f"`{name}` has no key, and a table needs one", (),
                        f"declare it with `key COLUMN`, or give it one: `rekey {name} by ...`")
            )  # fmt: skip
            return None, findings
        return Shape(schema, condition=condition), findings

    def _merge(self, operation: syntax.Merge) -> _Result:
        shapes = [self.shapes.get(read.name.text) for read in operation.inputs]
        first = shapes[0]
        if first is None:
            return None, []
        findings = []
        for read, shape in zip(operation.inputs[1:], shapes[1:], strict=True):
            if shape is not None and _columns(shape.schema) != _columns(first.schema):
                head = operation.inputs[0]
                message = f"`{read.name.text}` and `{head.name.text}` do not have the same key and columns"
                label = Label(head.span, "the first stream of this `merge`")
                help = f"bring it into the same form: `map {read.name.text} select ...`"
                findings.append(Finding("VSC218", read.span, message, (label,), help))
        return Shape(first.schema), findings

    # ------------------------------------------------------------------------------------------------------- joins

    def _join(self, join: syntax.Join) -> _Result:
        left, right = self.shapes.get(join.left.name.text), self.shapes.get(join.right.name.text)
        form = join_form(self.kinds, join)
        if left is None or right is None or form is None:
            return None, []
        if visible(join.left) == visible(join.right):
            message = f"both inputs of this join are called `{visible(join.right)}`"
            label = Label(join.left.span, "the other one")
            help = f"give them names: `{join.left.name.text} as a with {join.right.name.text} as b`"
            return None, [Finding("VSC121", join.right.span, message, (label,), help)]
        key, findings = self._join_key(join, left.schema, right.schema)
        if key is None:
            return None, findings
        rekeyed = _with_key(left.schema, key.on) if form == "stream-table" and join.on and key.complete else None
        columns = _result_key(form, key, left.schema, rekeyed)
        own = [column.name for column, expr in columns if expr == ColumnExpr(0, column.name, column.type)]
        inputs = (scope_input(join.left, 0, left.schema), scope_input(join.right, 1, right.schema))
        scope = Scope(inputs, key=tuple((column.name, expr) for column, expr in columns))
        names = {column.name for column, _ in columns}
        starred = tuple(c for c in (*left.schema.key, *left.schema.value) if c.name not in names)
        rules = ItemRules(
            tuple(column for column, _ in columns),
            frozenset((visible(join.left), name) for name in own if join.mode != "outer"),
            ((visible(join.left), starred), (visible(join.right), right.schema.value)),
            "give the column another name",
        )
        found = select(self.source, join.items, scope, rules)
        findings.extend(found.findings)
        if found.schema is None or findings:
            return None, findings
        moved = rekeyed is not None and rekeyed[0] != left.schema
        return Shape(found.schema, found.items, rekeyed=rekeyed if moved else None), findings

    def _join_key(self, join: syntax.Join, left: Schema, right: Schema) -> tuple[JoinKey | None, list[Finding]]:
        """The key that both inputs meet by; its names are those of the result, unless the result keeps the left's."""
        if not right.key:
            return None, []
        if not join.on:
            return equal_keys(join, left, right)
        return join_on(self.source, join, right, Scope((scope_input(join.left, 0, left),)))


def _result_key(
    form: str, key: JoinKey, left: Schema, rekeyed: tuple[Schema, tuple[Item, ...]] | None
) -> list[tuple[Column, Expr]]:
    """The key columns of a join's result, and what each of them is among the columns of input 0."""
    if form != "stream-table":
        columns = physical = left.key
    else:
        columns, physical = key.columns, rekeyed[0].key if rekeyed is not None else key.columns
    return [(column, ColumnExpr(0, at.name, at.type)) for column, at in zip(columns, physical, strict=True)]


def _with_key(left: Schema, on: tuple[Item, ...]) -> tuple[Schema, tuple[Item, ...]]:
    """The left input under its new key: a column that is a key column as it stands moves there, all others stay."""
    names = {column.name for column in (*left.key, *left.value)}
    key: list[Column] = []
    for index, item in enumerate(on):
        plain = isinstance(item.expr, ColumnExpr) and item.expr.name not in {column.name for column in key}
        name = item.expr.name if isinstance(item.expr, ColumnExpr) and plain else f"on#{index}"
        while not plain and name in names:
            name += "#"
        key.append(Column(name, item.expr.type))
    moved = {column.name for column in key}
    value = tuple(column for column in (*left.key, *left.value) if column.name not in moved)
    items = tuple(Item(column.name, item.expr, item.text) for column, item in zip(key, on, strict=True))
    return Schema(tuple(key), value), items


def _rekeyed(schema: Schema, items: tuple[Item, ...]) -> Shape:
    key = tuple(Column(item.name, item.expr.type) for item in items)
    names = {column.name for column in key}
    value = tuple(column for column in (*schema.key, *schema.value) if column.name not in names)
    return Shape(Schema(key, value), items)


def _columns(schema: Schema) -> tuple[list[tuple[str, DataType]], dict[str, DataType]]:
    """Key columns in order, the others by name: what the streams of a `merge` have in common."""
    return [(c.name, c.type) for c in schema.key], {c.name: c.type for c in schema.value}
