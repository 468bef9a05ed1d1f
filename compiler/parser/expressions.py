"""Builds the expressions of the syntax tree.

It has one method for each grammar rule, called with the place and the children of what was read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast
from typing import Literal as Choice

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.parser import types
from vsc.compiler.parser.lexer import Tokens
from vsc.compiler.parser.variables import REFERENCE, expand, value_of
from vsc.compiler.source import Span
from vsc.plan.record import record
from vsc.plan.types import STRING, DataType

__all__ = ["Constants", "ExpressionBuilder", "TypePart", "Value"]

_SQL_CONSTANTS = {"NULL": None, "TRUE": True, "FALSE": False, "Null": None, "True": True, "False": False, "None": None}
_LEVELS = {"or": 1, "and": 2, "+": 3, "-": 3, "||": 3, "*": 4, "/": 4, "%": 4}
Constants = dict[str, syntax.ConstantDecl | None]
"""The constants that are declared so far, by their names; None for one whose declaration cannot be read."""
Value = syntax.Literal | syntax.Duration | syntax.CalendarLength
"""What stands in place of a literal."""
TypePart = tuple[syntax.Name | None, DataType]


@record
class _Labelled:
    """An argument with ``as``. The call decides what `label` is: a struct's field name or the type of ``try_cast``."""

    expr: syntax.Expression
    label: syntax.Name | syntax.WrittenType


@record
class _Ordered:
    """An argument with ``by``: how many rows, and what orders them."""

    count: syntax.Expression
    by: syntax.Expression
    order: Choice["asc", "desc"]


class ExpressionBuilder:
    """Builds expressions, literals, names and types from the tokens of one text.

    `findings` collects what is wrong. `flawed` is true once the
    statement being built contains a placeholder for something already reported; such a statement must not be used.
    """

    def __init__(
        self,
        tokens: Tokens,
        variables: Mapping[str, str],
        read_literal: Callable[[str], Value | None],
        constants: Constants,
    ) -> None:
        self.tokens, self.variables, self._read_literal = tokens, variables, read_literal
        self.constants = tokens.constants = constants
        self.findings: list[Finding] = []
        self.flawed = False

    def build(self, action: str, span: Span, children: list[Any]) -> Any:
        """Builds the part of the tree for the rule with this `action`."""
        return getattr(self, f"_on_{action}")(span, *children)

    def report(self, code: str, span: Span, message: str, help: str | None = None, new: str | None = None) -> None:
        """Adds a finding and marks the statement as flawed. `new` is the text that certainly belongs there."""
        self.findings.append(Finding(code, span, message, (), help, None if new is None else Fix(span, new)))
        self.flawed = True

    def word(self, token: int) -> str:
        """The text of a token. A token that was already reported makes the statement flawed."""
        if token in self.tokens.damaged:
            self.flawed = True
        return self.tokens.word(token)

    # names and literals

    def _on_plain_name(self, span: Span, token: int) -> syntax.Name:
        return syntax.Name(self.word(token), span)

    def _on_quoted_name(self, span: Span, token: int) -> syntax.Name:
        return syntax.Name(self.word(token)[1:-1].replace("``", "`"), span, quoted=True)

    def _on_integer(self, span: Span, token: int) -> syntax.Literal:
        return syntax.Literal(self.integer(token), span)

    def integer(self, token: int) -> int:
        """The value of an integer token; 0 if the token was already reported."""
        written = self.word(token)
        return 0 if token in self.tokens.damaged else int(written)

    def _on_decimal(self, span: Span, token: int) -> syntax.Literal:
        return syntax.Literal(Decimal(self.word(token)), span)

    def _on_double(self, span: Span, token: int) -> syntax.Literal:
        value = float(self.word(token))
        if math.isinf(value):
            self.report("VSC020", span, "the number is larger than any double", "the largest is about 1.8e308")
        return syntax.Literal(value, span)

    def _on_duration(self, span: Span, token: int) -> syntax.Duration:
        self.word(token)
        return syntax.Duration(self.tokens.durations[token], span)

    def _on_negative(self, span: Span, value: syntax.Literal | syntax.Duration) -> syntax.Literal | syntax.Duration:
        if isinstance(value, syntax.Duration):
            return syntax.Duration(-value.milliseconds, span)
        return syntax.Literal(-cast(int, value.value), span)

    def _on_true(self, span: Span) -> syntax.Literal:
        return syntax.Literal(True, span)

    def _on_false(self, span: Span) -> syntax.Literal:
        return syntax.Literal(False, span)

    def _on_null(self, span: Span) -> syntax.Literal:
        return syntax.Literal(None, span)

    def _on_kept_string(self, span: Span, token: int) -> syntax.Literal:
        return syntax.Literal(self.word(token)[1:-1].replace("''", "'"), span)

    def _on_kept_variable(self, span: Span, token: int) -> syntax.Variable:
        return syntax.Variable(self.word(token)[2:-1], span)

    def _on_string(self, span: Span, token: int) -> syntax.Literal:
        written = self.word(token)[1:-1]
        text, missing = expand(written, span.start + 1, self.variables)
        self.findings.extend(missing)
        self.flawed = self.flawed or bool(missing)
        return syntax.Literal(text, span, REFERENCE.search(written) is not None)

    def _on_variable(self, span: Span, token: int) -> Value:
        return self.value_of(self.word(token)[2:-1], span)

    def value_of(self, name: str, span: Span) -> Value:
        """The value of a variable that replaces a whole literal: parsed if it reads as a literal, else a string."""
        value = value_of(name, span, self.variables)
        if isinstance(value, Finding):
            self.findings.append(value)
            self.flawed = True
            return syntax.Literal(None, span)
        read = self._read_literal(value)
        if read is None or isinstance(read, syntax.Literal):
            return syntax.Literal(value if read is None else read.value, span, of_variables=True)
        return replace(read, span=span)

    def constant(self, name: str) -> syntax.ConstantDecl | None:
        """The constant of this name; one that could not be read makes the statement flawed."""
        declared = self.constants[name]
        self.flawed = self.flawed or declared is None
        return declared

    # columns and calls

    def _on_column_name(self, span: Span, name: syntax.Name) -> syntax.ColumnRef | syntax.Constant | syntax.Literal:
        if name.text in self.constants:
            declared = self.constant(name.text)
            if declared is None:
                return syntax.Literal(None, span)
            return syntax.Constant(name, declared.value, span, declared.literal)
        if name.text in _SQL_CONSTANTS and not name.quoted:
            new = "null" if name.text == "None" else name.text.lower()
            help = f"write `{new}`; a column of that name needs backticks"
            message = f"keywords are written in lower case: `{name.text}`"
            self.findings.append(Finding("VSC007", span, message, (), help, Fix(span, new)))
            return syntax.Literal(_SQL_CONSTANTS[name.text], span)
        return syntax.ColumnRef((name,), span)

    def _on_member(self, span: Span, base: syntax.Expression, name: syntax.Name) -> syntax.Expression:
        if base.span.start == span.start:  # no parentheses around it
            if isinstance(base, syntax.ColumnRef):
                return syntax.ColumnRef((*base.parts, name), span)
            if isinstance(base, syntax.Constant):  # what has members is an input or a column
                return syntax.ColumnRef((base.name, name), span)
        return syntax.FieldOf(base, name, span)

    def _on_parenthesised(self, span: Span, inner: syntax.Expression) -> syntax.Expression:
        return inner

    def _on_element(self, span: Span, base: syntax.Expression, index: syntax.Expression) -> syntax.Element:
        return syntax.Element(base, index, span)

    def _on_call(
        self, span: Span, name: syntax.Name, *args: syntax.Expression | _Labelled | _Ordered
    ) -> syntax.FunctionCall | syntax.CastTo:
        if any(isinstance(arg, _Ordered) for arg in args):
            return self._ordered_call(span, name, args)
        plain = [arg for arg in args if not isinstance(arg, _Ordered)]
        exprs = tuple(arg.expr if isinstance(arg, _Labelled) else arg for arg in plain)
        labels = tuple(arg.label if isinstance(arg, _Labelled) else None for arg in plain)
        if name.text == "try_cast" and len(labels) == 1 and labels[0] is not None:
            label = labels[0]
            written = self._on_plain_type(label.span, label) if isinstance(label, syntax.Name) else label
            return syntax.CastTo(exprs[0], written, True, span)
        names = tuple(label for label in labels if not isinstance(label, syntax.WrittenType))
        if any(labels) and (name.text != "struct" or len(names) < len(labels)):
            self._misplaced_as(name, next(label for label in labels if label is not None))
        return syntax.FunctionCall(name, exprs, span, names=names if any(names) else ())

    def _on_call_ignoring_nulls(self, span: Span, name: syntax.Name, *args: Any) -> syntax.Expression:
        found = self._on_call(span, name, *args)
        if isinstance(found, syntax.FunctionCall) and name.text in ("first", "last"):
            return replace(found, ignoring_nulls=True)
        self.report("VSC005", name.span, f"`{name.text}` does not take `ignore nulls`: only `first` and `last` do",
                    f"write `{name.text}(...)`")  # fmt: skip
        return found

    def _ordered_call(
        self, span: Span, name: syntax.Name, args: tuple[syntax.Expression | _Labelled | _Ordered, ...]
    ) -> syntax.FunctionCall:
        exprs: list[syntax.Expression] = []
        order: Choice["", "asc", "desc"] = ""
        for number, arg in enumerate(args, start=1):
            if isinstance(arg, _Labelled):
                self._misplaced_as(name, arg.label)
            elif isinstance(arg, _Ordered) and number < len(args):
                help = "write `collect_top(value, n by order)`"
                self.report("VSC005", arg.by.span, "`by` inside a call belongs to its last argument", help)
            elif isinstance(arg, _Ordered):
                order = arg.order
            exprs += (
                (arg.count, arg.by) if isinstance(arg, _Ordered) else (arg.expr if isinstance(arg, _Labelled) else arg,)
            )
        return syntax.FunctionCall(name, tuple(exprs), span, order=order)

    def _misplaced_as(self, call: syntax.Name, label: syntax.Name | syntax.WrittenType) -> None:
        if call.text == "struct":
            self.report("VSC005", label.span, "a field of a struct has a name, and no type of its own",
                        "write `cast(... as TYPE) as NAME`")  # fmt: skip
        elif call.text == "try_cast":
            self.report(
                "VSC005", label.span, "`try_cast` takes one value and one type", "write `try_cast(... as TYPE)`"
            )
        elif (lower := call.text.lower()) in ("cast", "try_cast", "struct"):
            self.report("VSC007", call.span, f"keywords are written in lower case: `{call.text}`", f"write `{lower}`",
                        new=lower)  # fmt: skip
        elif lower in ("safe_cast", "try_convert", "convert"):
            self.report("VSC010", call.span, f"there is no `{call.text}`",
                        "write `cast(... as TYPE)`, or `try_cast(... as TYPE)` for a null where it fails")  # fmt: skip
        else:
            wanted = "`cast`, `try_cast` and `struct`"
            self.report("VSC005", label.span, f"`as` inside a call belongs to {wanted}, not to `{call.text}`",
                        f"write `{call.text}(...) as NAME` for a name, `cast(... as TYPE)` for a type")  # fmt: skip

    def _on_named_argument(self, span: Span, expr: syntax.Expression, name: syntax.Name) -> _Labelled:
        return _Labelled(expr, name)

    def _on_typed_argument(self, span: Span, expr: syntax.Expression, type: syntax.WrittenType) -> _Labelled:
        return _Labelled(expr, type)

    def _on_ascending_argument(self, span: Span, count: syntax.Expression, by: syntax.Expression) -> _Ordered:
        return _Ordered(count, by, "asc")

    def _on_descending_argument(self, span: Span, count: syntax.Expression, by: syntax.Expression) -> _Ordered:
        return _Ordered(count, by, "desc")

    def _on_lambda(self, span: Span, *parts: Any) -> syntax.Lambda:
        *names, body = parts
        for name in names:
            if name.text in self.constants:
                message = f"`{name.text}` is a constant, and cannot be the parameter of a lambda"
                self.report("VSC111", name.span, message, "give the parameter another name")
        return syntax.Lambda(tuple(names), body, span)

    def _on_call_star(self, span: Span, name: syntax.Name) -> syntax.FunctionCall:
        return syntax.FunctionCall(name, (), span, star=True)

    def _on_call_distinct(self, span: Span, name: syntax.Name, arg: syntax.Expression) -> syntax.FunctionCall:
        return syntax.FunctionCall(name, (arg,), span, distinct=True)

    def _on_cast(self, span: Span, arg: syntax.Expression, type: syntax.WrittenType) -> syntax.CastTo:
        return syntax.CastTo(arg, type, False, span)

    def _on_case(self, span: Span, operand: syntax.Expression | None, *rest: Any) -> syntax.Case:
        return syntax.Case(operand, tuple(rest[:-1]), rest[-1], span)

    def _on_when(self, span: Span, condition: syntax.Expression, value: syntax.Expression) -> syntax.When:
        return syntax.When(condition, value)

    def _on_otherwise(self, span: Span, value: syntax.Expression) -> syntax.Expression:
        return value

    # operators

    def _on_chain(self, span: Span, first: syntax.Expression, *rest: Any) -> syntax.Chain:
        links = tuple(
            syntax.Link(self._operator(op), op, operand) for op, operand in zip(*[iter(rest)] * 2, strict=True)
        )
        if isinstance(first, syntax.Chain) and _LEVELS[first.rest[0].op] == _LEVELS[links[0].op]:  # in parentheses
            return syntax.Chain(first.first, first.rest + links, span)
        return syntax.Chain(first, links, span)

    def _on_comparison(
        self, span: Span, left: syntax.Expression, op: Span, right: syntax.Expression
    ) -> syntax.Comparison:
        return syntax.Comparison(self._operator(op), left, right, span, op)

    def _operator(self, op: Span) -> Any:
        written = self.tokens.meant.get(op.start, self.tokens.text[op.start : op.end])
        return "<>" if written == "!=" else written

    def _on_or_op(self, span: Span, token: int) -> Span:
        return span

    _on_and_op = _on_comparison_op = _on_sum_op = _on_product_op = _on_or_op

    def _on_negation(self, span: Span, arg: syntax.Expression) -> syntax.Unary:
        return syntax.Unary("not", arg, span)

    def _on_minus(self, span: Span, arg: syntax.Expression) -> syntax.Unary:
        return syntax.Unary("-", arg, span)

    def _on_is_null(self, span: Span, arg: syntax.Expression) -> syntax.IsNull:
        return syntax.IsNull(arg, False, span)

    def _on_is_not_null(self, span: Span, arg: syntax.Expression) -> syntax.IsNull:
        return syntax.IsNull(arg, True, span)

    def _on_in_list(self, span: Span, arg: syntax.Expression, *options: syntax.Expression) -> syntax.In:
        return syntax.In(arg, options, False, span)

    def _on_not_in_list(self, span: Span, arg: syntax.Expression, *options: syntax.Expression) -> syntax.In:
        return syntax.In(arg, options, True, span)

    def _on_between(
        self, span: Span, arg: syntax.Expression, low: syntax.Expression, high: syntax.Expression
    ) -> syntax.Between:
        return syntax.Between(arg, low, high, False, span)

    def _on_not_between(
        self, span: Span, arg: syntax.Expression, low: syntax.Expression, high: syntax.Expression
    ) -> syntax.Between:
        return syntax.Between(arg, low, high, True, span)

    def _on_like(self, span: Span, arg: syntax.Expression, pattern: syntax.Expression) -> syntax.Like:
        return syntax.Like(arg, pattern, False, span)

    def _on_not_like(self, span: Span, arg: syntax.Expression, pattern: syntax.Expression) -> syntax.Like:
        return syntax.Like(arg, pattern, True, span)

    # types

    def _on_plain_type(self, span: Span, name: syntax.Name) -> syntax.WrittenType:
        return self._type(span, lambda: types.plain_type(name), types.meant_type(name, []))

    def _on_sized_type(self, span: Span, name: syntax.Name, *sizes: int) -> syntax.WrittenType:
        written = [self.integer(size) for size in sizes]
        return self._type(span, lambda: types.sized_type(name, written, span), types.meant_type(name, written))

    def _on_nested_type(
        self, span: Span, name: syntax.Name, *parts: syntax.WrittenType | TypePart
    ) -> syntax.WrittenType:
        pairs = [(None, part.type) if isinstance(part, syntax.WrittenType) else part for part in parts]
        if name.text == "struct":  # a part without a type was read as a type without a name
            alone = {part.span for part in parts if isinstance(part, syntax.WrittenType)}
            self.findings[:] = [found for found in self.findings if found.span not in alone]
        return self._type(span, lambda: types.nested_type(name, pairs, span))

    def _on_field(self, span: Span, name: syntax.Name, type: syntax.WrittenType) -> TypePart:
        return (name, type.type)

    def _type(self, span: Span, make: Callable[[], DataType], meant: DataType | None = None) -> syntax.WrittenType:
        """The type that `make` gives; if there is none, the one that is `meant`, so that the rest can be checked."""
        try:
            return syntax.WrittenType(make(), span)
        except types.TypeProblem as problem:
            self.findings.append(problem.finding)
            self.flawed = self.flawed or meant is None
            return syntax.WrittenType(meant or STRING, span)
