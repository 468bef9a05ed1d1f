"""``@record``: a frozen dataclass with slots that costs almost nothing to define.

`dataclasses.dataclass` generates and compiles six functions for each class, which takes about half a millisecond. The
compiler has more than a hundred such classes, and ``vsc check`` spent a fifth of its time defining them. Here all
classes share the same functions. The result is a dataclass to everybody else: `dataclasses.fields`, `replace` and
`is_dataclass` work, and type checkers see one. Creating an instance is somewhat slower, so do not use it for objects
created per row. It supports no inheritance, no ``field(...)`` and no ``__post_init__``: use a dataclass for those.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

__all__ = ["record"]

_T = TypeVar("_T")
_set = object.__setattr__


@dataclass_transform(frozen_default=True)
def record(cls: type[_T]) -> type[_T]:
    """Makes `cls` a frozen dataclass with slots."""
    annotations = vars(cls).get("__annotations__", {})
    members = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
    fields = {}
    for name, type_ in annotations.items():
        default = members.pop(name, dataclasses.MISSING)
        if isinstance(default, dataclasses.Field):
            raise TypeError(f"{cls.__name__}.{name}: a record takes no field(...)")
        field: Any = dataclasses.field(default=default)
        field.name, field.type = name, type_
        field._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
        fields[name] = field
    names = tuple(fields)
    members.update(
        __slots__=names,
        __match_args__=names,
        __dataclass_fields__=fields,
        _values=attrgetter(*names) if len(names) > 1 else _single(names[0]),
        **_METHODS,
    )
    made: type[_T] = type(cls)(cls.__name__, cls.__bases__, members)  # type: ignore[misc]
    made.__qualname__ = cls.__qualname__
    return made


def _single(name: str) -> Any:
    get = attrgetter(name)
    return lambda instance: (get(instance),)


def _init(self: Any, *args: Any, **kwargs: Any) -> None:
    names = self.__slots__
    if kwargs or len(args) != len(names):
        args = _bound(self, args, kwargs)
    for name, value in zip(names, args, strict=True):
        _set(self, name, value)


def _bound(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The values of all fields. Raises TypeError for wrong arguments, as a call of a plain function does."""
    cls, fields = type(self).__name__, self.__dataclass_fields__
    if len(args) > len(fields):
        raise TypeError(f"{cls} takes {len(fields)} arguments but {len(args)} were given")
    given = dict(zip(fields, args, strict=False))
    for name, value in kwargs.items():
        if name not in fields or name in given:
            raise TypeError(f"{cls} got {'an unexpected' if name not in fields else 'a second'} argument {name!r}")
        given[name] = value
    for name, field in fields.items():
        if name not in given:
            if field.default is dataclasses.MISSING:
                raise TypeError(f"{cls} lacks the argument {name!r}")
            given[name] = field.default
    return tuple(given[name] for name in fields)


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return type(self)._values(self) == type(self)._values(other)


def _hash(self: Any) -> int:
    return hash(type(self)._values(self))


def _repr(self: Any) -> str:
    values = zip(self.__slots__, type(self)._values(self), strict=True)
    return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in values)})"


def _frozen_set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _frozen_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _reduce(self: Any) -> tuple[Any, ...]:
    return type(self), type(self)._values(self)


_METHODS = {
    "__init__": _init,
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _frozen_set,
    "__delattr__": _frozen_delete,
    "__reduce__": _reduce,
}
