"""``get_json_object``: what stands at a path of a text in JSON, as Spark finds it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from vsc.plan.expressions import Call, Literal
from vsc.plan.json_paths import parse_json_path
from vsc.runtime.expressions.json_text import SCALARS, JsonNumber, double_quoted, too_deep, whole_number

__all__ = ["reader"]


class _Object:
    """A JSON object with all its members: a name may be there twice."""

    __slots__ = ("members",)

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        self.members = members


_DECODER = json.JSONDecoder(parse_float=JsonNumber, parse_int=whole_number, object_pairs_hook=_Object)


def reader(call: Call) -> Callable[[str, str], str | None]:
    """The function of a text: what stands at the constant path, a text as it is and all else as JSON.

    It is null for text that is not JSON, where nothing stands, and for a null.
    """
    path = call.args[1]
    assert isinstance(path, Literal)
    steps = parse_json_path(str(path.value))

    def read(text: str, path: str) -> str | None:
        given = text.lstrip(" \t\r\n")
        if too_deep(given):
            return None
        try:
            value, _ = _DECODER.raw_decode(double_quoted(given))
        except ValueError:
            return None
        found = _at(value, steps)
        return None if found is None else str(SCALARS["string"](_plain(found)))

    return read


def _at(value: Any, steps: Sequence[str | int]) -> Any:
    """What stands there: of members of one name the first that has something."""
    if not steps:
        return value
    first, *rest = steps
    if isinstance(first, int):
        return _at(value[first], rest) if isinstance(value, list) and first < len(value) else None
    if isinstance(value, _Object):
        found = (_at(member, rest) for name, member in value.members if name == first)
        return next((one for one in found if one is not None), None)
    return None


class _Members(dict[str, Any]):
    """The members of an object for the writer, which asks for nothing but `items`."""

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__(members)
        self._all = members

    def items(self) -> Any:
        return self._all


def _plain(value: Any) -> Any:
    """The value as the writer of JSON takes it."""
    if isinstance(value, _Object):
        return _Members([(name, _plain(member)) for name, member in value.members])
    return [_plain(one) for one in value] if isinstance(value, list) else value
