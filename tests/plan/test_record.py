"""A record is a frozen dataclass with slots to everybody who uses one."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from vsc.plan.record import record


@record
class Pair:
    """Two values."""

    left: int
    right: str = "r"


@record
class One:
    """One value."""

    value: int


def test_it_is_made_by_place_by_name_and_with_defaults() -> None:
    assert [(p.left, p.right) for p in (Pair(1), Pair(1, "x"), Pair(right="y", left=2))] == [
        (1, "r"),
        (1, "x"),
        (2, "y"),
    ]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "Pair lacks the argument 'left'"),
        ((1, "a", 2), {}, "Pair takes 2 arguments but 3 were given"),
        ((1,), {"left": 2}, "Pair got a second argument 'left'"),
        ((1,), {"other": 2}, "Pair got an unexpected argument 'other'"),
    ],
)
def test_wrong_arguments_are_refused(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Pair(*args, **kwargs)


def test_equal_values_are_equal_and_hash_alike() -> None:
    assert Pair(1) == Pair(1, "r") and hash(Pair(1)) == hash(Pair(1, "r"))
    others: list[object] = [Pair(2), (1, "r"), One(1)]
    assert all(Pair(1) != other and other != Pair(1) for other in others)
    assert One(1) == One(1) and len({One(1), One(1)}) == 1


def test_it_cannot_be_changed() -> None:
    pair = Pair(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        pair.left = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del pair.left
    assert not hasattr(pair, "__dict__")


def test_it_works_with_dataclasses_pickle_copy_and_match() -> None:
    pair = Pair(1, "x")
    assert dataclasses.is_dataclass(pair) and [f.name for f in dataclasses.fields(pair)] == ["left", "right"]
    assert dataclasses.replace(pair, left=5) == Pair(5, "x")
    assert dataclasses.asdict(pair) == {"left": 1, "right": "x"}
    assert pickle.loads(pickle.dumps(pair)) == pair and copy.deepcopy(pair) == pair
    match pair:
        case Pair(left, right):
            assert (left, right) == (1, "x")
    assert repr(pair) == "Pair(left=1, right='x')" and Pair.__doc__ == "Two values."


def test_what_it_cannot_do_is_refused_where_it_is_written() -> None:
    with pytest.raises(TypeError, match=r"takes no field"):

        @record
        class Wrong:
            values: list[int] = dataclasses.field(default_factory=list)
