"""Expressions that are valid and never meant: always null or a failure, conditions that are always the same, patterns.

Each is reported once, at the smallest part that shows it. VSC331 to VSC335, all of them warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from vsc.compiler import syntax
from vsc.compiler.diagnostics.date_patterns import pattern_finding
from vsc.compiler.diagnostics.model import Finding, Fix, Label
from vsc.compiler.expressions.constants import BITS, Always, Known, Outcomes
from vsc.compiler.expressions.ranges import comparison, given
from vsc.compiler.expressions.together import FLIPPED, exclusive, exhaustive
from vsc.compiler.source import Span
from vsc.plan.expressions import Call, Cast, Column, Expr, Literal
from vsc.plan.types import ArrayType
from vsc.plan.words import article, counted

__all__ = ["Doubts", "unmet"]

_NEVER = "a comparison with null is never true"
_TESTS = (syntax.Comparison, syntax.In, syntax.Between, syntax.Like, syntax.IsNull)
_DATED = ("date_format", "from_unixtime", "to_date", "to_timestamp", "try_to_timestamp")


class Doubts:
    """What is doubtful in one expression; `look` is called for each part, after the parts inside of it."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self._outcomes = Outcomes()
        self._told: set[int] = set()  # the ids of parts about which, or about a part of which, something has been said
        self._written: set[int] = set()  # the ids of parts that are made of literals alone

    def look(self, expr: syntax.Expression, plan: Expr, inside: Sequence[tuple[syntax.Expression, Expr]]) -> None:
        """Examines the part `expr`, which became `plan`; `inside` are the parts that it is made of."""
        if _is_literal(expr) or (_adds_nothing(expr) and all(id(part) in self._written for part, _ in inside)):
            self._written.add(id(expr))
        told = any(id(part) in self._told for _, part in inside)
        finding = None if told else next(self._doubts(expr, plan, inside), None)
        if finding is not None:
            self.found.append(finding)
        if told or finding is not None:
            self._told.add(id(plan))

    def _doubts(
        self, expr: syntax.Expression, plan: Expr, inside: Sequence[tuple[syntax.Expression, Expr]]
    ) -> Iterator[Finding]:
        nulls = [part for part, found in inside if self._outcomes.of(found) is Always.NULL]
        match expr:
            case syntax.Comparison() | syntax.In() | syntax.Between() | syntax.Like() if nulls:
                yield _with_null(expr, nulls[0])
            case syntax.Case(operand=operand, branches=branches) if operand is not None:
                for branch in branches:
                    if branch.condition in nulls:
                        help = "write `case when x is null then ... end`"
                        yield Finding("VSC331", branch.condition.span, _NEVER, (), help)
            case syntax.FunctionCall(name=name, args=[_, second]) if name.text == "nullif" and second in nulls:
                help = "leave `nullif` out, or name another value"
                yield Finding("VSC331", second.span, "nothing is equal to this null", (), help)
            case _:
                pass
        for part in _conditions(expr):
            yield from unmet(part)
        yield from self._failing(expr, plan, inside)
        if self._outcomes.of(plan) is Always.NULL and not isinstance(plan, Literal):
            yield from self._null(expr, plan, nulls)
        yield from self._same(expr, plan)
        yield from self._unequal(expr, inside)
        yield from _pattern(expr)
        if isinstance(expr, _TESTS) and id(expr) in self._written:
            message = "this condition has no column in it: it is the same on every row"
            yield Finding("VSC334", expr.span, message, (), "leave it out, or name a column")

    def _failing(
        self, expr: syntax.Expression, plan: Expr, inside: Sequence[tuple[syntax.Expression, Expr]]
    ) -> Iterator[Finding]:
        """The first of the calculations and casts of this part, not of those inside of it, that always fails."""
        spans = {id(found): part.span for part, found in inside}
        waiting, seen = [plan], set(spans)
        while waiting:
            part = waiting.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            args = part.args if isinstance(part, Call) else (part.arg,) if isinstance(part, Cast) else ()
            if self._outcomes.of(part) is Always.FAILS and not any(self._outcomes.of(a) is Always.FAILS for a in args):
                yield _failure(expr, part, spans)
                return
            waiting.extend(reversed(args))

    def _null(self, expr: syntax.Expression, plan: Expr, nulls: Sequence[syntax.Expression]) -> Iterator[Finding]:
        if nulls:
            label = (Label(nulls[0].span, "this is null"),)
            help = "leave it out, or give it a value: `coalesce(x, '')`"
            yield Finding("VSC332", expr.span, "this is always null, because a part of it is", label, help)
        elif isinstance(plan, Cast) and isinstance(plan.arg, Literal):
            message = f"'{plan.arg.value}' is not {article(plan.type)}, so this is always null"
            yield Finding("VSC332", expr.span, message, (), "correct the text or the type")
        else:
            yield Finding("VSC332", expr.span, "this is always null", (), "leave it out, or write `null`")

    def _same(self, expr: syntax.Expression, plan: Expr) -> Iterator[Finding]:
        """Conditions on one value that exclude each other, or of which one is always true."""
        if isinstance(expr, syntax.Between):
            both = plan.args[0] if expr.negated and isinstance(plan, Call) else plan
            if isinstance(both, Call) and exclusive(both.args, self._outcomes):
                message = "nothing is between these two: the first is greater"
                yield Finding("VSC334", expr.low.span.to(expr.high.span), message, (), "swap the two")
        elif isinstance(expr, syntax.Comparison) and isinstance(plan, Call):
            yield from self._alone(expr, plan)
        elif isinstance(expr, syntax.Chain) and isinstance(plan, Call):
            if plan.function == "and" and exclusive(plan.args, self._outcomes):
                help = "write `or`, or correct one of them"
                yield Finding("VSC334", expr.span, "these conditions exclude each other", (), help)
            elif plan.function == "or" and exhaustive(plan.args, self._outcomes):
                message, help = "one of these conditions is always true", "write `and`, or correct one of them"
                yield Finding("VSC334", expr.span, message, (), help)

    def _alone(self, expr: syntax.Comparison, plan: Call) -> Iterator[Finding]:
        """A comparison that comes out the same whatever the column holds."""
        left, right = plan.args
        if left == right and isinstance(left, Column):
            help = "compare it with something else, or write `is not null`"
            yield Finding("VSC334", expr.span, "this compares a value with itself", (), help)
        for column, other in ((left, right), (right, left)):
            inner, constant = column.arg if isinstance(column, Cast) else column, self._outcomes.of(other)
            if not isinstance(inner, Column) or inner.type not in BITS or not isinstance(constant, Known):
                continue
            limit, value = 1 << (BITS[inner.type] - 1), constant.value
            if not isinstance(value, int | float | Decimal):
                continue
            help = "correct the value, or the type of the column"
            if not -limit <= value < limit:
                message = f"{article(inner.type)} is never that {'large' if value > 0 else 'small'}"
                yield Finding("VSC334", expr.span, message, (), help)
            elif value % 1 and plan.function in ("eq", "ne"):
                yield Finding("VSC334", expr.span, f"{article(inner.type)} is never {value}", (), help)
        for call, other, op in ((left, right, plan.function), (right, left, FLIPPED[plan.function])):
            constant = self._outcomes.of(other)
            always = comparison(call, op, constant.value) if isinstance(constant, Known) else None
            if always is not None:
                message = f"{given(call)}: this is {'always' if always else 'never'} true"
                yield Finding("VSC334", expr.span, message, (), "correct the value")

    def _unequal(self, expr: syntax.Expression, inside: Sequence[tuple[syntax.Expression, Expr]]) -> Iterator[Finding]:
        """Values that what they are compared with, in a list or a `case`, never has."""
        match expr:
            case syntax.In(arg=arg, options=values):
                pass
            case syntax.Case(operand=arg, branches=branches) if arg is not None:
                values = tuple(branch.condition for branch in branches)
            case _:
                return
        plans = {id(part): found for part, found in inside}
        for value in values:
            constant = self._outcomes.of(plans[id(value)])
            if isinstance(constant, Known) and comparison(plans[id(arg)], "eq", constant.value) is False:
                message = f"{given(plans[id(arg)])}: it is never equal to this"
                yield Finding("VSC334", value.span, message, (), "correct the value")


def _pattern(expr: syntax.Expression) -> Iterator[Finding]:
    """A pattern of dates with a month for a minute, or the other way round; a text that is split at every character."""
    match expr:
        case syntax.FunctionCall(name=name, args=(_, syntax.Literal(str(text)) as pattern, *_)):
            if name.text in _DATED and (finding := pattern_finding(text, pattern.span)) is not None:
                yield finding
            elif name.text == "split" and text == ".":
                message = "`.` in a regular expression is every character: nothing is left between them"
                yield Finding("VSC335", pattern.span, message, (), r"write `'\.'` for the character")


def unmet(expr: syntax.Expression) -> Iterator[Finding]:
    """That the condition `expr` is written as null or as false."""
    match expr:
        case syntax.Literal(value=None):
            yield Finding("VSC332", expr.span, "a condition that is null is never true", (), "write a comparison")
        case syntax.Literal(value=False, of_variables=False):
            yield Finding("VSC334", expr.span, "this condition is never true", (), "write a comparison")
        case _:
            pass


def _is_literal(expr: syntax.Expression) -> bool:
    """Whether it is a literal whose value no variable gives."""
    return isinstance(expr, syntax.Literal) and not expr.of_variables


def _adds_nothing(expr: syntax.Expression) -> bool:
    """Whether it is as constant as its parts are."""
    return isinstance(expr, (*_TESTS, syntax.Unary, syntax.Chain, syntax.CastTo))


def _conditions(expr: syntax.Expression) -> Sequence[syntax.Expression]:
    """The parts of an expression that are conditions."""
    match expr:
        case syntax.Chain(first=first, rest=rest) if rest[0].op in ("and", "or"):
            return first, *(link.operand for link in rest)
        case syntax.Case(operand=None, branches=branches):
            return tuple(branch.condition for branch in branches)
        case syntax.FunctionCall(name=name, args=(first, *_)) if name.text == "if":
            return (first,)
        case _:
            return ()


def _with_null(expr: syntax.Comparison | syntax.In | syntax.Between | syntax.Like, null: syntax.Expression) -> Finding:
    match expr:
        case syntax.Comparison(op=("=" | "<>") as op, right=right, op_span=op_span):
            form = "is null" if op == "=" else "is not null"
            fix = Fix(op_span.to(right.span), form) if right is null and isinstance(null, syntax.Literal) else None
            return Finding("VSC331", op_span.to(null.span), f"`{op} null` is never true", (), f"write `{form}`", fix)
        case syntax.In(negated=True, options=options) if null in options:
            help = "leave it out, and write `x is not null` for the nulls"
            return Finding("VSC331", null.span, "`not in` with a null in its list is never true", (), help)
        case syntax.In(options=options) if null in options:
            return Finding("VSC331", null.span, "nothing is equal to this null", (), "write `or x is null`")
        case _:
            return Finding("VSC331", null.span, _NEVER, (), "compare with a value, or write `is null`")


def _failure(expr: syntax.Expression, part: Expr, spans: Mapping[int, Span]) -> Finding:
    match part:
        case Cast(Literal(value) as literal, type):
            shown = f"'{value}'" if isinstance(value, str) else f"{value}"
            span = expr.span if isinstance(expr, syntax.CastTo) else spans.get(id(literal), expr.span)
            message = f"{shown} is not {article(type)}: this always fails"
            return Finding("VSC333", span, message, (), f"write a value that is {article(type)}")
        case Call("divide" | "modulo"):
            help = "divide by something else; `try_divide(x, y)` is null where `y` is 0"
            return Finding("VSC333", expr.span, "a division by zero: this always fails", (), help)
        case Call("slice"):
            help = "1 is the first element, -1 the last; the length is at least 0"
            return Finding("VSC333", expr.span, "no array has this part: this always fails", (), help)
        case Call("element" | "element_at", (Call("array", elements), _)):
            message = f"the array has {counted(len(elements), 'element')}, and not this one: this always fails"
            return Finding("VSC333", expr.span, message, (), "`[0]` is its first element")
        case Call("element" | "element_at", args) if isinstance(args[0].type, ArrayType):
            help = "`[0]` is the first element, `element_at(x, -1)` the last"
            return Finding("VSC333", expr.span, "no array has this element: this always fails", (), help)
        case _:
            message = f"the result does not fit {article(part.type)}: this always fails"
            return Finding("VSC333", expr.span, message, (), "cast to a larger type first: `cast(x as bigint)`")
