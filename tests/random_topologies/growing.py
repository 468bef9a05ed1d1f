"""A topology that grows: the nodes so far, and the parts that the statements of all operations are made of."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.random_topologies.expressions import TYPES, Scope, expression
from tests.random_topologies.shapes import BOUNDS, KEYS, STRUCT, VALUE_NAMES, Column, Generated, Shape, SourceShape

__all__ = ["ALWAYS", "Growing", "Sizes", "both", "copied", "scope_of", "valid"]

RETENTIONS = (0, 5, 20, 60, 1000)
ALWAYS = 10**9
"""How far back the rows of a table are right that is not computed, for a reader that keeps them."""


@dataclass(frozen=True)
class Sizes:
    """How much of what: ranges, ends included. `keys`: which there are, `failing`: how many items may well fail.

    `bounded`: a `suppress` may have bounds that make it emit early. `timed`: how often more what goes by the clock,
    and behind what time has held back. `ordered`: how often a stream's records are put in order. `paired`: how
    often joins of two streams, `pairs`: how many of them at most.
    `corrected`: how often joins whose results are corrected, `complete`: how often tables whose history is complete;
    both only by the clock of the input.
    """

    tables: tuple[int, int] = (1, 2)
    streams: tuple[int, int] = (1, 2)
    globals: tuple[int, int] = (0, 1)
    derived: tuple[int, int] = (2, 8)
    columns: tuple[int, int] = (1, 4)
    keys: tuple[tuple[Column, ...], ...] = KEYS
    failing: float = 0
    bounded: bool = True
    timed: int = 0
    ordered: int = 0
    paired: int = 0
    pairs: int = 8
    corrected: int = 0
    complete: int = 0


@dataclass
class Growing:
    """The nodes so far, those that are read, and the statements. `keyless`: streams with records that have no key;
    `held`: nodes whose records time has held back on their way; `hiding`: tables whose rows a `suppress` holds back, so
    that `max_age` may not be able to tell how old they are; `wanted`: the one to read, where it can be; `corrected`:
    tables whose row times never change."""

    rng: random.Random
    sizes: Sizes
    nodes: list[Shape] = field(default_factory=list)
    sources: list[SourceShape] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    keyless: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    hiding: set[str] = field(default_factory=set)
    wanted: Shape | None = None
    corrected: set[str] = field(default_factory=set)

    def _of(self, *kinds: str) -> list[Shape]:
        return [n for n in self.nodes if n.kind in kinds]

    def _pick(self, *kinds: str, keyed: bool = False, having: Callable[[Shape], bool] = lambda n: True) -> Shape | None:
        """A node if there is one, the newer ones more often: deep topologies are more telling than broad ones."""
        found = [n for n in self._of(*kinds) if having(n) and (n.key or not keyed)]
        if not found:
            return None
        if self.wanted in found:
            return self.wanted
        keyless = [n for n in found if n.name in self.keyless]
        if keyless and self.rng.random() < 0.6:
            return self.rng.choice(keyless)
        return self.rng.choice(found[-3:] if self.rng.random() < 0.6 else found)

    def _any(self, *kinds: str, having: Callable[[Shape], bool] = lambda n: True) -> Shape:
        """As `_pick`, where there is always one."""
        found = self._pick(*kinds, having=having)
        assert found is not None, kinds
        return found

    def _names(self, taken: dict[str, str]) -> list[Column]:
        chosen = self.rng.choices(TYPES, k=self.rng.randint(*self.sizes.columns))
        found = {self.rng.choice(VALUE_NAMES[type_]): type_ for type_ in chosen}
        free = ((name, type_) for type_, names in VALUE_NAMES.items() for name in names if name not in taken)
        return [(name, type_) for name, type_ in found.items() if name not in taken] or [next(free)]

    def _expression(self, scope: Scope, wanted: str, depth: int = 2) -> str:
        """An expression that may fail on some rows, more often than `expression` if the sizes say so."""
        text = expression(self.rng, scope, wanted, depth)
        numbers, texts = scope.of("bigint"), scope.of("string")
        if not self.sizes.failing or not numbers or not texts or self.rng.random() >= self.sizes.failing:
            return text
        divisor = f"if({self.rng.choice(texts)} < 'b', {self.rng.choice(numbers)}, 1)"
        return f"if(10 % {divisor} > 100, null, {text})"

    def _items(self, scope: Scope, key: tuple[Column, ...]) -> tuple[str, tuple[Column, ...], tuple[Column, ...]]:
        """Items, and the key and the value columns that they make. A key column that is listed is renamed."""
        items, value, names = [], [], dict(zip(dict(key), dict(key), strict=True))
        for name, type_ in self._names(dict(key)):
            text = self._expression(scope, type_)
            if self.rng.random() < 0.1 and (listed := [k for k, t in key if names[k] == k and (k, t) not in BOUNDS]):
                text = self.rng.choice(listed)
                names[text] = name
            else:
                text = copied(text, key)
                value.append((name, type_))
            items.append(f"{text} as {name}")
        return ", ".join(items), tuple((names[k], t) for k, t in key), tuple(value)

    def _key_values(self, scope: Scope, key: Sequence[Column]) -> list[str]:
        """Expressions for a key, of few values, so that records meet; sometimes null."""
        found = []
        for _, type_ in key:
            columns = scope.of(type_)
            number = expression(self.rng, scope, "bigint", 0)
            few = {
                "bigint": f"({number} % 3)",
                "int": f"cast({number} % 3 as int)",
                "string": f"coalesce(nullif(cast({number} % 3 as string), '0'), 'a')",
                "timestamp": f"timestamp_millis(abs({number} % 4) * 5)",
                "decimal(9,2)": f"cast(({number} % 3) as decimal(9,2))",
                "boolean": f"({number} > 1)",
                STRUCT: f"if({number} > 100, null, struct(({number} % 3) as f, cast({number} % 2 as string) as g))",
            }[type_]
            found.append(self.rng.choice(columns) if columns and self.rng.random() < 0.7 else few)
        return found

    def _left(self) -> str:
        return self.rng.choice(("", "left "))

    def _clause(self, versioned: bool = True, expires: bool = False) -> tuple[str, int | None]:
        """A `materialize` clause, perhaps an empty one, and the retention if it is versioned; or rows may expire."""
        rng = self.rng
        if not versioned or rng.random() < (0.15 if self.sizes.complete else 0.5):
            if expires and rng.random() < 0.5:
                return f"materialize unversioned (expire = {rng.choice((1, 4, 15, 50, 300))} ms)", None
            return rng.choice(("", "materialize unversioned")), None
        retention = rng.choice(RETENTIONS)
        grace = rng.choice(("", "", f", grace = {rng.choice((0, 10, 100))} ms"))
        segment = rng.choice(("", f", segment = {rng.choice((3, 7, 50))} ms"))
        return f"materialize versioned (retention = {retention} ms{segment}{grace})", retention

    def _complete(self, *inputs: Shape) -> tuple[str, int] | None:
        """The clause of a complete history and its retention, mostly, if the inputs are right in their own."""
        far = [one.right for one in inputs if one.right is not None]
        if not self.sizes.complete or len(far) < len(inputs) or self.rng.random() < 0.2:
            return None
        retention = self.rng.choice([one for one in RETENTIONS if one <= min(far)])
        segment = self.rng.choice(("", f", segment = {self.rng.choice((3, 7, 50))} ms"))
        return f"materialize versioned (retention = {retention} ms{segment}, history = 'complete')", retention

    def _table(self, having: Callable[[Shape], bool] = lambda n: True) -> Shape | None:
        """A table, mostly one that is right in its own history where some are to be complete."""
        if self.sizes.complete and self.rng.random() < 0.8:
            found = self._pick("table", having=lambda n: n.right is not None and having(n))
            if found is not None:
                return found
        return self._pick("table", having=having)

    def _own_clause(self, node: Shape) -> tuple[str, int | None]:
        """The clause of a filter or a map: without one it has the status of its input."""
        if node.kind != "table" or self.rng.random() < 0.6:
            return "", node.history
        clause, history = self._clause(versioned=node.window is None)
        return (" " + clause, history) if clause else ("", node.history)

    def _add(
        self, node: Shape, kind: str, operation: str, key: tuple[Column, ...], value: tuple[Column, ...],
        window: tuple[object, ...] | None = None, history: int | None = None, final: bool = False,
        right: tuple[int | None, int | None] = (None, None),
    ) -> None:  # fmt: skip
        """A derived node of the first input `node`."""
        self.read.add(node.name)
        name = f"{'x' if kind == 'stream' else 'y'}{len(self.statements)}"
        if (
            kind == "stream"
            and (operation.startswith("left join") or node.name in self.keyless)
            and " within " not in operation
        ):
            self.keyless.add(name)
        waits = re.match(
            r"suppress |(left )?join .* grace |(left|outer) join .* within |aggregate .* emit final ", operation.strip()
        )
        if waits or node.name in self.held:
            self.held.add(name)
        hides = any(re.search(rf"\b{one}\b", operation) for one in self.hiding) and "materialize" not in operation
        if kind == "table" and (hides or operation.startswith("suppress")):
            self.hiding.add(name)
        self.statements.append(f"{kind} {name} = {operation.strip()};")
        self.nodes.append(Shape(name, kind, key, value, window, history, final, *right))

    def result(self) -> Generated:
        """What nothing reads is written, of the rest some; one node perhaps twice."""
        writable = [n.name for n in self._of("stream", "table")]
        chosen = [n for n in writable if n not in self.read or self.rng.random() < 0.25]
        if self.rng.random() < 0.2:
            chosen.append(self.rng.choice(chosen))
        return Generated(tuple(self.sources), tuple(self.statements), tuple(chosen))


def valid(node: Shape, clause: str, history: int | None) -> tuple[int | None, int | None]:
    """`Shape.right` and `Shape.rows` of a table that is computed row by row from `node`, with this clause."""
    if not clause:
        return node.right, node.rows
    return (None, None) if history is None or node.rows is None else (min(history, node.rows), node.rows)


def scope_of(node: Shape, alias: str | None = None, event_time: bool = True) -> Scope:
    prefix = f"{alias}." if alias else ""
    return Scope([(prefix + name, type_) for name, type_ in node.columns], event_time, lambdas=1)


def both(left: Shape, right: Shape, event_time: bool = True) -> Scope:
    """The columns of both sides of a join; the right ones are null without a partner."""
    return Scope([*scope_of(left, "l").columns, *scope_of(right, "r").columns], event_time, lambdas=1)


def copied(text: str, key: Sequence[Column]) -> str:
    """An item's expression, that it may not be a bare key column: that would rename the key."""
    return f"coalesce({text}, {text})" if text in dict(key) else text
