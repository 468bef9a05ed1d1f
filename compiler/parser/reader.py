"""Reads text into a tree, statement by statement, and recovers from mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.parser.lexer import Tokens, tokenize
from vsc.compiler.parser.machine import MAX_DEPTH, Machine, TooDeep
from vsc.compiler.parser.statements import StatementBuilder
from vsc.compiler.parser.tables import load_tables
from vsc.compiler.parser.variables import REFERENCE
from vsc.compiler.source import Span
from vsc.plan.record import record

__all__ = [
    "MAX_CHARACTERS",
    "Parsed",
    "ParsedExpression",
    "Read",
    "parse",
    "parse_expression",
    "read_statements",
    "variables_in",
]

MAX_CHARACTERS = 4_000_000
"""Longer texts are refused: nobody writes them by hand, and reading them would take minutes."""

_NO_VARIABLES: Mapping[str, str] = {}


@record
class Parsed:
    """A file's tree and its syntax findings, in the order of their places."""

    file: syntax.File
    findings: tuple[Finding, ...]


@record
class ParsedExpression:
    """An expression (None if it could not be read) and its findings."""

    expression: syntax.Expression | None
    findings: tuple[Finding, ...]


class Builder(Protocol):
    """What builds the tree. The members are described in `vsc.compiler.parser.expressions`."""

    findings: list[Finding]
    flawed: bool

    def build(self, action: str, span: Span, children: list[Any]) -> Any:
        """Builds the part of the tree for the rule with this `action`."""


@record
class Read:
    """The tokens of a file, its statements as the builder made them, and its syntax findings."""

    tokens: Tokens
    statements: tuple[Any, ...]
    findings: tuple[Finding, ...]


def parse(text: str, variables: Mapping[str, str] = _NO_VARIABLES) -> Parsed:
    """The tree of a file. `variables` holds the values for ``${name}`` outside connector options."""
    refused = _refused(text)
    if refused is not None:
        return Parsed(syntax.File((), ()), (refused,))
    reader = _Reader(text, _building(variables))
    statements, broken = reader.file()
    if not reader.findings and not any(isinstance(s, syntax.SourceDecl | syntax.DerivedDecl) for s in statements):
        help = "declare a source, as in `stream NAME (id bigint) from files (path = '...', format = 'json');`"
        end = len(text.rstrip())
        reader.findings.append(Finding("VSC013", Span(end, end), "the file declares no stream and no table", (), help))
    findings = sorted(reader.findings, key=lambda finding: finding.span)
    return Parsed(syntax.File(tuple(statements), tuple(broken)), tuple(findings))


def read_statements(text: str, builder: Callable[[Tokens], Builder]) -> Read:
    """The statements of a file as `builder` makes them; the findings are the same as those of `parse`."""
    refused = _refused(text)
    if refused is not None:
        return Read(Tokens(text), (), (refused,))
    reader = _Reader(text, builder)
    statements, _ = reader.file()
    return Read(reader.tokens, tuple(statements), tuple(sorted(reader.findings, key=lambda finding: finding.span)))


def parse_expression(text: str, variables: Mapping[str, str] = _NO_VARIABLES) -> ParsedExpression:
    """The tree of one expression, from the first character to the last."""
    reader = _Reader(text, _building(variables))
    value = reader.whole("expression")
    findings = tuple(sorted(reader.findings, key=lambda finding: finding.span))
    return ParsedExpression(None if findings else value, findings)


def variables_in(text: str) -> frozenset[str]:
    """The names of the variables that a text uses, including those in strings and connector options."""
    tokens, _ = tokenize(text)
    words = map(tokens.word, range(len(tokens.kinds)))
    return frozenset(name for word in words for name in REFERENCE.findall(word))


def _refused(text: str) -> Finding | None:
    """The finding for a text that is not read at all; None if it can be read."""
    if len(text) > MAX_CHARACTERS:
        message = f"the file has {len(text):,} characters; more than {MAX_CHARACTERS:,} are not read"
        return Finding("VSC015", Span(0, 0), message, (), "split the topology into several files")
    if text[:1] in ("{", "[") and _is_json(text):
        help = "check the topology itself; a plan that `vsc compile` has made goes to `vsc run`"
        return Finding("VSC005", Span(0, 1), "this is JSON, not a topology", (), help)
    return None


def _building(variables: Mapping[str, str]) -> Callable[[Tokens], StatementBuilder]:
    return lambda tokens: StatementBuilder(tokens, variables, _read_literal)


def _is_json(text: str) -> bool:
    import json

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _read_literal(text: str) -> syntax.Literal | syntax.Duration | None:
    """`text` as a literal; None if it is not exactly one literal."""
    reader = _Reader(text, _building(_NO_VARIABLES))
    value = reader.whole("option_value")
    if reader.findings or not isinstance(value, syntax.Literal | syntax.Duration):
        return None
    return value


class _Reader:
    """Reads one text."""

    def __init__(self, text: str, builder: Callable[[Tokens], Builder]) -> None:
        self.tables = load_tables()
        self.tokens, self.findings = tokenize(text)
        self.builder = builder(self.tokens)
        self.semicolon = self.tables.number["SEMICOLON"]

    def whole(self, start: str) -> Any:
        """The value of the whole text, read from the start symbol `start`; None if it cannot be read."""
        machine = Machine(self.tables, self.tokens, start, self.builder.build)
        value, _ = self._read(machine, 0)
        self.findings += self.builder.findings
        return value

    def file(self) -> tuple[list[Any], list[syntax.Name]]:
        """The statements, and the names that unreadable statements would have declared."""
        tokens, statements, broken = self.tokens, [], []
        index = 0
        while tokens.kinds[index] != self.tables.end:
            if tokens.kinds[index] == self.semicolon:
                index += 1
                continue
            machine = Machine(self.tables, tokens, "statement", self.builder.build)
            self.builder.flawed = False
            statement, after = self._read(machine, index)
            if statement is not None and not self.builder.flawed:
                statements.append(statement)
            else:
                broken += _declared(tokens, index)
            index = after
        self.findings += self.builder.findings
        return statements, broken

    def _read(self, machine: Machine, first: int) -> tuple[Any, int]:
        """Reads a statement (or the whole text) from token `first` on.

        Returns its value (None if it is unreadable) and the token at which to continue.
        """
        end, index = self.tables.end, first
        while True:
            terminal = machine.terminal(index)
            failure = machine.take(terminal, index)
            if failure is None:
                if terminal == end:
                    return machine.value(), index
                index += 1
                if terminal == self.semicolon:
                    machine.take(end, index)
                    return machine.value(), index
                continue
            if isinstance(failure, TooDeep):
                message = f"this is nested more than {MAX_DEPTH} levels deep"
                help = "split it: compute a part in a separate `map`"
                self.findings.append(Finding("VSC015", self.tokens.span(index), message, (), help))
                return None, self._recover(first, index)
            from vsc.compiler.parser.mistakes import broken_off, explain  # a text without mistakes does not need it

            cut = broken_off(self.tokens, first, index)
            index -= cut is not None
            finding, repair = cut or explain(machine, failure, first)
            if finding is not None:
                self.findings.append(finding)
            if repair is None:
                return None, self._recover(first, index)
            if repair.terminal is not None:
                machine.take(repair.terminal, index, inserted=not repair.consumes)
            index += repair.consumes
            if repair.terminal == self.semicolon:
                machine.take(end, index)
                return machine.value(), index

    def _recover(self, first: int, index: int) -> int:
        """Where the next statement begins: after the next `;`, or at a line that clearly begins one."""
        from vsc.compiler.parser.mistakes import starts_statement

        tokens = self.tokens
        while tokens.kinds[index] != self.tables.end:
            if tokens.kinds[index] == self.semicolon:
                return index + 1
            if index > first and starts_statement(tokens, index):
                return index
            index += 1
        return index


def _declared(tokens: Tokens, index: int) -> list[syntax.Name]:
    """The name that the statement at `index` would have declared; empty if it cannot be read."""
    index += tokens.word(index).lower() == "create"
    words = [tokens.word(i) for i in range(index, min(index + 3, len(tokens.kinds)))]
    place = index + (2 if words[:2] == ["global", "table"] else 1)
    if words[0] not in ("stream", "table", "global") or place >= len(tokens.kinds):
        return []
    word, span = tokens.word(place), tokens.span(place)
    if word.startswith("`"):
        return [syntax.Name(word[1:-1].replace("``", "`"), span, quoted=True)]
    return [syntax.Name(word, span)] if word.isidentifier() else []
