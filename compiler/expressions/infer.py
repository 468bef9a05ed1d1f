"""Types an expression: turns the syntax tree into the plan's expression, or into findings.

Guarantees:

* It never raises, whatever the syntax tree.
* An expression without a finding has a plan; one with a finding has no plan.
* Every part of an expression is checked, so one run shows everything that is wrong with it.
* Nesting is bounded (`bounds`), so deep input is a finding and not a crash, here and in what walks the plan later.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.diagnostics.suggest import nearest, renamed
from vsc.compiler.diagnostics.wording import code, listed, named
from vsc.compiler.expressions.bounds import parts_of, too_big, too_nested
from vsc.compiler.expressions.call_site import CallSite
from vsc.compiler.expressions.catalogue import typed_call
from vsc.compiler.expressions.coercion import can_cast, convert
from vsc.compiler.expressions.doubts import Doubts
from vsc.compiler.expressions.lambda_rules import lambda_body, lambda_result
from vsc.compiler.expressions.literals import literal
from vsc.compiler.expressions.operators import (
    Operand,
    arithmetic,
    case,
    combine,
    compare,
    concatenate,
    condition,
    divide,
    element,
    is_in,
    joined,
    like,
    negate,
)
from vsc.compiler.expressions.refusal import Refused, refuse
from vsc.compiler.expressions.scope import CONSTANTS, Scope, Typed, field_of
from vsc.compiler.expressions.unquoted import unquoted
from vsc.compiler.source import Span
from vsc.plan.expressions import LAMBDAS, Call, Cast, Expr, Lambda, Literal, Parameter, parameters_of
from vsc.plan.functions import AGGREGATES, FUNCTIONS
from vsc.plan.types import (
    BOOLEAN,
    INT,
    INTERVAL,
    TIMESTAMP,
    VOID,
    DataType,
)
from vsc.plan.words import article

__all__ = ["is_aggregate_call", "type_expression"]

_ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "%": "modulo"}


def type_expression(expr: syntax.Expression, scope: Scope) -> Typed:
    """The plan of `expr` in `scope`, or all findings about it."""
    too_deep = too_nested(expr)
    if too_deep is not None:
        return Typed(None, (too_deep,))
    typer = _Typer(scope)
    typed = typer.type(expr)
    if typed is not None and not typer.findings:
        too_large = too_big(expr, typed)
        if too_large is not None:
            return Typed(None, (too_large,))
        for doubt in typer.doubts.found:
            scope.doubt(doubt)
    return Typed(None if typer.findings else typed, tuple(typer.findings))


def is_aggregate_call(expr: syntax.Expression) -> bool:
    """Whether `expr` itself is a call of an aggregate function (``sum(x)``). Containing such a call is not enough."""
    return isinstance(expr, syntax.FunctionCall) and expr.name.text in AGGREGATES


class _Typer:
    """Types the parts of one expression and collects what is wrong with them."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.findings: list[Finding] = []
        self.doubts = Doubts()
        self._typed: dict[int, Expr] = {}
        self._constants: dict[int, Expr | None] = {}
        """What the values of constants mean, by the ids of their syntax: one may be made of another many times."""
        self._lambdas: list[dict[str, Parameter]] = []
        """The parameters of the lambdas around what is being typed, by their names; the outermost first."""

    def type(self, expr: syntax.Expression) -> Expr | None:
        """The plan of `expr`; None if it or a part of it is wrong."""
        try:
            typed = self._one(expr)
        except Refused as refused:
            self.findings.append(refused.finding)
            return None
        if typed is not None:
            self._typed[id(expr)] = typed
            within = [(part, self._typed[id(part)]) for part in parts_of(expr) if id(part) in self._typed]
            self.doubts.look(expr, typed, within)
        return typed

    def operands(self, *exprs: syntax.Expression) -> list[Operand] | None:
        """All of `exprs`, typed; None if any is wrong (the others are checked anyway)."""
        typed = [(self.type(expr), expr.span) for expr in exprs]
        found = [Operand(expr, span) for expr, span in typed if expr is not None]
        return found if len(found) == len(exprs) else None

    def _one(self, expr: syntax.Expression) -> Expr | None:
        match expr:
            case syntax.Literal(value, span):
                return literal(value, span)
            case syntax.Duration(milliseconds):
                return Literal(milliseconds, INTERVAL)
            case syntax.Variable(name, span):
                raise refuse("VSC014", span, f"the variable `{name}` has no value", f"set it: `--var {name}=...`")
            case syntax.ColumnRef():
                return self._parameter(expr) or self.scope.resolve(expr)
            case syntax.CalendarLength(span=span):
                raise _no_size(span, "VSC014", "variable")
            case syntax.Constant(value=syntax.CalendarLength(), span=span):
                raise _no_size(span, "VSC133", "constant")
            case syntax.Constant(name, value):
                self.scope.refuse_column(name)
                return self._constant(value)
            case syntax.FieldOf(base, name):
                typed = self.type(base)
                return None if typed is None else field_of(typed, name)
            case syntax.Element(base, index):
                operands = self.operands(base, index)
                return None if operands is None else element(*operands)
            case syntax.FunctionCall():
                return self._call(expr)
            case syntax.Lambda(span=span):
                raise refuse("VSC221", span, "a lambda stands here", f"only {listed(sorted(LAMBDAS))} take one")
            case syntax.Unary():
                return self._unary(expr)
            case syntax.Chain():
                return self._chain(expr)
            case syntax.Comparison(op, left, right, _, op_span):
                operands = self.operands(left, right)
                return None if operands is None else compare(op, operands[0], operands[1], op_span)
            case syntax.IsNull(arg, negated):
                typed = self.type(arg)
                return None if typed is None else Call("is_not_null" if negated else "is_null", (typed,), BOOLEAN)
            case syntax.In(arg, options, negated, span):
                operands = self.operands(arg, *options)
                return None if operands is None else _unless(negated, is_in(operands[0], operands[1:], span))
            case syntax.Between():
                return self._between(expr)
            case syntax.Like(arg, pattern, negated):
                operands = self.operands(arg, pattern)
                return None if operands is None else _unless(negated, like(*operands))
            case syntax.Case():
                return self._case(expr)
            case syntax.CastTo():
                return self._cast(expr)

    def _constant(self, value: syntax.Expression) -> Expr | None:
        """What `value` means without any row: as where it is declared, and reported."""
        if id(value) not in self._constants:
            typer = _Typer(replace(CONSTANTS, functions=self.scope.functions))
            typer._constants = self._constants
            self._constants[id(value)] = typer.type(value)
            self.findings += typer.findings
        return self._constants[id(value)]

    def _unary(self, expr: syntax.Unary) -> Expr | None:
        if expr.op == "-" and isinstance(expr.arg, syntax.Literal):
            value = expr.arg.value
            if isinstance(value, Decimal):
                return literal(value.copy_negate(), expr.span)
            # not -0e0: as a literal it would equal 0e0, and equal calls are computed once
            if type(value) is int or (isinstance(value, float) and value):
                return literal(-value, expr.span)
        found = self.operands(expr.arg)
        if found is None:
            return None
        if expr.op == "-":
            return negate(found[0], expr.span)
        return Call("not", (condition(found[0], "`not`"),), BOOLEAN)

    def _chain(self, expr: syntax.Chain) -> Expr | None:
        """Types the chain from left to right, one run of the same operator at a time."""
        operands = self.operands(expr.first, *(link.operand for link in expr.rest))
        if operands is None:
            return None
        left, at = operands[0], 0
        while at < len(expr.rest):
            op, start = expr.rest[at].op, at
            while at < len(expr.rest) and expr.rest[at].op == op:
                at += 1
            places = [link.op_span for link in expr.rest[start:at]]
            whole = _run(op, [left, *operands[start + 1 : at + 1]], places)
            left = Operand(whole, expr.first.span.to(operands[at].span))
        return left.expr

    def _between(self, expr: syntax.Between) -> Expr | None:
        found = self.operands(expr.arg, expr.low, expr.high)
        if found is None:
            return None
        arg, low, high = found
        both = (compare(">=", arg, low, low.span), compare("<=", arg, high, high.span))
        return _unless(expr.negated, Call("and", both, BOOLEAN))

    def _case(self, expr: syntax.Case) -> Expr | None:
        operand = None if expr.operand is None else self.operands(expr.operand)
        whens = self.operands(*(branch.condition for branch in expr.branches))
        values = self.operands(*(branch.value for branch in expr.branches))
        otherwise = (
            [Operand(Literal(None, VOID), expr.span)] if expr.otherwise is None else self.operands(expr.otherwise)
        )
        if whens is None or values is None or otherwise is None:
            return None
        if expr.operand is None:
            conditions = [condition(when, "`when`") for when in whens]
        elif operand is None:
            return None
        else:
            conditions = [compare("=", operand[0], when, when.span) for when in whens]
        return case(conditions, [*values, *otherwise], expr.span)

    def _cast(self, expr: syntax.CastTo) -> Expr | None:
        typed, target = self.type(expr.arg), expr.type.type
        if typed is None:
            return None
        if not can_cast(typed.type, target):
            name = "try_cast" if expr.safe else "cast"
            message = f"`{name}` cannot turn a value of type {typed.type} into {article(target)}"
            raise refuse("VSC223", expr.type.span, message, "choose a type that it can be cast to")
        if typed.type in (target, VOID):
            return convert(typed, target)
        return Cast(typed, target, safe=True) if expr.safe else convert(typed, target)

    def _call(self, expr: syntax.FunctionCall) -> Expr | None:
        name = expr.name.text
        if name in self.scope.functions:
            return self._own(expr, self.scope.functions[name])
        if name in AGGREGATES and self.scope.aggregate is not None:
            typed = self.scope.aggregate(expr)
            self.findings.extend(typed.findings)
            return typed.expr
        if name in AGGREGATES:
            message = f"`{name}` is an aggregate function, and this expression sees one row at a time"
            raise refuse("VSC115", expr.span, message, "select it in an `aggregate ... group by`")
        if name == "revision":
            return self._revision(expr)
        if name not in FUNCTIONS:
            if name == "try_cast":
                raise refuse("VSC222", expr.span, "`try_cast` needs a type", "write `try_cast(... as TYPE)`")
            from vsc.compiler.expressions.elsewhere import instead_of  # a text without mistakes does not need it

            near = nearest(name, self.scope.functions)
            help, meant = instead_of(name) if near is None else (f"did you mean {code(named(near))}?", named(near))
            if meant is not None and self.scope.aggregate is None:  # else its arguments may be right, in another place
                self.operands(*expr.args)
            fix = None if meant is None else Fix(expr.name.span, meant)
            raise refuse("VSC112", expr.name.span, f"there is no function `{name}`", help, fix)
        signature = FUNCTIONS[name]
        instead: str | None = None
        if name in ("ceil", "floor") and len(expr.args) == 2:
            instead = f"it makes a whole number; for two digits write `{name}(x * 100) / 100`"
        _check_form(expr, signature.signature, signature.least, signature.most, instead)
        if name == "event_time":
            return self._event_time(expr)
        if name in LAMBDAS:
            return self._of_elements(expr, signature.signature)
        if (wrong := unquoted(expr, self._is_known)) is not None:
            raise Refused(wrong)
        args = self.operands(*expr.args)
        if args is None:
            return None
        names = tuple(name if name is None else name.text for name in expr.names)
        if self._lambdas and name == "struct":
            given = names or (None,) * len(args)
            names = tuple(one or self._parameter_name(arg) for one, arg in zip(given, expr.args, strict=True))
        return typed_call(CallSite(name, expr.span, tuple(args), names))

    def _is_known(self, name: str) -> bool:
        """Whether a column, an input or a parameter of a lambda has this name."""
        inputs = self.scope.inputs
        return any(name in one.names() or name == one.name for one in inputs) or any(name in of for of in self._lambdas)

    def _of_elements(self, expr: syntax.FunctionCall, form: str) -> Expr | None:
        """A call with a lambda, or two, which see the elements of an array or a map."""
        name, first = expr.name.text, LAMBDAS[expr.name.text][0]
        given, lambdas = expr.args[:first], expr.args[first:]
        found = self.operands(*given)
        for does in lambdas:
            if not isinstance(does, syntax.Lambda):
                raise refuse("VSC221", does.span, f"`{name}` takes a lambda here", f"write {code(form)}")
        if found is None:
            return None
        site, args = CallSite(name, expr.span, tuple(found)), [one.expr for one in found]
        for number, does in enumerate(lambdas, first):
            assert isinstance(does, syntax.Lambda)
            types = parameters_of(name, number, [one.type for one in found])
            if types is None:
                raise site.wrong(0, "a map" if name == "transform_values" else "an array")
            body = self._body(does, _wanted(does, name, types, form))
            if body is None:
                return None
            args.append(Lambda(lambda_body(site, number, body), len(self._lambdas)))
        return Call(name, tuple(args), lambda_result(site, args))

    def _body(self, lambda_: syntax.Lambda, types: tuple[DataType, ...]) -> Operand | None:
        depth, names = len(self._lambdas), [name.text for name in lambda_.parameters]
        if len(set(names)) < len(names):
            message = f"both parameters are called `{names[0]}`"
            raise refuse("VSC111", lambda_.parameters[1].span, message, "give one of them another name")
        parameters = (Parameter(place, depth, type) for place, type in enumerate(types))
        self._lambdas.append(dict(zip(names, parameters, strict=False)))
        found = self.operands(lambda_.body)
        self._lambdas.pop()
        return None if found is None else found[0]

    def _parameter(self, reference: syntax.ColumnRef) -> Expr | None:
        """The parameter of a lambda that is meant, or a field of it: it hides columns, inputs and outer parameters."""
        first, *rest = reference.parts
        found: Expr | None = next((of[first.text] for of in reversed(self._lambdas) if first.text in of), None)
        for name in rest if found is not None else ():
            assert found is not None
            found = field_of(found, name)
        return found

    def _parameter_name(self, expr: syntax.Expression) -> str | None:
        """What a field of a struct is called whose value is a parameter."""
        is_parameter = isinstance(expr, syntax.ColumnRef) and len(expr.parts) == 1 and self._parameter(expr)
        return expr.parts[0].text if isinstance(expr, syntax.ColumnRef) and is_parameter else None

    def _own(self, expr: syntax.FunctionCall, function: syntax.FunctionDecl) -> Expr | None:
        """A call of a function of the user's."""
        name, types = function.name.text, [one.type.type for one in function.parameters]
        form = f"{named(name)}({', '.join(named(one.name.text) for one in function.parameters)})"
        _check_form(expr, form, len(types), len(types))
        args = self.operands(*expr.args)
        if args is None:
            return None
        site = CallSite(name, expr.span, tuple(args), declared=form)
        implied = tuple(site.implied(i, type_) for i, type_ in enumerate(types))
        return Call(function.reference, implied, function.returns.type, function.vectorized)

    def _revision(self, expr: syntax.FunctionCall) -> Expr:
        if expr.args:
            raise refuse("VSC222", expr.span, "`revision` takes no argument", "write `revision()`")
        if self.scope.revision is None:
            message = "only the items of a join with `correct` have a `revision`"
            raise refuse("VSC116", expr.span, message, "remove it, or correct the join: `correct by EXPR within D`")
        return self.scope.revision

    def _event_time(self, expr: syntax.FunctionCall) -> Expr:
        if self.scope.no_event_time is not None:
            raise refuse("VSC116", expr.span, *self.scope.no_event_time)
        if not expr.args:
            return self.scope.event_time or Call("event_time", (), TIMESTAMP)
        arg = expr.args[0]
        names = [i.name for i in self.scope.inputs]
        if isinstance(arg, syntax.ColumnRef) and len(arg.parts) == 1:
            source = self.scope.input(arg.parts[0].text)
            if source is not None:
                return Call("event_time", (Literal(source.index, INT),), TIMESTAMP)
            found = nearest(arg.parts[0].text, names)
            help = f"did you mean {code(named(found))}?" if found else f"the inputs here are {listed(names)}"
            message, fix = f"there is no input `{arg.parts[0].text}`", renamed(arg.span, arg.parts[0].text, names)
            raise refuse("VSC116", arg.span, message, help, fix)
        raise refuse(
            "VSC116", arg.span, "`event_time` takes the name of an input", "write `event_time()` for the record's"
        )


def _wanted(does: syntax.Lambda, name: str, types: tuple[DataType, ...], form: str) -> tuple[DataType, ...]:
    """The types of the parameters of a lambda; raises Refused if it has too many or too few."""
    count, all_of = len(does.parameters), name in ("aggregate", "reduce", "transform_values")
    most = 1 if name in ("exists", "forall") else len(types)
    if count > most or (all_of and count < most):
        message = f"the lambda of `{name}` has {'one parameter' if most == 1 else 'two parameters'}"
        raise refuse("VSC222", does.span, message, f"write {code(form)}")
    return types


def _run(op: str, operands: list[Operand], places: list[Span]) -> Expr:
    """Joins `operands` with the operator `op`, which stands at `places`."""
    if op == "||":
        return concatenate(operands)
    if op in ("and", "or"):
        return combine(op, operands)
    left, *others = operands
    whole = left.expr
    for right, place in zip(others, places, strict=True):
        so_far = Operand(whole, left.span.to(right.span))
        if op == "/":
            whole = divide(so_far, right, place)
        else:
            whole = joined(whole, arithmetic(_ARITHMETIC[op], so_far, right, place))
    return whole


def _no_size(span: Span, code: str, what: str) -> Refused:
    message = f"this {what} is a length by the calendar, which is only the `size` of a `tumbling` window"
    return refuse(code, span, message, "give it a value such as `30 days`")


def _unless(negated: bool, expr: Expr) -> Expr:
    return Call("not", (expr,), BOOLEAN) if negated else expr


def _check_form(expr: syntax.FunctionCall, form: str, least: int, most: int | None, help: str | None = None) -> None:
    """Raises Refused for a call that does not have the `form` of its function, or not as many arguments."""
    name = expr.name.text
    if expr.star or expr.distinct or expr.order or expr.over:
        word = "*" if expr.star else "distinct" if expr.distinct else "by" if expr.order else "over"
        raise refuse("VSC222", expr.span, f"`{name}` does not take `{word}`", f"write {code(form)}")
    if len(expr.args) < least or (most is not None and len(expr.args) > most):
        message = f"`{name}` takes {_count(least, most)}, not {len(expr.args)}"
        raise refuse("VSC222", expr.span, message, help or f"write {code(form)}")


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least} argument{'s' if least != 1 else ''}"
    if least == most:
        return f"{least} argument{'s' if least != 1 else ''}"
    return f"{least} to {most} arguments"
