"""The LALR machine: runs the tables over the tokens of one statement and calls the builder for its tree.

It does not recurse, so no input can overflow Python's stack. Two things differ from the textbook:

* **Contextual words.** A word like ``key`` is a keyword where the tables accept only the keyword, and a name where
  they accept only a name. Where they accept both (after a comma in a list, which may be a trailing one), the following
  tokens decide: the reading that can continue longer wins. If neither fails before the statement ends, it is a name.
* **Depth.** The tree of a statement is at most `MAX_DEPTH` levels deep, so code that walks it may recurse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vsc.compiler.parser.lexer import Tokens
from vsc.compiler.parser.tables import Tables
from vsc.compiler.source import Span
from vsc.plan.record import record

__all__ = ["MAX_DEPTH", "Failure", "Machine", "Part", "TooDeep"]

MAX_DEPTH = 128
_MAX_STACK = 8 * MAX_DEPTH
_MAX_READINGS = 64  # the most stacks followed at the same time to tell a keyword from a name


class Part(NamedTuple):
    """A piece of the tree: its value, where it stands, and how deep it is."""

    value: Any
    start: int
    end: int
    depth: int


@record
class Failure:
    """The token at `index`, read as `terminal`, is not allowed at its place."""

    index: int
    terminal: int


@record
class TooDeep:
    """The statement is nested too deeply; `index` is the token at which this was detected."""

    index: int


class Machine:
    """Parses from one start symbol.

    `build(action, span, children)` is called for each rule, inner rules first.
    """

    def __init__(
        self, tables: Tables, tokens: Tokens, start: str, build: Callable[[str, Span, list[Any]], Any]
    ) -> None:
        self.tables, self.tokens, self._build = tables, tokens, build
        self.stack: list[int] = [tables.start[start]]
        self._parts: list[Part] = []

    def value(self) -> Any:
        """The tree. Call it after the end of the text was read."""
        return self._parts[0].value

    def take(self, terminal: int, index: int, inserted: bool = False) -> Failure | TooDeep | None:
        """Reads the token at `index` as `terminal`; with `inserted`, reads `terminal` as if it stood before that token.

        A token that is not allowed here changes nothing.
        """
        states, stack = self.tables.states, self.stack
        action = states[stack[-1]].get(terminal, -1)
        if action < 0 and not self.takes(terminal):
            return Failure(index, terminal)
        while action < 0:
            if not self._reduce(-1 - action):
                return TooDeep(index)
            action = states[stack[-1]][terminal]
        if len(stack) > _MAX_STACK:
            return TooDeep(index)
        stack.append(action)
        if inserted:
            before = self.tokens.ends[index - 1] if index else 0
            self._parts.append(Part(index, before, before, 0))
        else:
            self._parts.append(Part(index, self.tokens.starts[index], self.tokens.ends[index], 0))
        return None

    def _reduce(self, number: int) -> bool:
        nonterminal, length, action, children = self.tables.rules[number]
        stack, parts = self.stack, self._parts
        reduced = parts[-length:]
        depth = max(part.depth for part in reduced)
        if action == "":
            value = reduced[children[0] >> 1].value
        else:
            values = _children(reduced, children)
            if action == "*":
                value = values
            else:
                depth += 1
                value = self._build(action, Span(reduced[0].start, reduced[-1].end), values)
        del stack[-length:], parts[-length:]
        parts.append(Part(value, reduced[0].start, reduced[-1].end, depth))
        stack.append(self.tables.states[stack[-1]][nonterminal])
        return depth <= MAX_DEPTH

    def last(self, steps: int = 1) -> Span:
        """The place of the last part read; with `steps` n, of the nth from the end."""
        part = self._parts[-steps]
        return Span(part.start, part.end)

    # what is allowed here

    def takes(self, terminal: int) -> bool:
        """Whether `terminal` is allowed here."""
        return self._simulate(self.stack, terminal) is not None

    def expected(self) -> list[int]:
        """The terminals that are allowed here. Names of constants are not among them: they stand for literals."""
        tables = self.tables
        return [terminal for terminal in tables.states[self.stack[-1]]
                if terminal < len(tables.names) and terminal != tables.constant and self.takes(terminal)]  # fmt: skip

    def completed_by(self, terminal: int, following: int) -> str:
        """The rule that `terminal` alone would complete here if `following` came next; empty if it completes none.

        Rules that only describe how a name is written do not count.
        """
        stack = self._after(tuple(self.stack), terminal)
        while stack is not None:
            action = self.tables.states[stack[-1]].get(following, 0)
            if action >= 0:
                return ""
            nonterminal, length, name, _ = self.tables.rules[-1 - action]
            if name not in ("", "plain_name"):
                return name if length == 1 or name == "*" else ""
            stack = (*stack[:-length], self.tables.states[stack[-length - 1]][nonterminal])
        return ""

    def reads(self, terminals: Sequence[int], index: int, count: int) -> bool:
        """Whether `terminals`, and then `count` tokens from `index` on, could be read here."""
        stacks = {tuple(self.stack)}
        for terminal in terminals:
            stacks = {after for stack in stacks if (after := self._after(stack, terminal)) is not None}
        for place in range(index, min(index + count, len(self.tokens.kinds))):
            stacks = self._step(stacks, place)
        return bool(stacks)

    def terminal(self, index: int) -> int:
        """The terminal as which to read the token at `index` here. Decides between keyword and name."""
        kind, tables = self.tokens.kinds[index], self.tables
        if kind != tables.name:
            return kind
        keyword = tables.words.get(self.tokens.word(index))
        if keyword is None or not self.takes(keyword):
            is_constant = self.tokens.word(index) in self.tokens.constants and self.takes(tables.constant)
            return tables.constant if is_constant else kind
        if not self.takes(kind):
            return keyword
        return self._decide(index, keyword)

    def _decide(self, index: int, keyword: int) -> int:
        """Where both are allowed: the reading that continues longer, else a name (``distinct``: the keyword)."""
        tables, stack = self.tables, tuple(self.stack)
        usual = keyword if tables.names[keyword] == "DISTINCT" else tables.name
        readings = {}
        for terminal in (keyword, tables.name):
            after = self._after(stack, terminal)
            readings[terminal] = {after} if after is not None else set()
        for place in range(index + 1, len(self.tokens.kinds)):
            readings = {terminal: self._step(stacks, place) for terminal, stacks in readings.items()}
            alive = [terminal for terminal, stacks in readings.items() if stacks]
            if len(alive) == 1:
                return alive[0]
            if not alive or readings[keyword] == readings[tables.name]:
                return usual
        return usual

    def _step(self, stacks: set[tuple[int, ...]], index: int) -> set[tuple[int, ...]]:
        kind = self.tokens.kinds[index]
        kinds = [kind]
        if kind == self.tables.name:
            keyword = self.tables.words.get(self.tokens.word(index))
            if keyword is not None:
                kinds.append(keyword)
            if self.tokens.word(index) in self.tokens.constants:
                kinds.append(self.tables.constant)
        result: set[tuple[int, ...]] = set()
        for stack in sorted(stacks):
            for terminal in kinds:
                after = self._after(stack, terminal)
                if after is not None and len(result) < _MAX_READINGS:
                    result.add(after)
        return result

    def _after(self, stack: tuple[int, ...], terminal: int) -> tuple[int, ...] | None:
        """The stack after `terminal`, or None if `terminal` is not allowed on `stack`."""
        found = self._simulate(stack, terminal)
        if found is None:
            return None
        depth, pushed = found
        return (*stack[:depth], *pushed)

    def _simulate(self, stack: Sequence[int], terminal: int) -> tuple[int, list[int]] | None:
        """The effect of reading `terminal`: how many entries of `stack` remain, and the states pushed on top of them.

        None if `terminal` is not allowed.
        """
        states, rules = self.tables.states, self.tables.rules
        pushed: list[int] = []
        depth = len(stack)
        while True:
            action = states[pushed[-1] if pushed else stack[depth - 1]].get(terminal)
            if action is None:
                return None
            if action >= 0:
                pushed.append(action)
                return depth, pushed
            nonterminal, length, _, _ = rules[-1 - action]
            if length < len(pushed):
                del pushed[-length:]
            else:
                depth -= length - len(pushed)
                pushed.clear()
            pushed.append(states[pushed[-1] if pushed else stack[depth - 1]][nonterminal])


def _children(found: list[Part], children: list[int]) -> list[Any]:
    """The values that a rule passes to its builder, with nested lists flattened into them."""
    if len(children) == 1 and children[0] > 0 and children[0] & 1:
        return list(found[children[0] >> 1].value)
    values: list[Any] = []
    for position, child in enumerate(children):
        if child < 0:
            values.append(None)
        elif child & 1:
            part = found[child >> 1].value
            if position == 0:
                values = part  # each list is used only once, so it can grow in place
            else:
                values.extend(part)
        else:
            values.append(found[child >> 1].value)
    return values
