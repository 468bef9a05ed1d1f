"""Splits text into tokens: words, signs, names, numbers, strings, durations, variables. Drops blanks and comments.

Every character is accounted for. Text that is not part of the language is reported once, with the right way to write
it, and reading continues after it. A word is a NAME token here unless it is reserved; the parser decides which of the
others are keywords. Durations (``1 hour 30 minutes``) are assembled here because their units are not reserved words.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from functools import cache

from vsc.compiler.diagnostics.model import Finding, Fix, Label
from vsc.compiler.parser.foreign import FOREIGN, Foreign, describe_character
from vsc.compiler.parser.tables import Tables, load_tables
from vsc.compiler.source import Span
from vsc.plan.expressions import LAMBDAS

__all__ = ["CALENDAR_UNITS", "EVERY_NAME", "MAX_MILLISECONDS", "UNITS", "Tokens", "tokenize"]

UNITS = {
    "ms": 1, "millisecond": 1, "milliseconds": 1,
    "s": 1_000, "second": 1_000, "seconds": 1_000,
    "m": 60_000, "minute": 60_000, "minutes": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "hours": 3_600_000,
    "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
}  # fmt: skip
"""The units of durations, in milliseconds."""

CALENDAR_UNITS = {
    "week": (1, 0), "weeks": (1, 0), "month": (0, 1), "months": (0, 1), "year": (0, 12), "years": (0, 12),
}  # fmt: skip
"""The units that only the `size` of a window takes, or a constant for it: the weeks and the months that each has."""

MAX_MILLISECONDS = 2**63 - 1
_MAX_DIGITS = 38  # the widest decimal
_CONFLICT = r"(?m:^(?:<{7}|={7}|>{7}|\|{7})(?:[ \t][^\n]*)?\r?$)"  # a line with which Git marks a merge conflict


class _EveryName:
    def __contains__(self, name: object) -> bool:
        return True


EVERY_NAME: Container[str] = _EveryName()
"""The constants of a reader that does not know which there are."""


@dataclass(slots=True)
class Tokens:
    """The tokens in order; the last one is the end of the text.

    `kinds` holds terminals, `starts` and `ends` hold character offsets. `durations` maps the index of a duration token
    to its milliseconds. `damaged` holds the indexes of tokens that replace text that was already reported. `meant`
    holds, by its start, the text as which a mistaken token is read. `told` holds
    reserved words that were reported as names. `constants` has the names that can stand for literals.
    """

    text: str
    kinds: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    durations: dict[int, int] = field(default_factory=dict)
    damaged: set[int] = field(default_factory=set)
    meant: dict[int, str] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    constants: Container[str] = ()

    def add(self, kind: int, start: int, end: int) -> None:
        """Append a token."""
        self.kinds.append(kind)
        self.starts.append(start)
        self.ends.append(end)

    def word(self, index: int) -> str:
        """The text of a token."""
        return self.text[self.starts[index] : self.ends[index]]

    def span(self, index: int) -> Span:
        """The place of a token."""
        return Span(self.starts[index], self.ends[index])


def tokenize(text: str, cut: bool = False, start: int = 0) -> tuple[Tokens, list[Finding]]:
    """The tokens of `text` from `start` on, and findings for text that is not a token. Never raises.

    With `cut`, a string that holds a line that begins a statement is an open one, whose quote is missing on its line.
    """
    lexer = _Lexer(text, load_tables(), cut)
    lexer.run(start)
    return lexer.tokens, lexer.findings


@cache
def _pattern() -> re.Pattern[str]:
    tables = load_tables()
    patterns = tables.patterns
    signs = sorted(tables.signs, key=lambda sign: (-len(sign), sign))
    alternatives = [
        ("CONFLICT", _CONFLICT),
        ("SKIP", rf"(?:[^\S\n]|\ufeff)+|\n+|{patterns['COMMENT']}"),
        ("FOREIGN", "|".join(re.escape(sign) for sign in sorted(FOREIGN, key=len, reverse=True))),
        ("NAME", patterns["NAME"]),
        ("NUMBER", r"\.?[0-9][A-Za-z0-9_.]*(?:(?<=[0-9][eE])[+-][0-9][A-Za-z0-9_.]*)?"),
        ("STRING", patterns["STRING"]),
        ("QUOTED", patterns["QUOTED"]),
        ("VARIABLE", patterns["VARIABLE"]),
        ("SIGN", "|".join(re.escape(sign) for sign in signs)),
    ]
    return re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in alternatives))


_LAMBDA = Foreign("a lambda is written with `->`", "write `->`", "->", sure=True)
_DIVISION = Foreign("`//` is not an operator here", "write `floor(x / y)`, rounded down", "/")
_ARROW = Foreign("an option is not written with `=>`", "write `=`", "=", sure=True)


class _Lexer:
    def __init__(self, text: str, tables: Tables, cut: bool) -> None:
        self.text, self.tables, self.cut = text, tables, cut
        self.tokens = Tokens(text)
        self.findings: list[Finding] = []
        self.long_string: Span | None = None  # the last string that spans several lines
        self.conflict = False  # whether a conflict was reported, and is not at its end
        self.braces = 0  # how many braces were reported, and are not closed

    def run(self, at: int) -> None:
        match_at, text, names = _pattern().match, self.text, self.tables.words
        tokens, reserved, name = self.tokens, self.tables.reserved, self.tables.name
        while at < len(text):
            match = match_at(text, at)
            if match is None:
                at = self._strange(at)
                continue
            kind, start, at = match.lastgroup, at, match.end()
            if kind == "SKIP":
                continue
            if kind == "NAME":
                word = names.get(match.group(), name)
                if self._unit_follows(start):
                    self._duration(match.group(), start, at)
                else:
                    tokens.add(word if word in reserved else name, start, at)
            elif kind == "SIGN":
                tokens.add(self.tables.signs[match.group()], start, at)
            elif kind == "NUMBER":
                at = self._number(start, at)
            elif kind == "FOREIGN":
                at = self._foreign(match.group(), start, at)
            elif kind == "CONFLICT":
                at = self._conflict(start, at)
            else:
                assert kind is not None
                if kind == "STRING" and "\n" in match.group():
                    if self.cut and self._swallows(match.group()):
                        at = self._unclosed("'", start)
                        continue
                    self.long_string = Span(start, at)
                tokens.add(self.tables.number[kind], start, at)
        tokens.add(self.tables.end, len(text), len(text))

    def report(
        self, code: str, start: int, end: int, message: str, help: str | None = None, new: str | None = None
    ) -> None:
        """Adds a finding. `new` is the text that certainly belongs in its place."""
        span = Span(start, end)
        self.findings.append(Finding(code, span, message, (), help, None if new is None else Fix(span, new)))

    # numbers and durations

    def _number(self, start: int, end: int) -> int:
        """Adds a number, or reports one that is malformed or runs into a word. Returns where to continue."""
        written, patterns = self.text[start:end], self.tables.patterns
        for kind in ("DOUBLE", "DECIMAL", "INTEGER"):
            if re.fullmatch(patterns[kind], written):
                if kind != "DOUBLE" and sum(character.isdigit() for character in written) > _MAX_DIGITS:
                    self.report("VSC020", start, end, f"no type holds a number of more than {_MAX_DIGITS} digits",
                                "write it with an exponent, as in `1e40`")  # fmt: skip
                    self._damaged("INTEGER", start, end)
                else:
                    self.tokens.add(self.tables.number[kind], start, end)
                return end
        number = re.match(r"[0-9]*(?:\.[0-9]+)?", written)
        digits = number.group() if number else ""
        rest = written[len(digits) :]
        new = None
        if written.startswith("."):
            message, new = f"`{written}` is not a number", f"0{written}"
        elif rest == ".":
            message, new = f"`{written}` is not a number", f"{digits}.0"
        elif rest[0] == ".":
            message, help = f"`{written}` is not a number", "a number is written as `12`, `1.5` or `1e6`"
        else:
            from vsc.compiler.parser.numbers import runs_into  # only for a text with mistakes, like those below

            message, help, new = runs_into(digits, rest)
            if rest in UNITS and digits.isdigit():
                message, new = f"the number `{digits}` runs into `{rest}`", f"{digits} {rest}"
        self.report("VSC003", start, end, message, help if new is None else f"write `{new}`", new)
        self._damaged("INTEGER", start, end)
        return end

    def _unit_follows(self, start: int) -> bool:
        """Whether the word at `start` follows an integer, as a unit would."""
        kinds = self.tokens.kinds
        return bool(kinds) and kinds[-1] == self.tables.number["INTEGER"] and len(kinds) - 1 not in self.tokens.damaged

    def _is_size(self) -> bool:
        """Whether the last number may be a `size`: that of a window, or the value of a constant or a variable.

        Elsewhere these words are names, and the parser says what is wrong.
        """
        tokens = self.tokens
        before = [tokens.word(index) for index in range(max(0, len(tokens.kinds) - 4), len(tokens.kinds) - 1)]
        return not before or before[-2:] == ["size", "="] or (before[-1] == "=" and before[0] == "let")

    def _duration(self, word: str, start: int, end: int) -> None:
        tokens, number = self.tokens, self.tables.number
        if word in CALENDAR_UNITS and self._is_size():
            tokens.kinds[-1], tokens.ends[-1] = number["CALENDAR_LENGTH"], end
            return
        if word not in UNITS:
            known = self.tables.words.get(word, self.tables.name)
            tokens.add(known if known in self.tables.reserved else self.tables.name, start, end)
            return
        index = len(tokens.kinds) - 1
        milliseconds = int(tokens.word(index)) * UNITS[word]
        if index and tokens.kinds[index - 1] == number["DURATION"]:
            tokens.kinds.pop(), tokens.starts.pop(), tokens.ends.pop()
            index -= 1
            milliseconds += tokens.durations[index]
        tokens.kinds[index] = number["DURATION"]
        tokens.ends[index] = end
        tokens.durations[index] = milliseconds
        if milliseconds > MAX_MILLISECONDS:
            self.report("VSC020", tokens.starts[index], end, "the duration is too long",
                        "the longest is 9223372036854775807 ms")  # fmt: skip
            tokens.durations[index] = 0
            tokens.damaged.add(index)

    # text that is not part of the language

    def _damaged(self, kind: str, start: int, end: int) -> None:
        self.tokens.damaged.add(len(self.tokens.kinds))
        self.tokens.add(self.tables.number[kind], start, end)

    def _foreign(self, sign: str, start: int, end: int) -> int:
        """Reports a sign or comment from another language and reads it as what was meant. Returns where to continue."""
        foreign = FOREIGN[sign]
        if sign == "=>" and self._in_lambda():
            foreign = _LAMBDA
        elif sign == "=>" and self._names_option():
            foreign = _ARROW
        elif sign == "//" and self._divides(end):
            foreign = _DIVISION
        if foreign.comment_end is not None:
            stop = self.text.find(foreign.comment_end, end)
            end = len(self.text) if stop < 0 else stop + len(foreign.comment_end.strip("\n"))
            self.report("VSC008", start, start + len(sign), foreign.message, foreign.help)
            return end
        if sign == '"':
            return self._double_quoted(start)
        if foreign is not _ARROW or all(finding.message != _ARROW.message for finding in self.findings):
            self.report("VSC008", start, end, foreign.message, foreign.help, foreign.meant if foreign.sure else None)
        if not foreign.meant:
            self._damaged("NAME", start, end)
            return end
        self.tokens.meant[start] = foreign.meant
        signs = self.tables.signs
        self.tokens.add(signs.get(foreign.meant) or self.tables.words[foreign.meant], start, end)
        return end

    def _in_lambda(self) -> bool:
        """Whether the tokens before are the parameters of a lambda, which follow the comma of a call."""
        depth, index = 0, len(self.tokens.kinds) - 1
        while index > 0 and depth >= 0 and self.tokens.word(index) != ";":
            word = self.tokens.word(index)
            depth += (word == ")") - (word == "(")
            index -= 1
        return depth < 0 and self.tokens.word(index) in LAMBDAS

    def _divides(self, end: int) -> bool:
        """Whether ``//`` stands between a value and a number: an operator of Python, not a comment."""
        kinds, names = self.tokens.kinds, self.tables.names
        value = bool(kinds) and (kinds[-1] == self.tables.name or names[kinds[-1]] in ("RPAR", "INTEGER"))
        return value and re.compile(r"[ \t]*[0-9]").match(self.text, end) is not None

    def _names_option(self) -> bool:
        """Whether the last token is a name behind a parenthesis or a comma, as that of an option is."""
        kinds, names = self.tokens.kinds, self.tables.names
        return len(kinds) > 1 and kinds[-1] == self.tables.name and names[kinds[-2]] in ("LPAR", "COMMA")

    def _conflict(self, start: int, end: int) -> int:
        """Reports a merge conflict once. Returns where to continue: only its first version is read."""
        if not self.conflict:
            self.report("VSC024", start, end, "a merge conflict is not resolved",
                        "keep one of the two versions, and remove the lines that Git has added")  # fmt: skip
        from vsc.compiler.parser.strange import conflict_end

        after = conflict_end(self.text, start)
        self.conflict = self.text[start] == "<"
        return after

    def _double_quoted(self, start: int) -> int:
        match = re.compile(r'"[^"\n]*"').match(self.text, start)
        end = match.end() if match else start + 1
        inside = self.text[start + 1 : end - 1] if match else ""
        quoted = inside.replace("'", "''")
        self.report("VSC008", start, end, "double quotes are not part of the language",
                    f"write `'{quoted}'` for a string, or backticks for a name")  # fmt: skip
        if match:
            self._damaged("STRING", start, end)
        return end

    def _strange(self, start: int) -> int:
        """Reports an unclosed string or name, or characters that cannot begin a token. Returns where to continue."""
        text, character = self.text, self.text[start]
        if character in "'`":
            return self._unclosed(character, start)
        from vsc.compiler.parser.strange import placeholder

        other = placeholder(text, start)
        if other is not None:
            self.report("VSC026", start, other.end, other.message, other.help)
            self._damaged("STRING", start, other.end)
            return other.end
        if text.startswith("${", start):
            match = re.compile(r"\$\{[^}\n]*\}?").match(text, start)
            end = match.end() if match else start + 2
            self.report("VSC001", start, end, f"`{text[start:end]}` is not a variable",
                        "a variable is written as `${name}`, a name being letters, digits and `_`")  # fmt: skip
            self._damaged("STRING", start, end)
            return end
        end = start + 1
        pattern = _pattern()
        while end < len(text) and text[end] not in "'`$" and pattern.match(text, end) is None:
            end += 1
        tokens = self.tokens
        if character.isalpha():  # report the whole word, including a part that was already read as a name
            if tokens.kinds and tokens.ends[-1] == start and tokens.kinds[-1] == self.tables.name:
                start = tokens.starts.pop()
                tokens.kinds.pop(), tokens.ends.pop()
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
        self.braces += (character == "{") - (character == "}")
        if character != "}" or self.braces < 0:
            message, help, new = describe_character(text[start:end], character)
            self.report("VSC001", start, end, message, help, new)
        self.braces = max(self.braces, 0)
        self._damaged("NAME", start, end)
        return end

    def _unclosed(self, quote: str, start: int) -> int:
        line_end = self.text.find("\n", start)
        end = len(self.text) if line_end < 0 else line_end
        end = start + len(self.text[start:end].rstrip())
        if quote == "`":
            if self.text.startswith("``", start):
                self.report("VSC002", start, start + 2, "a name in backticks cannot be empty", "write the name")
                self._damaged("QUOTED", start, start + 2)
                return start + 2
            self.report("VSC002", start, end, "this name in backticks is not closed on its line", "add the closing `")
            self._damaged("QUOTED", start, end)
            return end
        from vsc.compiler.parser.strange import glued_string

        glued = glued_string(self.text, self.text.rfind("\n", 0, start) + 1, start)
        if glued is not None:
            start = self._withdraw(glued.start)
        labels: tuple[Label, ...] = ()
        if glued is None and self.long_string is not None:
            place = Span(self.long_string.start, self.long_string.start + 1)
            labels = (Label(place, "this string spans several lines: its closing quote may be missing"),)
        help = "add the closing '; inside a string a ' is written ''"
        self.findings.append(Finding("VSC002", Span(start, end), "this string is not closed", labels, help))
        self._damaged("STRING", start, end)
        return end

    def _swallows(self, string: str) -> bool:
        """Whether a string has a line that begins a statement."""
        from vsc.compiler.parser.strange import STARTS

        return STARTS.search(string) is not None

    def _withdraw(self, start: int) -> int:
        """Takes back the tokens from `start` on. Returns `start`."""
        tokens = self.tokens
        while tokens.starts and tokens.starts[-1] >= start:
            tokens.kinds.pop(), tokens.starts.pop(), tokens.ends.pop()
        tokens.damaged = {index for index in tokens.damaged if index < len(tokens.kinds)}
        self.findings = [finding for finding in self.findings if finding.span.start < start]
        return start
