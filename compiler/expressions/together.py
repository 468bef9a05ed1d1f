"""What several conditions come to together: that nothing meets them all, or that everything meets one of them.

It goes by what they say of one value (comparisons with constants, `in`, `is null`), and by a condition and its `not`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any

from vsc.compiler.expressions.constants import LENIENT, Constant, Known, Outcomes
from vsc.plan.expressions import Call, Cast, Column, Expr

__all__ = ["FLIPPED", "exclusive", "exhaustive"]

FLIPPED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge", "eq": "eq", "ne": "ne"}
"""A comparison with its sides changed."""
_ORDER: dict[str, Callable[[Any, Any], bool]] = {"gt": gt, "ge": ge, "lt": lt, "le": le}

_Test = tuple[str, tuple[Any, ...]]
"""An order and a constant; or ``in`` or ``not in`` and constants."""


def exclusive(conditions: Sequence[Expr], outcomes: Outcomes) -> bool:
    """Whether no row meets all of `conditions`."""
    every = list(_flat("and", conditions))
    if _contradict(every) or any(_needs(one, absent) for absent in _of("is_null", every) for one in every):
        return True
    return any(_is_empty(tests) for tests in _tests(every, outcomes))


def exhaustive(conditions: Sequence[Expr], outcomes: Outcomes) -> bool:
    """Whether every row meets one of `conditions`, or makes it null."""
    every = list(_flat("or", conditions))
    if _contradict(every) or any(absent in _of("is_not_null", every) for absent in _of("is_null", every)):
        return True
    return any(_is_full(tests) for tests in _tests(every, outcomes))


def _flat(function: str, conditions: Iterable[Expr]) -> Iterator[Expr]:
    for condition in conditions:
        if isinstance(condition, Call) and condition.function == function:
            yield from _flat(function, condition.args)
        else:
            yield condition


def _of(function: str, conditions: Iterable[Expr]) -> list[Expr]:
    """The arguments of those conditions that are calls of `function`, which has one."""
    return [one.args[0] for one in conditions if isinstance(one, Call) and one.function == function]


def _contradict(conditions: Sequence[Expr]) -> bool:
    return any(denied in conditions for denied in _of("not", conditions))


def _needs(expr: Expr, absent: Expr) -> bool:
    """Whether a condition is null, or false, wherever `absent` is null."""
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if part == absent:
            return True
        if isinstance(part, Cast):
            waiting.append(part.arg)
        elif isinstance(part, Call) and part.function in ("in", "is_not_null"):
            waiting.append(part.args[0])
        elif isinstance(part, Call) and part.function not in LENIENT and not part.is_own:
            waiting.extend(part.args)
    return False


def _tests(conditions: Iterable[Expr], outcomes: Outcomes) -> Iterator[list[_Test]]:
    """What the conditions test each column for, where the constants can be compared with each other."""
    found: dict[Expr, list[_Test]] = {}
    for subject, test in filter(None, (_test(condition, outcomes) for condition in conditions)):
        if isinstance(subject.arg if isinstance(subject, Cast) else subject, Column):
            found.setdefault(subject, []).append(test)
    for tests in found.values():
        if len({_kind(value) for _, values in tests for value in values}) == 1:
            yield tests


def _test(condition: Expr, outcomes: Outcomes) -> tuple[Expr, _Test] | None:
    if not isinstance(condition, Call):
        return None
    negated = condition.function == "not"
    call = condition.args[0] if negated else condition
    if isinstance(call, Call) and call.function == "in":
        subject, *others = call.args
        known = [outcomes.of(other) for other in others]
        values = tuple(one.value for one in known if isinstance(one, Known))
        return (subject, ("not in" if negated else "in", values)) if len(values) == len(others) else None
    if condition.function not in FLIPPED:
        return None
    (subject, other), op = condition.args, condition.function
    if isinstance(outcomes.of(subject), Known):
        subject, other, op = other, subject, FLIPPED[op]
    constant = outcomes.of(other)
    op = {"eq": "in", "ne": "not in"}.get(op, op)
    return (subject, (op, (constant.value,))) if isinstance(constant, Known) else None


def _kind(value: Constant) -> type:
    """What `value` can be compared with."""
    return type(value) if isinstance(value, str | datetime) else float


def _is_empty(tests: Sequence[_Test]) -> bool:
    """Whether no value passes all of them."""
    named = [value for op, values in tests if op == "in" for value in values]
    if named:
        return not any(all(_passed(tests, value)) for value in named)
    low, high = max(_ends(tests, "gt", "ge"), default=None), min(_ends(tests, "lt", "le"), default=None)
    if low is None or high is None:
        return False
    return bool(low > high) or (low == high and not all(_passed(tests, low)))


def _is_full(tests: Sequence[_Test]) -> bool:
    """Whether every value passes one of them."""
    if any(op == "not in" and all(any(_passed(tests, value)) for value in values) for op, values in tests):
        return True
    low, high = min(_ends(tests, "gt", "ge"), default=None), max(_ends(tests, "lt", "le"), default=None)
    if low is None or high is None:
        return False
    return bool(low < high) or (low == high and any(_passed(tests, low)))


def _ends(tests: Iterable[_Test], *ops: str) -> Iterator[Any]:
    return (values[0] for op, values in tests if op in ops)


def _passed(tests: Iterable[_Test], value: Any) -> Iterator[bool]:
    """Whether `value` passes each of the tests."""
    for op, values in tests:
        yield (value in values) == (op == "in") if op in ("in", "not in") else _ORDER[op](value, values[0])
