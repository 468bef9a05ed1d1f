"""The LALR machine: runs the tables over the tokens of one statement and has its tree built.

It works without recursion, so no input can overflow Python's stack. What is not in any textbook:

* **Contextual words.** A word like ``key`` is a keyword where the tables take only the keyword, a name where they take
  only a name. Where they take both (behind the comma of a list, which may be a trailing one), the statement's next
  tokens decide: the reading that can go on longer. If neither fails before the statement ends, it is a name.
* **Depth.** The tree of a statement is at most `MAX_DEPTH` levels deep, so whoever walks it may recurse.
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
_MAX_READINGS = 64  # stacks that are followed at once to tell a keyword from a name


class Part(NamedTuple):
    """A piece of the tree: its value, where it stands, and how deep it is."""

    value: Any
    start: int
    end: int
    depth: int


@record
class Failure:
    """The token at `index`, read as `terminal`, cannot stand where it does."""

    index: int
    terminal: int


@record
class TooDeep:
    """The statement is nested too deeply; `index` is where this was seen."""

    index: int


class Machine:
    """Parses from one start symbol.

    `build(action, span, children)` is called for each rule, inner ones first.
    """

    def __init__(
        self, tables: Tables, tokens: Tokens, start: str, build: Callable[[str, Span, list[Any]], Any]
    ) -> None:
        self.tables, self.tokens, self._build = tables, tokens, build
        self.stack: list[int] = [tables.start[start]]
        self._parts: list[Part] = []

    def value(self) -> Any:
        """The tree, once the end of the text was taken."""
        return self._parts[0].value

    def take(self, terminal: int, index: int, inserted: bool = False) -> Failure | TooDeep | None:
        """Reads the token at `index` as `terminal`, or `terminal` as if it stood before that token.

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
        found = parts[-length:]
        depth = max(part.depth for part in found)
        if action == "":
            value = found[children[0] >> 1].value
        else:
            values = _children(found, children)
            if action == "*":
                value = values
            else:
                depth += 1
                value = self._build(action, Span(found[0].start, found[-1].end), values)
        del stack[-length:], parts[-length:]
        parts.append(Part(value, found[0].start, found[-1].end, depth))
        stack.append(self.tables.states[stack[-1]][nonterminal])
        return depth <= MAX_DEPTH

    def last(self, steps: int = 1) -> Span:
        """The place of the last piece that was read, or of the one so many steps before it."""
        part = self._parts[-steps]
        return Span(part.start, part.end)

    # what can stand where

    def takes(self, terminal: int) -> bool:
        """Whether `terminal` can stand here."""
        return self._simulate(self.stack, terminal) is not None

    def expected(self) -> list[int]:
        """The terminals that can stand here."""
        return [terminal for terminal in self.tables.states[self.stack[-1]]
                if terminal < len(self.tables.names) and self.takes(terminal)]  # fmt: skip

    def completed_by(self, terminal: int, following: int) -> str:
        """The rule that `terminal`, read here, completes on its own in front of `following`; empty if none.

        Rules that only say how a name is written do not count.
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

    def terminal(self, index: int) -> int:
        """What the token at `index` is here: a keyword or a name."""
        kind, tables = self.tokens.kinds[index], self.tables
        if kind != tables.name:
            return kind
        keyword = tables.words.get(self.tokens.word(index))
        if keyword is None or not self.takes(keyword):
            return kind
        if not self.takes(kind):
            return keyword
        return self._decide(index, keyword)

    def _decide(self, index: int, keyword: int) -> int:
        """Where both can stand: the reading that goes on longer, else a name (but not ``distinct``)."""
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
        result: set[tuple[int, ...]] = set()
        for stack in sorted(stacks):
            for terminal in kinds:
                after = self._after(stack, terminal)
                if after is not None and len(result) < _MAX_READINGS:
                    result.add(after)
        return result

    def _after(self, stack: tuple[int, ...], terminal: int) -> tuple[int, ...] | None:
        """The stack behind `terminal`, or None if it cannot stand on `stack`."""
        found = self._simulate(stack, terminal)
        if found is None:
            return None
        depth, pushed = found
        return (*stack[:depth], *pushed)

    def _simulate(self, stack: Sequence[int], terminal: int) -> tuple[int, list[int]] | None:
        """What reading `terminal` makes of `stack`: how much of it stays, and what comes upon that. None: it cannot."""
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
    """The values that a rule hands to its parent; lists are put in place."""
    if len(children) == 1 and children[0] > 0 and children[0] & 1:
        return list(found[children[0] >> 1].value)
    values: list[Any] = []
    for position, child in enumerate(children):
        if child < 0:
            values.append(None)
        elif child & 1:
            part = found[child >> 1].value
            if position == 0:
                values = part  # a list is read once, so that it can grow in place
            else:
                values.extend(part)
        else:
            values.append(found[child >> 1].value)
    return values
