"""What a random topology is made of: columns, nodes as far as their readers must know them, sources, the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["ALL_KEYS", "BOUNDS", "KEYS", "STRUCT", "VALUE_NAMES", "Column", "Generated", "Shape", "SourceShape"]

VALUE_NAMES = {
    "bigint": ("n", "m"), "string": ("s", "u"), "boolean": ("b", "c"), "decimal(9,2)": ("d", "e"), "double": ("g", "h"),
    "timestamp": ("t", "w"), "array<string>": ("a", "z"),
}  # fmt: skip
"""How columns of a type are called: few names, so that streams with the same columns come about."""

KEYS = (("k", "string"),), (("k", "bigint"),), (("k", "string"), ("j", "bigint"))
STRUCT = "struct<f: bigint, g: string>"
ALL_KEYS = (
    *KEYS, (("k", "decimal(9,2)"),), (("k", "timestamp"),), (("k", "boolean"),),
    (("k", "string"), ("j", "timestamp"), ("i", "decimal(9,2)")), (("k", STRUCT),),
)  # fmt: skip
"""Keys of every form; the usual ones are those that every source of a test can hold."""
BOUNDS = (("window_start", "timestamp"), ("window_end", "timestamp"))


Column = tuple[str, str]
"""A column: its name and its type."""


@dataclass(frozen=True)
class Shape:
    """A node, as far as an operation that reads it must know it. `window` is None, or what has to be equal for a join;
    `history` is the retention of the versioned store that a look-up reads, None if the table is not versioned. `right`:
    how far back its own history is right, None: it is not; `rows`: the same for a reader that keeps its rows."""

    name: str
    kind: str
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    window: tuple[object, ...] | None = None
    history: int | None = None
    final: bool = False
    right: int | None = None
    rows: int | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """Key, then value columns."""
        return self.key + self.value

    @property
    def key_types(self) -> tuple[str, ...]:
        """The types of the key columns."""
        return tuple(type_ for _, type_ in self.key)


@dataclass(frozen=True)
class SourceShape:
    """A source: `head` and `clauses` are its statement around the connector; `columns` as declared."""

    name: str
    kind: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    clauses: str
    tombstones: bool


@dataclass(frozen=True)
class Generated:
    """A topology without its connectors. `sinks` are the nodes that are written, some of them twice."""

    sources: tuple[SourceShape, ...]
    statements: tuple[str, ...]
    sinks: tuple[str, ...]

    def text(
        self,
        source: Callable[[SourceShape], str] = lambda source: "memory ()",
        sink: Callable[[int, str], str] = lambda number, node: "memory ()",
    ) -> str:
        """The file; `source` and `sink` give the connectors (a sink by its number)."""
        lines = []
        for one in self.sources:
            columns = ", ".join(f"{name} {type_}" for name, type_ in one.columns)
            lines.append(f"{one.kind} {one.name} ({columns}) from {source(one)} {one.clauses};")
        lines.extend(self.statements)
        lines.extend(f"sink {node} to {sink(number, node)};" for number, node in enumerate(self.sinks))
        return "\n".join(lines) + "\n"
