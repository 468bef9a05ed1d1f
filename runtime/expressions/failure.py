"""How an expression fails on a record: a value that ANSI mode refuses (overflow, a bad cast, division by zero)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from vsc.runtime.errors import VscRuntimeError

__all__ = ["ExpressionFailure", "fail", "null_for_failure"]


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


def null_for_failure(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which gives null where it would fail."""

    def tried(*values: Any) -> Any:
        try:
            return function(*values)
        except ExpressionFailure:
            return None

    return tried
