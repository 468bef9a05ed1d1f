"""A call whose arguments have types, as the rules of functions see it."""

from __future__ import annotations

from collections.abc import Callable

from vsc.compiler.expressions.coercion import coerce, convert, is_numeric
from vsc.compiler.expressions.operators import Operand
from vsc.compiler.expressions.refusal import Refused, refuse
from vsc.compiler.source import Span
from vsc.plan.expressions import Call, Expr, Literal
from vsc.plan.functions import FUNCTIONS
from vsc.plan.record import record
from vsc.plan.types import BIGINT, DATE, INT, INTERVAL, STRING, TIMESTAMP, VOID, DataType, DecimalType, ScalarType
from vsc.plan.words import article

__all__ = ["CallSite", "Rule"]


@record
class CallSite:
    """A call to type: the function's name, its place, and its typed arguments (their number is already checked).

    `names` has the name of each argument of ``struct``, None for those without; it is empty if no argument has a name.
    `declared` is the form of a function of the user's.
    """

    name: str
    span: Span
    args: tuple[Operand, ...]
    names: tuple[str | None, ...] = ()
    declared: str | None = None

    def __len__(self) -> int:
        return len(self.args)

    @property
    def form(self) -> str:
        """The call as users write it."""
        return self.declared or FUNCTIONS[self.name].signature

    def type(self, i: int) -> DataType:
        """The type of argument `i`."""
        return self.args[i].type

    def wrong(self, i: int, wanted: str, help: str | None = None) -> Refused:
        """The exception to raise if argument `i` is not `wanted`."""
        message = f"`{self.name}` takes {wanted} here, not a value of type {self.type(i)}"
        return refuse("VSC221", self.args[i].span, message, help or f"write `{self.form}`")

    def implied(self, i: int, target: DataType) -> Expr:
        """Argument `i` as `target`, where Spark casts arguments implicitly.

        Simple values are cast to text, and text to anything. Numbers are cast to any numeric type. Dates and timestamps
        are cast to each other. Nested values are cast where nothing is lost.
        """
        arg, source = self.args[i].expr, self.type(i)
        simple = isinstance(source, ScalarType | DecimalType) and source != INTERVAL
        if not isinstance(target, ScalarType | DecimalType):
            whole = coerce(arg, target)
            if whole is None:
                raise self.wrong(i, article(target))
            return whole
        if source in (target, VOID) or (target == STRING and simple):
            return convert(arg, target)
        if (is_numeric(source) and is_numeric(target)) or {source, target} == {DATE, TIMESTAMP} or source == STRING:
            return convert(arg, target)
        names: dict[DataType, str] = {
            STRING: "text",
            INT: "an integer",
            BIGINT: "an integer",
            DATE: "a date",
            TIMESTAMP: "a timestamp",
        }
        raise self.wrong(i, names.get(target, article(target)))

    def constant(self, i: int, what: str) -> str:
        """The text of argument `i`, which must be a string literal."""
        arg = self.args[i].expr
        if isinstance(arg, Literal) and isinstance(arg.value, str) and arg.type == STRING:
            return arg.value
        message = f"{what} of `{self.name}` must be a string literal"
        raise refuse("VSC225", self.args[i].span, message, f"write `{FUNCTIONS[self.name].signature}`")

    def constant_or_none(self, i: int, what: str) -> str | None:
        """The text of argument `i` if it is a literal, which must be one of text; None for what is computed."""
        return self.constant(i, what) if isinstance(self.args[i].expr, Literal) else None

    def bad_constant(self, i: int, message: str, help: str) -> Refused:
        """The exception to raise for a constant argument with a wrong value."""
        return refuse("VSC225", self.args[i].span, message, help)

    def result(self, args: tuple[Expr, ...], type: DataType) -> Expr:
        """The call for the plan."""
        return Call(self.name, args, type)


Rule = Callable[[CallSite], Expr]
