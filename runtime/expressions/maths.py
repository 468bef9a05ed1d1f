"""Functions of doubles: Java's, as Spark calls them. Outside of its domain each gives NaN or an infinity, no error.

The last bit of a result can differ from Spark's where Java and C round a transcendental function differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = ["LOGARITHMS", "OF_ONE", "angle", "logarithm", "power"]

_Double = Callable[[float], float]


def _java(function: _Double, beyond: _Double = lambda x: math.inf) -> _Double:
    """A function of C as Java's: NaN outside of its domain, `beyond` where the result is out of range."""

    def evaluated(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return beyond(x)

    return evaluated


def _sign(x: float) -> float:
    return x if not x or math.isnan(x) else math.copysign(1.0, x)


OF_ONE: dict[str, _Double] = {
    "acos": _java(math.acos),
    "asin": _java(math.asin),
    "atan": math.atan,
    "cbrt": math.cbrt,
    "cos": _java(math.cos),
    "cosh": _java(math.cosh),
    "degrees": math.degrees,
    "exp": _java(math.exp),
    "radians": math.radians,
    "sign": _sign,
    "sin": _java(math.sin),
    "sinh": _java(math.sinh, lambda x: math.copysign(math.inf, x)),
    "sqrt": _java(math.sqrt),
    "tan": _java(math.tan),
    "tanh": math.tanh,
}
"""The functions of one double that have a value for every double."""


def _positive(function: _Double) -> Callable[[float], float | None]:
    return lambda x: None if x <= 0 else function(x)


LOGARITHMS = {
    "ln": _positive(math.log),
    "log10": _positive(math.log10),
    "log2": _positive(lambda x: math.log(x) / math.log(2.0)),
}
"""The logarithms: null of what is not positive."""


def logarithm(base: float, x: float) -> float | None:
    """``log(base, x)``: null if one of the two is not positive."""
    if base <= 0 or x <= 0:
        return None
    above, below = math.log(x), math.log(base)
    if below:
        return above / below
    return math.nan if not above or math.isnan(above) else math.copysign(math.inf, above)


def power(base: float, exponent: float) -> float:
    """``pow``, by Java's rules, which differ from C's where NaN or an infinity is the exponent."""
    if not exponent:
        return 1.0
    if math.isnan(exponent) or (math.isinf(exponent) and abs(base) == 1):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and _odd(exponent) else math.inf
    except ValueError:  # a negative power of zero, or a root of a negative number
        if base:
            return math.nan
        return math.copysign(math.inf, base) if _odd(exponent) else math.inf


def _odd(exponent: float) -> bool:
    return math.fmod(exponent, 2) in (1.0, -1.0)


def angle(y: float, x: float) -> Any:
    """``atan2``, to which -0.0 is 0.0."""
    return math.atan2(y + 0.0, x + 0.0)
