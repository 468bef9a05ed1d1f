"""The functions of the language that both sides share: their names, how many arguments they take, and date patterns.

The compiler's catalogue adds the typing rules, the runtime's the evaluation; tests hold the three together. Aggregate
functions are not here: they are items of `aggregate`, not expressions.
"""

from __future__ import annotations

from vsc.plan.record import record

__all__ = [
    "AGGREGATES",
    "FUNCTIONS",
    "OPERATORS",
    "SHA2_BITS",
    "TRUNCATION_UNITS",
    "Function",
    "PatternPart",
    "parse_pattern",
]


@record
class Function:
    """A function's call as users write it, and how many arguments it takes (`most` None: any number)."""

    signature: str
    least: int
    most: int | None


def _table(*rows: tuple[str, int, int | None]) -> dict[str, Function]:
    return {signature.partition("(")[0]: Function(signature, least, most) for signature, least, most in rows}


FUNCTIONS: dict[str, Function] = _table(
    ("abs(number)", 1, 1),
    ("array(element, ...)", 0, None),
    ("ceil(number)", 1, 1),
    ("coalesce(value, ...)", 1, None),
    ("concat(value, ...)", 1, None),
    ("contains(text, part)", 2, 2),
    ("date_add(date, days)", 2, 2),
    ("date_trunc('unit', timestamp)", 2, 2),
    ("datediff(end, start)", 2, 2),
    ("day(date)", 1, 1),
    ("element_at(array or map, index or key)", 2, 2),
    ("ends_with(text, part)", 2, 2),
    ("event_time([table])", 0, 1),
    ("floor(number)", 1, 1),
    ("from_json(text, 'schema')", 2, 2),
    ("greatest(value, value, ...)", 2, None),
    ("hour(timestamp)", 1, 1),
    ("if(condition, then, else)", 3, 3),
    ("least(value, value, ...)", 2, None),
    ("length(text)", 1, 1),
    ("lower(text)", 1, 1),
    ("md5(text or binary)", 1, 1),
    ("minute(timestamp)", 1, 1),
    ("month(date)", 1, 1),
    ("nullif(value, value)", 2, 2),
    ("replace(text, search [, replacement])", 2, 3),
    ("round(number [, digits])", 1, 2),
    ("second(timestamp)", 1, 1),
    ("sha2(text or binary, bits)", 2, 2),
    ("size(array or map)", 1, 1),
    ("split(text, regex [, limit])", 2, 3),
    ("starts_with(text, part)", 2, 2),
    ("struct(value [as name], ...)", 1, None),
    ("substring(text, position [, length])", 2, 3),
    ("timestamp_millis(milliseconds)", 1, 1),
    ("to_date(text [, 'pattern'])", 1, 2),
    ("to_json(struct, array or map)", 1, 1),
    ("to_timestamp(text [, 'pattern'])", 1, 2),
    ("trim(text)", 1, 1),
    ("try_divide(number, number)", 2, 2),
    ("unix_millis(timestamp)", 1, 1),
    ("upper(text)", 1, 1),
    ("xxhash64(value, ...)", 1, None),
    ("year(date)", 1, 1),
)

OPERATORS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("negate", "not", "is_null", "is_not_null"), (1, 1)),
    **dict.fromkeys(("add", "subtract", "multiply"), (2, None)),
    **dict.fromkeys(("divide", "modulo"), (2, 2)),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "like", "get_field", "element"), (2, 2)),
    **dict.fromkeys(("and", "or", "in"), (2, None)),
    "case": (3, None),
}
"""The operators, by their names in a plan, and the least and most arguments of each (most None: any number)."""

AGGREGATES = frozenset(
    {
        "count", "sum", "avg", "min", "max", "min_by", "max_by", "first", "last", "collect_list", "collect_set",
    }
)  # fmt: skip
"""The calls that only an ``aggregate`` may select."""

TRUNCATION_UNITS = {
    "microsecond": "microsecond",
    "millisecond": "millisecond",
    "second": "second",
    "minute": "minute",
    "hour": "hour",
    "day": "day",
    "dd": "day",
    "week": "week",
    "month": "month",
    "mon": "month",
    "mm": "month",
    "quarter": "quarter",
    "year": "year",
    "yyyy": "year",
    "yy": "year",
}
"""Spark's spellings of the units of ``date_trunc``, in lower case, and the unit that each means."""

SHA2_BITS = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}
"""The bit lengths that ``sha2`` knows (0 is 256), and the hash that each means."""

_WIDTHS = {
    "y": {4},
    "M": {1, 2},
    "d": {1, 2},
    "H": {1, 2},
    "m": {1, 2},
    "s": {1, 2},
    "S": set(range(1, 10)),
    "X": {1, 3},
}


@record
class PatternPart:
    """A piece of a date pattern: a run of one pattern letter (`letter` is it), or plain text (`letter` is empty)."""

    letter: str
    text: str


def parse_pattern(pattern: str) -> tuple[PatternPart, ...]:
    """The parts of a date pattern (``yyyy-MM-dd HH:mm:ss``), a subset of Java's ``DateTimeFormatter``.

    Known are ``yyyy M MM d dd H HH m mm s ss S..SSSSSSSSS X XXX``, text in single quotes and punctuation. Raises
    ValueError that names the first other piece, or a letter that stands twice: what Spark makes of those is not
    something that vsc promises to agree with.
    """
    parts: list[PatternPart] = []
    seen: set[str] = set()
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "'":
            text, at = _quoted(pattern, at)
            parts.append(PatternPart("", text))
        elif character.isascii() and character.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == character:
                end += 1
            run = pattern[at:end]
            if len(run) not in _WIDTHS.get(character, ()):
                raise ValueError(f"pattern letters {run!r}")
            if character in seen:
                raise ValueError(f"pattern letter {character!r} twice")
            seen.add(character)
            parts.append(PatternPart(character, run))
            at = end
        elif character in "[]{}#":
            raise ValueError(f"pattern character {character!r}")
        else:
            parts.append(PatternPart("", character))
            at += 1
    if not seen:
        raise ValueError("a pattern without letters")
    return tuple(parts)


def _quoted(pattern: str, start: int) -> tuple[str, int]:
    text, at = "", start + 1
    while at < len(pattern):
        if pattern[at] != "'":
            text, at = text + pattern[at], at + 1
        elif pattern[at : at + 2] == "''":
            text, at = text + "'", at + 2
        else:
            return text or "'", at + 1
    raise ValueError("a quote without its end")
