"""Functions of a user's, for tests: called by topologies, and known to the oracle by their sources alone."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

seen: list[Any] = []
not_a_function = 7


def doubled(number: int | None) -> int | None:
    """A row function that sees nulls."""
    seen.append(number)
    return -1 if number is None else 2 * number


def picky(number: int) -> int:
    """Fails on a value."""
    seen.append(number)
    if number == 13:
        raise LookupError("no thirteen")
    return number


def wrong(number: int) -> Any:
    """A value of another type for 2, none of it for 3."""
    return {2: "two", 3: None}.get(number, number)


def interrupted(number: int) -> int:
    """What no run may swallow."""
    raise KeyboardInterrupt


def described(at: dt.datetime, day: dt.date, parts: list[Any], names: dict[str, Any], pair: dict[str, Any]) -> str:
    """What values look like from inside."""
    return repr((at, day, parts, names, pair))


def tripled(numbers: pa.Array) -> pa.Array:
    """A vectorized function."""
    seen.append(numbers.to_pylist())
    return pc.multiply(numbers, 3)


def tripled_without_thirteen(numbers: pa.Array) -> pa.Array:
    """The same, but it fails on arrays with a value."""
    if pc.any(pc.equal(numbers, 13)).as_py():
        raise LookupError("no thirteen")
    return pc.multiply(numbers, 3)


def floats(numbers: pa.Array) -> pa.Array:
    """Another type than declared."""
    return numbers.cast("double")


def short(numbers: pa.Array) -> pa.Array:
    """One value too few."""
    return numbers[1:]


def listed(numbers: pa.Array) -> list[Any]:
    """Not an array."""
    return list(numbers.to_pylist())


def shown(number: int | None) -> int:
    """`coalesce(number, -1)`."""
    return -1 if number is None else number


def not_two(number: int | None) -> int | None:
    """The number, which must not be 2."""
    if number == 2:
        raise LookupError("no two")
    return number


def tagged(texts: pa.Array) -> pa.Array:
    """`coalesce(text, '?')`."""
    return pc.fill_null(texts, "?")


def no_blank(texts: pa.Array) -> pa.Array:
    """The texts, which must not be empty."""
    if pc.any(pc.equal(texts, "")).as_py():
        raise LookupError("no text")
    return texts


def whole(number: int) -> Any:
    """Numbers of numpy, and an array of them."""
    return np.int64(number) if number < 3 else np.float32(number)


def in_numpy(number: int) -> Any:
    """The same inside of other values."""
    return {"a": np.int32(number), "b": np.array([number, 0.5]), "c": np.float64(number) / 4, "d": np.bool_(number)}


def times_in_numpy(number: int) -> Any:
    """Times of numpy, the number in nanoseconds, and what stands for a missing one."""
    at = np.datetime64(number, "ns")
    return {"t": at, "d": np.datetime64("2026-01-05"), "ts": np.array([at, "NaT"], "datetime64[ns]"),
            "no": np.datetime64("NaT"), "x": np.longdouble(number) / 2}  # fmt: skip


def a_duration(number: int) -> Any:
    """What no type of the language holds."""
    return np.timedelta64(number, "ns")


def by_rows(numbers: pa.Array) -> pa.Array:
    """Structs with the fields that some row has, in the order in which they come; decimals that may all be whole."""
    return pa.array([{"b": "s", "a": n} if n > 5 else {"a": n} for n in numbers.to_pylist()])


def whole_decimals(numbers: pa.Array) -> pa.Array:
    """Decimals, but for whole numbers."""
    return pa.array([Decimal(n) / 4 if n % 2 else n for n in numbers.to_pylist()])


def in_berlin(numbers: pa.Array) -> pa.Array:
    """Times in a zone."""
    return pa.array([dt.datetime.fromtimestamp(n, ZoneInfo("Europe/Berlin")) for n in numbers.to_pylist()])


def inferred(numbers: pa.Array) -> pa.Array:
    """What pyarrow makes of Python's values: the type depends on which rows come together."""
    return pa.array([None if n > 5 else _parts(n) for n in numbers.to_pylist()])


def _parts(n: int) -> dict[str, Any]:
    return {"x": [n] if n else [], "y": Decimal(n) / 4, "z": n / 2 if n % 2 else n // 2}
