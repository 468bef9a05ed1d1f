"""Reads text into a tree, statement by statement, and recovers from mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.parser.expressions import Constants, Value
from vsc.compiler.parser.lexer import Tokens, tokenize
from vsc.compiler.parser.machine import MAX_DEPTH, Machine, TooDeep
from vsc.compiler.parser.statements import StatementBuilder
from vsc.compiler.parser.tables import load_tables
from vsc.compiler.parser.variables import REFERENCE
from vsc.compiler.source import SourceFile, Span
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

_BEGINNINGS = ("stream", "table", "global", "sink", "topology", "let", "function", "include")
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


class Files(Protocol):
    """Opens the files that are included; `vsc.compiler.includes` describes the members."""

    source: SourceFile

    def open(self, statement: syntax.Include) -> int | Finding | None:
        """Where the text of the included file begins in that of `source`."""

    def close(self) -> None:
        """Ends the file that was opened last."""


@record
class Read:
    """The tokens of a file, its statements as the builder made them, and its syntax findings."""

    tokens: Tokens
    statements: tuple[Any, ...]
    findings: tuple[Finding, ...]


def parse(text: str, variables: Mapping[str, str] = _NO_VARIABLES, files: Files | None = None) -> Parsed:
    """The tree of a file and of those that it includes, which `files` opens.

    `variables` holds the values for ``${name}`` outside connector options.
    """
    refused = _refused(text)
    if refused is not None:
        return Parsed(syntax.File((), ()), (refused,))
    whole = _Whole(variables, files)
    statements = whole.read(text)
    nodes = [s for s in statements if isinstance(s, syntax.SourceDecl | syntax.DerivedDecl)]
    if not whole.findings and not nodes:
        help = "declare a source, as in `stream NAME (id bigint) from files (path = '...', format = 'json');`"
        end = len(text.rstrip())
        whole.findings.append(Finding("VSC013", Span(end, end), "the file declares no stream and no table", (), help))
    file = syntax.File(tuple(statements))
    if whole.findings:
        from vsc.compiler.parser.lost import begun_names, declared_names

        known = {node.name.text for node in nodes}
        unfinished = {id(statement) for reader in whole.readers for statement in reader.unfinished}
        lost = [name for reader in whole.readers for name in declared_names(reader.tokens, reader.broken)]
        file = syntax.File(
            tuple(statements),
            tuple(name for name in lost if name.text not in known),
            tuple(begun for reader in whole.readers for begun in begun_names(reader.tokens, reader.broken)),
            frozenset(node.name.text for node in nodes if id(node) in unfinished),
        )
    return Parsed(file, _sorted(whole.findings))


class _Whole:
    """Reads a file with those that it includes. `readers` has one for each file that was read."""

    def __init__(self, variables: Mapping[str, str], files: Files | None) -> None:
        self.constants: Constants = {}
        self.readers: list[_Reader] = []
        self.findings: list[Finding] = []
        self._variables, self._files = variables, files

    def read(self, text: str, start: int = 0) -> list[syntax.Statement]:
        """The statements of `text` from `start` on, with those that are included in the place of each `include`."""
        constants, readers, findings = dict(self.constants), list(self.readers), list(self.findings)
        source = None if self._files is None else self._files.source
        reader = self._read(text, start, cut=False)
        if _is_cut_short(reader):
            self.constants.clear()
            self.constants.update(constants)
            self.readers, self.findings = readers, findings
            if self._files is not None and source is not None:
                self._files.source = source
            reader = self._read(text, start, cut=True)
        return reader.statements

    def _read(self, text: str, start: int, cut: bool) -> _Reader:
        building = _building(self._variables, self.constants)
        reader = _Reader(text, building, cut, start, self.constants, self._included)
        self.readers.append(reader)
        reader.file()
        self.findings += reader.findings
        return reader

    def _included(self, statement: syntax.Include) -> list[syntax.Statement]:
        if self._files is None:
            return []
        start = self._files.open(statement)
        if isinstance(start, Finding):
            self.findings.append(start)
        if not isinstance(start, int):
            return []
        statements = self.read(self._files.source.text, start)
        self._files.close()
        allowed = [
            s for s in statements if isinstance(s, syntax.SourceDecl | syntax.ConstantDecl | syntax.FunctionDecl)
        ]
        for other in statements:
            if other not in allowed:
                label = Label(statement.span, "it is included here")
                message = "an included file declares sources, constants and functions, and nothing else"
                self.findings.append(Finding("VSC028", other.span, message, (label,), "move this to the topology"))
        return list(allowed)


def _is_cut_short(reader: _Reader) -> bool:
    """Whether a string seems to have swallowed other statements: it is read again as one that is not closed."""
    if not reader.findings:
        return False
    from vsc.compiler.parser.lost import swallows

    return swallows(reader.tokens)


def _sorted(findings: list[Finding]) -> tuple[Finding, ...]:
    """The findings in the order of their places, without signs inside of a form that is reported as a whole."""
    wide = [f.span for f in findings if f.code == "VSC010"]

    def inside(span: Span) -> bool:
        return any(one.start <= span.start and span.end <= one.end for one in wide)

    kept = (finding for finding in findings if finding.code != "VSC008" or not inside(finding.span))
    return tuple(sorted(kept, key=lambda finding: finding.span))


def read_statements(text: str, builder: Callable[[Tokens], Builder]) -> Read:
    """The statements of a file as `builder` makes them; the findings are the same as those of `parse`."""
    refused = _refused(text)
    if refused is not None:
        return Read(Tokens(text), (), (refused,))
    reader = _Reader(text, builder)
    reader.file()
    if _is_cut_short(reader):
        reader = _Reader(text, builder, cut=True)
        reader.file()
    return Read(
        reader.tokens, tuple(reader.statements), tuple(sorted(reader.findings, key=lambda finding: finding.span))
    )


def parse_expression(text: str, variables: Mapping[str, str] = _NO_VARIABLES) -> ParsedExpression:
    """The tree of one expression, from the first character to the last."""
    reader = _Reader(text, _building(variables, {}))
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


def _building(variables: Mapping[str, str], constants: Constants) -> Callable[[Tokens], StatementBuilder]:
    return lambda tokens: StatementBuilder(tokens, variables, _read_literal, constants)


def _is_json(text: str) -> bool:
    import json

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _read_literal(text: str) -> Value | None:
    """`text` as a literal; None if it is not exactly one literal."""
    reader = _Reader(text, _building(_NO_VARIABLES, {}))
    value = reader.whole("option_value")
    if reader.findings or not isinstance(value, syntax.Literal | syntax.Duration | syntax.CalendarLength):
        return None
    return value


class _Reader:
    """Reads one text, from `start` on. `included` gives the statements in the place of an ``include``; the names of
    `constants` that cannot be read are added to these.

    After `file`, `statements` has its statements, `broken` the first token of each that could not be read and the
    token after its last, and `unfinished` the statements whose ``;`` is missing.
    """

    def __init__(
        self,
        text: str,
        builder: Callable[[Tokens], Builder],
        cut: bool = False,
        start: int = 0,
        constants: Constants | None = None,
        included: Callable[[syntax.Include], Sequence[Any]] | None = None,
    ) -> None:
        self.tables, self.constants, self.included = load_tables(), constants, included
        self.tokens, self.findings = tokenize(text, cut, start)
        self.builder = builder(self.tokens)
        self.semicolon = self.tables.number["SEMICOLON"]
        self.statements: list[Any] = []
        self.broken: list[tuple[int, int]] = []
        self.unfinished: list[Any] = []

    def whole(self, start: str) -> Any:
        """The value of the whole text, read from the start symbol `start`; None if it cannot be read."""
        machine = Machine(self.tables, self.tokens, start, self.builder.build)
        value, _ = self._read(machine, 0)
        self.findings += self.builder.findings
        return value

    def file(self) -> None:
        """Reads the text as a file."""
        tokens, index = self.tokens, 0
        inside = False  # whether the last statement broke off inside brackets, so that its `;` need not be its end
        while tokens.kinds[index] != self.tables.end:
            if tokens.kinds[index] == self.semicolon:
                index += 1
                continue
            if inside and tokens.word(index) not in _BEGINNINGS:
                index = self._recover(index, index)
                continue
            machine = Machine(self.tables, tokens, "statement", self.builder.build)
            self.builder.flawed = False
            statement, after = self._read(machine, index)
            inside = statement is None and self._open(index, after)
            if statement is not None and not self.builder.flawed:
                self.statements += self._spliced(statement)
                if tokens.kinds[after - 1] != self.semicolon:
                    self.unfinished.append(statement)
            else:
                self.broken.append((index, after))
                if self.constants is not None and tokens.word(index) == "let":
                    self.constants.setdefault(tokens.word(index + 1).strip("`"), None)
            index = after
        self.findings += self.builder.findings

    def _spliced(self, statement: Any) -> Sequence[Any]:
        if self.included is not None and isinstance(statement, syntax.Include):
            return self.included(statement)
        return (statement,)

    def _open(self, first: int, after: int) -> bool:
        """Whether more brackets are opened than closed from token `first` to before `after`."""
        words = [self.tokens.word(index) for index in range(first, after)]
        return words.count("(") > words.count(")")

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
            # a text without mistakes does not need them
            from vsc.compiler.parser.missing import broken_off
            from vsc.compiler.parser.mistakes import explain

            index, (finding, repair) = broken_off(self.tokens, first, index) or (
                index,
                explain(machine, failure, first),
            )
            if finding is not None:
                self.findings.append(finding)
            if repair is None:
                return None, self._recover(first, index)
            if repair.terminal is not None:
                if repair.consumes and repair.terminal in self.tables.texts:
                    self.tokens.meant[self.tokens.starts[index]] = self.tables.texts[repair.terminal]
                machine.take(repair.terminal, index, inserted=not repair.consumes)
            index += repair.consumes
            if repair.terminal == self.semicolon:
                machine.take(end, index)
                return machine.value(), index

    def _recover(self, first: int, index: int) -> int:
        """Where the next statement begins: after the next `;`, or at a line that clearly begins one."""
        from vsc.compiler.parser.missing import starts_statement

        tokens = self.tokens
        while tokens.kinds[index] != self.tables.end:
            if tokens.kinds[index] == self.semicolon:
                return index + 1
            if index > first and starts_statement(tokens, index):
                return index
            index += 1
        return index
