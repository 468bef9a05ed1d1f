"""The plan's JSON: `dump` writes it, `load` reads it back strictly.

Guarantees: equal plans give equal text, byte for byte, whatever the hash seed. ``load(dump(plan)) == plan``. `load`
evaluates nothing, accepts only what this format version knows and what fits together (`checking`), and says where in
the document the first mistake is.

Layout: a dataclass is an object with every field as a member, in the order of the class; `_LEFT_OUT` are left out at
their defaults. A type is its DDL text. An
expression is an object whose first member says what it is (``literal``, ``column``, ``cast``, ``call``, ``parameter``,
``lambda``). An object or list that fits on one line is written on one line; others are indented by two spaces.

Not a defence against hostile plans: `load` bounds the size and depth of what it reads, no more.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints
from typing import Literal as Choice

from vsc.plan import expressions as exprs
from vsc.plan import nodes
from vsc.plan.checking import first_mistake
from vsc.plan.types import MAX_PRECISION, DataType, DecimalType, parse_type

__all__ = ["MAX_BYTES", "MAX_DEPTH", "PlanError", "dump", "load"]

MAX_BYTES = 64 * 1024 * 1024
"""The longest text that `load` takes, in characters."""

MAX_DEPTH = 600
"""How deeply objects and lists may be nested. Each level of an expression takes two levels."""

_LINE = 100

# The field that an expression's tag replaces, and the tag.
_TAGS: dict[type, tuple[str, str]] = {
    exprs.Literal: ("value", "literal"),
    exprs.Column: ("name", "column"),
    exprs.Cast: ("arg", "cast"),
    exprs.Call: ("function", "call"),
    exprs.Parameter: ("place", "parameter"),
    exprs.Lambda: ("body", "lambda"),
}
# The fields that came later. Plans that do not use them are what they were: in checkpoints, to an older vsc, in hashes.
_LEFT_OUT: dict[type, frozenset[str]] = {
    nodes.Plan: frozenset({"clock", "clock_implied", "functions", "quiet"}),
    exprs.Call: frozenset({"vectorized"}),
    nodes.StreamTableJoin: frozenset({"max_age", "strictly_before", "drop_older"}),
    nodes.Aggregate: frozenset({"timed"}),
    nodes.Correct: frozenset({"max_age", "strictly_before", "drop_older", "table"}),
    nodes.StreamGlobalJoin: frozenset({"max_age"}),
    nodes.Sink: frozenset({"part_of"}),
    nodes.Explode: frozenset({"position"}),
    nodes.Map: frozenset({"timestamp"}),
    nodes.Store: frozenset({"expire", "history", "forget"}),
    nodes.Subscribe: frozenset({"complete"}),
    nodes.Answer: frozenset({"complete"}),
    nodes.GroupChanges: frozenset({"complete", "window", "steady"}),
    nodes.Stage: frozenset({"intervals"}),
    nodes.Window: frozenset({"offset", "zone", "months"}),
}
_BY_TAG = {tag: cls for cls, (_, tag) in _TAGS.items()}
_OPERATIONS: dict[str, type] = {cls.__dataclass_fields__["op"].default: cls for cls in get_args(nodes.Operation)}

_Decoder = Callable[[object, str], Any]


class PlanError(ValueError):
    """A text is not a plan of this format version. The message names the place as a JSON pointer."""


def dump(plan: nodes.Plan) -> str:
    """The JSON of `plan`, ending with a line feed. Equal plans give the same text."""
    document = {"format_version": nodes.FORMAT_VERSION, **_encode(plan)}
    return _render(document) + "\n"


def load(text: str) -> nodes.Plan:
    """The plan that `text` holds.

    Raises PlanError for anything that `dump` of this format version would not have written: unknown or missing members,
    wrong types, another format version, parts that do not fit together, a document that is too large or too deep.
    """
    document = _parse(text)
    version = document.pop("format_version", None)
    if type(version) is not int or version != nodes.FORMAT_VERSION:
        raise _error("/format_version", f"expected {nodes.FORMAT_VERSION}, found {_shown(version)}: compile it again")
    try:
        plan: nodes.Plan = _decode_object(nodes.Plan, document, "")
    except RecursionError:
        raise _too_deep("") from None
    mistake = first_mistake(plan)
    if mistake is not None:
        raise _error(*mistake)
    return plan


# --------------------------------------------------------------------------------------------------------- writing


def _encode(value: object) -> Any:
    if dataclasses.is_dataclass(value):
        if isinstance(value, get_args(DataType)):
            return str(value)
        names = [f.name for f in dataclasses.fields(value)]
        field, tag = _TAGS.get(type(value), ("", ""))
        first = field or ("op" if "op" in names else names[0])
        names.remove(first)
        members = {}  # loops here and below, not comprehensions: each would add a frame to a deep recursion
        left_out = _LEFT_OUT.get(type(value), ())
        for name in (first, *names):
            found = getattr(value, name)
            if name not in left_out or found != value.__dataclass_fields__[name].default:
                members[tag if name == field else name] = _encode(found)
        return members
    if isinstance(value, tuple):
        items = []
        for item in value:
            items.append(_encode(item))
        return items
    return value


def _render(value: Any) -> str:
    """JSON text, with short lists and objects on one line."""
    parts = []
    if isinstance(value, dict):
        for name, member in value.items():
            parts.append(f"{json.dumps(name)}: {_render(member)}")
        return _bracketed("{", parts, "}")
    if isinstance(value, list):
        for item in value:
            parts.append(_render(item))
        return _bracketed("[", parts, "]")
    return json.dumps(value, allow_nan=False)


def _bracketed(opening: str, parts: list[str], closing: str) -> str:
    line = f"{opening}{', '.join(parts)}{closing}"
    if len(line) <= _LINE and "\n" not in line:
        return line
    body = ",\n".join(parts).replace("\n", "\n  ")
    return f"{opening}\n  {body}\n{closing}"


# --------------------------------------------------------------------------------------------------------- reading


def _parse(text: str) -> dict[str, Any]:
    if len(text) > MAX_BYTES:
        raise _error("", f"longer than {MAX_BYTES} characters")
    try:
        document = json.loads(text, object_pairs_hook=_members, parse_constant=_no_constant)
    except RecursionError:
        raise _too_deep("") from None
    except PlanError:
        raise
    except ValueError as error:
        raise PlanError(f"not a plan: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise _error("", f"expected an object, found {_shown(document)}")
    return document


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise PlanError(f"not a plan: member {twice!r} occurs twice in one object")
    return members


def _no_constant(name: str) -> object:
    raise PlanError(f"not a plan: {name} is not a number")


def _decode_object(cls: type, value: object, path: str) -> Any:
    if type(value) is not dict:
        raise _error(path, f"expected an object, found {_shown(value)}")
    if path.count("/") > MAX_DEPTH:
        raise _too_deep(path)
    decoders = _fields(cls)
    for name in value:
        if name not in decoders:
            raise _error(f"{path}/{_escaped(name)}", "no such member")
    found = {}
    for name, (field, decoder) in decoders.items():
        if name not in value:
            if name in _LEFT_OUT.get(cls, ()):
                continue
            raise _error(path, f"member {name!r} is missing")
        found[field] = decoder(value[name], f"{path}/{name}")
    return cls(**found)


@cache
def _fields(cls: type) -> dict[str, tuple[str, _Decoder]]:
    """The JSON members of a class: from a member's name to its field and decoder."""
    hints = get_type_hints(cls)
    tagged, tag = _TAGS.get(cls, ("", ""))
    return {
        (tag if field.name == tagged else field.name): (field.name, _decoder(hints[field.name]))
        for field in dataclasses.fields(cls)
    }


@cache
def _decoder(hint: Any) -> _Decoder:
    if hint == DataType:
        return _decode_type
    if hint == exprs.Expr:
        return _decode_expression
    if hint == nodes.Operation:
        return _decode_operation
    if dataclasses.is_dataclass(hint):
        return lambda value, path: _decode_object(hint, value, path)  # type: ignore[arg-type]
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        return _list_decoder(_decoder(args[0])) if args[-1] is ... else _pair_decoder(tuple(map(_decoder, args)))
    if origin is Choice:
        return _choice_decoder(args)
    if origin in (Union, types.UnionType):
        return _union_decoder(args)
    return _scalar_decoder((hint,))


def _list_decoder(item: _Decoder) -> _Decoder:
    def decode(value: object, path: str) -> Any:
        if type(value) is not list:
            raise _error(path, f"expected a list, found {_shown(value)}")
        items = []
        for index, part in enumerate(value):
            items.append(item(part, f"{path}/{index}"))
        return tuple(items)

    return decode


def _pair_decoder(parts: tuple[_Decoder, ...]) -> _Decoder:
    def decode(value: object, path: str) -> Any:
        if type(value) is not list or len(value) != len(parts):
            raise _error(path, f"expected a list of {len(parts)}, found {_shown(value)}")
        return tuple([part(value[i], f"{path}/{i}") for i, part in enumerate(parts)])

    return decode


def _choice_decoder(choices: tuple[Any, ...]) -> _Decoder:
    def decode(value: object, path: str) -> Any:
        if type(value) is not str or value not in choices:
            raise _error(path, f"expected one of {', '.join(map(repr, choices))}, found {_shown(value)}")
        return value

    return decode


def _union_decoder(args: tuple[Any, ...]) -> _Decoder:
    """A decoder for a class or None, or for one of several plain values."""
    others = [arg for arg in args if arg is not type(None)]
    if len(others) == 1 and len(args) == 2:
        decoder = _decoder(others[0])
        return lambda value, path: None if value is None else decoder(value, path)
    return _scalar_decoder(args)


def _scalar_decoder(allowed: tuple[type, ...]) -> _Decoder:
    expected = " or ".join("null" if kind is type(None) else kind.__name__ for kind in allowed)

    def decode(value: object, path: str) -> Any:
        if type(value) not in allowed:
            raise _error(path, f"expected {expected}, found {_shown(value)}")
        return value

    return decode


def _decode_type(value: object, path: str) -> DataType:
    if type(value) is not str:
        raise _error(path, f"expected a type, found {_shown(value)}")
    try:
        decoded = parse_type(value)
    except ValueError as error:
        raise _error(path, str(error)) from None
    if isinstance(decoded, DecimalType) and not (
        1 <= decoded.precision <= MAX_PRECISION and 0 <= decoded.scale <= decoded.precision
    ):
        raise _error(path, f"not a type: {value!r}")
    return decoded


def _decode_expression(value: object, path: str) -> exprs.Expr:
    tags = [tag for tag in _BY_TAG if type(value) is dict and tag in value]
    if len(tags) != 1:
        raise _error(path, f"expected an expression ({', '.join(_BY_TAG)}), found {_shown(value)}")
    found: exprs.Expr = _decode_object(_BY_TAG[tags[0]], value, path)
    return found


def _decode_operation(value: object, path: str) -> nodes.Operation:
    op = value.get("op") if type(value) is dict else None
    if type(op) is not str or op not in _OPERATIONS:
        raise _error(f"{path}/op", f"expected one of {', '.join(map(repr, _OPERATIONS))}, found {_shown(op)}")
    found: nodes.Operation = _decode_object(_OPERATIONS[op], value, path)
    return found


def _error(path: str, message: str) -> PlanError:
    return PlanError(f"not a plan: at {path or 'the top'}: {message}")


def _too_deep(path: str) -> PlanError:
    return _error(path, f"nested deeper than {MAX_DEPTH}")


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
