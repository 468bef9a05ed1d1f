r"""Regular expressions: those of Java that RE2 matches with the same result, and so in time that grows with the text.

Spark's regular expressions are Java's, which can take forever on a text of thirty characters. RE2 cannot. Both choose
the leftmost match and the first alternative, so what both have means the same, once it is written out:

* ``\d \w \s`` and ``.`` have other members in RE2, ``(?i)`` folds more letters there: they become classes.
* ``$`` also matches in front of a line end at the very end. It may end the pattern, or one of its alternatives, and is
  written as this line end and ``\z``. Between the two characters of a last ``\r\n`` Java finds no end, so there are two
  forms of the pattern, one for texts with such an end.
* A repeated part that can be empty ends its loop at another time. It is refused, as is everything that RE2 lacks.
"""

from __future__ import annotations

import re
from functools import lru_cache

from vsc.plan.record import record

__all__ = ["Regex", "java_regex", "java_replacement", "replaceable", "separator"]

_MOST_REPEATED = 1000
"""RE2 refuses more repetitions of one part, those of nested repetitions multiplied; here of its characters."""
_MOST = 5000
"""The characters of a pattern, repetitions multiplied: RE2 refuses what needs too much memory."""
_MOST_GROUPS = 9
"""RE2's replacements have no others."""
_NO_LINE_END = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_END = r"[\n\r\x{85}\x{2028}\x{2029}]?\z"
_END_OF_CRLF = r"(?:\r\n)?\z"
_CLASSES = {"d": "0-9", "w": "0-9A-Z_a-z", "s": r"\t\n\x{b}\f\r "}
_CONTROLS = {"t": 9, "n": 10, "f": 12, "r": 13, "a": 7, "e": 27}
_ANCHORS = {"A": r"\A", "z": r"\z"}
_CODE = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
_REPEAT = re.compile(r"\{(\d+)(,(\d*))?\}")
_REPLACEMENT = re.compile(r"\\(.)|\$(\d+)|([\\$])|([^\\$]+)", re.DOTALL)
_HELPS = {
    "b": "write what may stand there, such as `(?:\\s|\\z)`: a word's end depends on the release of Java",
    "Z": "write `\\z`, the end of the text",
}
_MATCHES_NOTHING = "a regular expression that matches nothing", "repeat with `+` instead of `*`, for example"


@record
class Regex:
    """A regular expression for RE2. Its capturing groups are called ``g1``, ``g2``, ....

    `alternatives` are those at the top, each with whether it ends with a `$`. `begins`: it has a `^`. `empty`: it may
    match an empty text.
    """

    alternatives: tuple[tuple[str, bool], ...]
    groups: int
    begins: bool
    empty: bool

    @property
    def ends(self) -> bool:
        """Whether it has a `$`: a match then takes the line end at the text's end with it."""
        return any(end for _, end in self.alternatives)

    def re2(self, crlf: bool = False) -> str:
        """The pattern; with a `$`, the form for texts that end with ``\\r\\n``, or for all others."""
        end = _END_OF_CRLF if crlf else _END
        return "|".join(f"(?:{text}){end}" if closed else text for text, closed in self.alternatives)

    def bodies(self, crlf: bool = False) -> str:
        """The pattern, in which alternative number i, without that line end, is the group ``b<i>``."""
        end = _END_OF_CRLF if crlf else _END
        return "|".join(f"(?P<b{i}>{text}){end * closed}" for i, (text, closed) in enumerate(self.alternatives))


@lru_cache(maxsize=1000)
def java_regex(pattern: str) -> Regex:
    """The pattern for RE2. Raises ValueError for one that RE2 might understand in another way: what, and what to do."""
    return _Parser(pattern).whole()


def replaceable(pattern: str) -> Regex:
    """As `java_regex`, for what `regexp_replace` takes."""
    regex = java_regex(pattern)
    if regex.ends:
        raise ValueError("`$` in its regular expression", "write `\\z` for the end of the text")
    if regex.empty:
        raise ValueError(*_MATCHES_NOTHING)
    return regex


def separator(pattern: str) -> Regex:
    """As `java_regex`, for what `split` takes: also an empty pattern, for each character."""
    regex = java_regex(pattern)
    if regex.ends or regex.begins:
        raise ValueError(f"`{'$' if regex.ends else '^'}` in its regular expression", "split at characters")
    if regex.empty and pattern:
        what, help = _MATCHES_NOTHING
        raise ValueError(what, r"write `'\|'` for the character" if pattern == "|" else help)
    return regex


def java_replacement(text: str, groups: int) -> str:
    """The replacement ``$1-\\$`` as RE2 writes it. Raises ValueError for one that Java does not take."""
    written = []
    for escaped, group, wrong, plain in _REPLACEMENT.findall(text):
        if wrong:
            raise ValueError(f"`{wrong}` in its replacement", f"write `\\{wrong}` for this character")
        if group:
            number, rest = int(group[0]), group[1:]
            while rest and number * 10 + int(rest[0]) <= groups:  # as many digits as there is a group for
                number, rest = number * 10 + int(rest[0]), rest[1:]
            if number > groups:
                raise ValueError(f"`${number}` in its replacement", f"the regular expression has {groups} groups")
            written.append(f"\\{number}{rest}")
        else:
            written.append((escaped or plain).replace("\\", "\\\\"))
    return "".join(written)


@record
class _Part:
    """A part of a pattern: its text, whether it can be empty, and how many characters it is, repetitions multiplied."""

    text: str
    empty: bool
    size: int = 1


def _unlike(
    found: str, help: str = "write it with `[...]`, `(...)`, `|`, `*`, `+`, `?`, `{n,m}`, `^` and `$`"
) -> ValueError:
    return ValueError(f"{found} in its regular expression", help)


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.folds = pattern.startswith("(?i)")
        self.pattern = pattern[4:] if self.folds else pattern
        self.at = self.groups = self.depth = 0
        self.begins = False

    def whole(self) -> Regex:
        bodies: list[_Part] = []
        ends: list[bool] = []
        while True:
            bodies.append(self._sequence())
            ends.append(self._took("$"))
            if ends[-1] and self._next() not in ("", "|"):
                raise _unlike("`$` in front of something else", "let `$` end the pattern, or one of its alternatives")
            if not self._took("|"):
                break
        if self._next() == ")":
            raise _unlike("a `)` without its `(`")
        if sum(body.size for body in bodies) > _MOST:
            raise _unlike(f"more than {_MOST:,} characters, repetitions multiplied,", "write a shorter pattern")
        texts = tuple(body.text for body in bodies)
        return Regex(tuple(zip(texts, ends, strict=True)), self.groups, self.begins, any(body.empty for body in bodies))

    def _next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _took(self, sign: str) -> bool:
        found = self.pattern.startswith(sign, self.at)
        self.at += len(sign) * found
        return found

    def _alternatives(self) -> _Part:
        parts = [self._sequence()]
        while self._took("|"):
            parts.append(self._sequence())
        if self._next() == "$":
            raise _unlike("`$` within `(...)`", "let `$` end the pattern, or one of its alternatives")
        text = "|".join(part.text for part in parts)
        return _Part(text, any(part.empty for part in parts), sum(part.size for part in parts))

    def _sequence(self) -> _Part:
        parts = []
        while self._next() not in ("", "|", ")", "$"):
            parts.append(self._repeated())
        text = "".join(part.text for part in parts)
        return _Part(text, all(part.empty for part in parts), sum(part.size for part in parts))

    def _repeated(self) -> _Part:
        start = self.at
        part, anchor = self._atom()
        sign, least, times = self._quantifier()
        if not sign:
            return part
        if anchor or part.empty:
            raise _unlike(
                f"`{self.pattern[start : self.at]}`, which repeats what can be empty", "repeat something that cannot"
            )
        size = part.size * times
        if times > 1 and size > _MOST_REPEATED:
            raise _unlike(
                f"`{self.pattern[start : self.at]}`, which repeats {size:,} characters",
                f"repeat at most {_MOST_REPEATED:,}",
            )
        if self._took("?"):
            sign += "?"
        elif self._next() in ("*", "+") or _REPEAT.match(self.pattern, self.at):
            raise _unlike(f"`{self._next()}` after `{self.pattern[self.at - 1]}`")
        return _Part(part.text + sign, least == 0, size)

    def _quantifier(self) -> tuple[str, int, int]:
        """A quantifier as it is written, the least and the most times that it names; an empty text if there is none."""
        for sign, least in (("*", 0), ("+", 1), ("?", 0)):
            if self._took(sign):
                return sign, least, 1
        if self._next() != "{":
            return "", 1, 1
        repeat = _REPEAT.match(self.pattern, self.at)
        if repeat is None:
            raise _unlike("a `{` that is not `{n}`, `{n,}` or `{n,m}`", "write `\\{` for the character")
        self.at = repeat.end()
        least, most = int(repeat[1]), int(repeat[3] or repeat[1])
        if most < least:
            raise _unlike(f"`{repeat[0]}`", "write the smaller number first")
        return repeat[0], least, max(most, 1)

    def _atom(self) -> tuple[_Part, bool]:
        """The next part, and whether it is a place rather than characters."""
        sign = self._next()
        if sign in "*+?{":
            raise _unlike(
                f"a `{sign}` that repeats nothing",
                f"write `\\{sign}` for the character",
            )
        self.at += 1
        match sign:
            case "(":
                return self._group(), False
            case "[":
                text, size = self._class()
                return _Part(text, False, size), False
            case ".":
                return _Part(_NO_LINE_END, False), False
            case "^":
                self.begins = True
                return _Part(r"\A", True), True
            case "\\":
                return self._escaped()
        return _Part(self._written(ord(sign)), False), False

    def _group(self) -> _Part:
        self.depth += 1
        if self.depth > 50:
            raise _unlike("`(` nested more than 50 deep", "write a simpler pattern")
        opening = "(?:"
        if not self._took("?:"):
            if self._next() == "?":
                raise _unlike(
                    f"`({self.pattern[self.at : self.at + 2]}`",
                    "`(...)`, `(?:...)`, and `(?i)` in front of the whole are there",
                )
            self.groups += 1
            if self.groups > _MOST_GROUPS:
                raise _unlike(f"more than {_MOST_GROUPS} groups", "write `(?:...)` for those that are not asked for")
            opening = f"(?P<g{self.groups}>"
        inside = self._alternatives()
        if not self._took(")"):
            raise _unlike("a `(` without its `)`")
        self.depth -= 1
        return _Part(f"{opening}{inside.text})", inside.empty, inside.size)

    def _escaped(self) -> tuple[_Part, bool]:
        """What follows a backslash, outside of a class."""
        letter = self._next()
        if letter in _ANCHORS and letter:
            self.at += 1
            self.begins = self.begins or letter == "A"
            return _Part(_ANCHORS[letter], True), True
        if letter.lower() in _CLASSES and letter:
            self.at += 1
            return _Part(f"[{'^' * letter.isupper()}{_CLASSES[letter.lower()]}]", False), False
        return _Part(self._written(self._character()), False), False

    def _character(self) -> int:
        """The character that an escape means, after its backslash."""
        letter = self._next()
        code = _CODE.match(self.pattern, self.at)
        if code is not None:
            self.at = code.end()
            found = int(code[1] or code[2], 16)
            if 0xD800 <= found < 0xE000:
                raise _unlike(f"`\\{code[0]}`", "write the character itself")
            return found
        if letter in _CONTROLS and letter:
            self.at += 1
            return _CONTROLS[letter]
        if not letter or (letter.isascii() and letter.isalnum()):
            raise _unlike(f"`\\{letter}`", *([_HELPS[letter]] if letter in _HELPS else []))
        self.at += 1
        return ord(letter)

    def _written(self, code: int) -> str:
        """One character outside of a class."""
        other = _other_case(code) if self.folds else None
        return f"\\x{{{code:x}}}" if other is None else f"[\\x{{{code:x}}}\\x{{{other:x}}}]"

    def _class(self) -> tuple[str, int]:
        """The class after its bracket, and how many members it has."""
        negated, members = self._took("^"), []
        if self._next() in ("]", "^"):
            raise _unlike("an empty `[]`" if self._next() == "]" else "`[^^`", "write a character with a backslash")
        while not self._took("]"):
            for sign in ("[", "&&", "||", "--", "~~", ""):
                if not sign and self._next() == "":
                    raise _unlike("a `[` without its `]`")
                if sign and self.pattern.startswith(sign, self.at):
                    raise _unlike(f"`{sign}` within `[...]`", "write each character with a backslash")
            members.append(self._members())
        return f"[{'^' * negated}{''.join(members)}]", len(members)

    def _members(self) -> str:
        """A named class, a character or a range in a class."""
        if self._took("\\"):
            letter = self._next()
            if letter and letter in _CLASSES:
                self.at += 1
                if self._next() == "-" and self.pattern[self.at + 1 : self.at + 2] != "]":
                    raise _unlike(f"a range from `\\{letter}`", "write `\\-` for the character")
                return _CLASSES[letter]
            first = self._character()
        else:
            first = ord(self._next())
            self.at += 1
        if self._next() != "-" or self.pattern[self.at + 1 : self.at + 2] in ("]", ""):
            return self._range(first, first)
        self.at += 1
        if self._took("\\"):
            last = self._character()
        else:
            last = ord(self._next())
            self.at += 1
        if last < first or chr(last) == "[":
            raise _unlike(f"the range `{chr(first)}-{chr(last)}`", "write the smaller character first")
        return self._range(first, last)

    def _range(self, first: int, last: int) -> str:
        found = f"\\x{{{first:x}}}-\\x{{{last:x}}}"
        if self.folds:
            for low, high, shift in ((65, 90, 32), (97, 122, -32)):
                least, most = max(first, low), min(last, high)
                if least <= most:
                    found += f"\\x{{{least + shift:x}}}-\\x{{{most + shift:x}}}"
        return found


def _other_case(code: int) -> int | None:
    """The same ASCII letter in the other case."""
    letter = chr(code)
    return ord(letter.swapcase()) if letter.isascii() and letter.isalpha() else None
