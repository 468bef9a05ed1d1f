"""How an expression fails on a record: a value that ANSI mode refuses (overflow, a bad cast, division by zero).

Whatever is raised while an expression is evaluated is such a failure, never the end of a run, but for FunctionError
(`vsc.runtime.expressions.own`). `as_failure` says what each means. Only `compile_row`, `evaluate` and
`null_for_failure` catch them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from vsc.runtime.errors import FunctionError, VscRuntimeError

__all__ = ["ExpressionFailure", "as_failure", "fail", "null_for_failure", "short"]

_SHORT = 100


class ExpressionFailure(VscRuntimeError):
    """An expression has no value for a record. `reason` starts with Spark's error class, if it has one."""

    code: ClassVar[str] = "VSC902"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __reduce__(self) -> tuple[type[ExpressionFailure], tuple[str]]:
        return ExpressionFailure, (self.reason,)


def fail(error_class: str, text: str) -> NoReturn:
    """Raises the failure that Spark names `error_class`."""
    raise ExpressionFailure(f"[{error_class}] {text}")


def short(value: object) -> str:
    """A value as text for a reason, cut if it is long."""
    text = str(value)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}... ({len(text)} characters)"


def as_failure(error: Exception) -> ExpressionFailure:
    """The failure that an exception raised by an expression stands for. FunctionError is raised again."""
    match error:
        case FunctionError():
            raise error
        case ExpressionFailure():
            return error
        case UnicodeError():
            return ExpressionFailure("[INVALID_UTF8_STRING] a text is not valid UTF-8")
        case RecursionError():
            return ExpressionFailure("[NESTED_TOO_DEEPLY] a value is nested too deeply")
        case MemoryError():
            return ExpressionFailure("[OUT_OF_MEMORY] a value does not fit in memory")
        case _:
            return ExpressionFailure(f"[INTERNAL_ERROR] {type(error).__name__}: {short(error)}")


def null_for_failure(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which gives null where it would fail."""

    def tried(*values: Any) -> Any:
        try:
            return function(*values)
        except Exception:
            return None

    return tried
