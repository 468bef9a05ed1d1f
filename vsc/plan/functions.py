"""The calls that a plan can hold, one record each: the functions of the language, its operators, its aggregates.

A record has what the compiler, the runtime and the documents need. Two things are elsewhere, under the same name: the
typing rule of a function whose types depend on its arguments (`vsc.compiler.expressions.catalogue`), and its evaluation
(`vsc.runtime.expressions.functions`). Also here: the constants that functions take, such as units and date patterns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

from vsc.plan.record import record
from vsc.plan.types import BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, ScalarType

__all__ = [
    "AGGREGATES",
    "CALLS",
    "FUNCTIONS",
    "OPERATORS",
    "PATTERN_LETTERS",
    "SHA2_BITS",
    "TOPICS",
    "TRUNCATION_UNITS",
    "WRITTEN_LETTERS",
    "Function",
    "PatternPart",
    "parse_pattern",
]


@record
class Function:
    """A call as users write it, with optional parts in brackets, and what it returns, in one line.

    `fails` says for which values it fails; a call without `fails` has a value on every row on which its arguments have
    one, unless that would be too long a text, or an argument that is quoted here is computed. `gives` is the result's
    type if it is always the same; `takes` are the types to which arguments are cast. If either is None, a rule decides.
    """

    signature: str
    about: str
    fails: str = ""
    takes: tuple[ScalarType, ...] = ()
    gives: ScalarType | None = None

    @property
    def name(self) -> str:
        """Its name, here and in a plan."""
        return self.signature.partition("(")[0]

    @property
    def parameters(self) -> list[str]:
        """Its arguments as the call has them, optional ones too, without brackets."""
        return _arguments(re.sub(r"[][]", "", self.signature))

    @property
    def least(self) -> int:
        """How many arguments it needs."""
        return len(_arguments(re.sub(r"\[.*?\]", "", self.signature)))

    @property
    def most(self) -> int | None:
        """How many arguments it takes; None: any number."""
        return None if "..." in self.signature else len(self.parameters)


def _arguments(signature: str) -> list[str]:
    written = re.split(r",(?![^()]*\))", signature.partition("(")[2].removesuffix(")"))  # not between parameters
    return [argument.strip() for argument in written if argument.strip() not in ("", "...")]


def _by_name(*functions: Function) -> dict[str, Function]:
    return {function.name: function for function in functions}


TOPICS: dict[str, tuple[Function, ...]] = {
    "Numbers": (
        Function("abs(number)", "the number without its sign", "overflow"),
        Function("acos(number)", "the angle of this cosine in radians", "", (DOUBLE,), DOUBLE),
        Function("asin(number)", "the angle of this sine in radians", "", (DOUBLE,), DOUBLE),
        Function("atan(number)", "the angle of this tangent in radians", "", (DOUBLE,), DOUBLE),
        Function("atan2(y, x)", "the angle of the point (x, y) in radians", "", (DOUBLE, DOUBLE), DOUBLE),
        Function("cbrt(number)", "the cube root", "", (DOUBLE,), DOUBLE),
        Function("ceil(number)", "the smallest whole number that is not less, a bigint or a decimal", "overflow"),
        Function("cos(number)", "the cosine of an angle in radians", "", (DOUBLE,), DOUBLE),
        Function("cosh(number)", "the hyperbolic cosine", "", (DOUBLE,), DOUBLE),
        Function("degrees(radians)", "the angle in degrees", "", (DOUBLE,), DOUBLE),
        Function("e()", "the number e, a double"),
        Function("exp(number)", "e to the power of the number", "", (DOUBLE,), DOUBLE),
        Function("floor(number)", "the largest whole number that is not greater", "overflow"),
        Function("greatest(value, value, ...)", "the greatest value; nulls do not count"),
        Function("least(value, value, ...)", "the least value; nulls do not count"),
        Function("ln(number)", "the natural logarithm, null if the number is not positive", "", (DOUBLE,), DOUBLE),
        Function("log([base,] number)",
                 "the logarithm, natural without a base; null if one of the two is not positive"),
        Function("log10(number)",
                 "the logarithm to base 10, null if the number is not positive", "", (DOUBLE,), DOUBLE),
        Function("log2(number)", "the logarithm to base 2, null if the number is not positive", "", (DOUBLE,), DOUBLE),
        Function("pi()", "the number pi, a double"),
        Function("pow(base, exponent)", "`base` to the power of `exponent`, a double", "", (DOUBLE, DOUBLE), DOUBLE),
        Function("radians(degrees)", "the angle in radians", "", (DOUBLE,), DOUBLE),
        Function("round(number [, digits])", "the number rounded half up to `digits` decimals, or to none", "overflow"),
        Function("sign(number)", "-1.0, 0.0 or 1.0", "", (DOUBLE,), DOUBLE),
        Function("sin(number)", "the sine of an angle in radians", "", (DOUBLE,), DOUBLE),
        Function("sinh(number)", "the hyperbolic sine", "", (DOUBLE,), DOUBLE),
        Function("sqrt(number)", "the square root, NaN of a negative number", "", (DOUBLE,), DOUBLE),
        Function("tan(number)", "the tangent of an angle in radians", "", (DOUBLE,), DOUBLE),
        Function("tanh(number)", "the hyperbolic tangent", "", (DOUBLE,), DOUBLE),
        Function("try_divide(number, number)", "the quotient, null where `/` fails"),
    ),
    "Nulls and conditions": (
        Function("coalesce(value, ...)", "the first value that is not null"),
        Function("if(condition, then, else)", "`then` if the condition is true, `else` if it is false or null"),
        Function("nullif(value, value)", "the first value, null if the two are equal"),
    ),
    "Text": (
        Function("concat(value, ...)", "the values joined: texts, binaries or arrays"),
        Function("concat_ws(separator, value, ...)", "the texts, or texts of arrays, joined by it; nulls are left out"),
        Function("contains(text, part)", "whether `part` occurs in the text", "", (STRING, STRING), BOOLEAN),
        Function("conv(text, from, to)", "the number's digits in another base, 2 to 36; signed if `to` is negative",
                 "overflow", (STRING, INT, INT), STRING),
        Function("ends_with(text, part)", "whether the text ends with `part`", "", (STRING, STRING), BOOLEAN),
        Function("hex(number or text or binary)", "the 64 bits of a bigint, or the bytes, in hexadecimal digits"),
        Function("initcap(text)", "the text in lower case, with a capital after each blank", "", (STRING,), STRING),
        Function("instr(text, part)", "where `part` first occurs, from 1; 0 if nowhere", "", (STRING, STRING), INT),
        Function("length(text)", "the number of characters, or of a binary's bytes"),
        Function("lower(text)", "the text in lower case", "", (STRING,), STRING),
        Function("lpad(text, length [, pad])", "the text cut or filled up with `pad` on the left, blanks without one"),
        Function("ltrim(text)", "the text without blanks at its start", "", (STRING,), STRING),
        Function("parse_url(text, 'part' [, key])",
                 "`HOST`, `PATH`, `QUERY`, `REF`, `PROTOCOL`, `FILE`, `AUTHORITY` or `USERINFO`; or a key of the query",
                 "text that is not a URL"),
        Function("regexp_extract(text, 'regex' [, group])", "what the group matches first, 1 without one; or ''"),
        Function("regexp_like(text, 'regex')", "whether the regular expression matches a part of the text"),
        Function("regexp_replace(text, 'regex', 'replacement')", "the text with each match replaced; `$1` is a group"),
        Function("repeat(text, times)", "the text so often", "", (STRING, INT), STRING),
        Function("replace(text, search [, replacement])", "the text with each `search` replaced, or removed"),
        Function("reverse(text or array)", "the characters, or the elements, from the last to the first"),
        Function("rpad(text, length [, pad])", "the text cut or filled up with `pad` on the right, blanks without one"),
        Function("rtrim(text)", "the text without blanks at its end", "", (STRING,), STRING),
        Function("split(text, 'regex' [, limit])", "the parts between matches, at most `limit`, as an array"),
        Function("starts_with(text, part)", "whether the text begins with `part`", "", (STRING, STRING), BOOLEAN),
        Function("substring(text, position [, length])", "the part from `position`: 1 is the first, -1 the last"),
        Function("translate(text, letters, replacements)",
                 "the text with each letter replaced by the one at its place, or removed", "",
                 (STRING, STRING, STRING), STRING),
        Function("trim(text)", "the text without blanks at its ends", "", (STRING,), STRING),
        Function("unbase64(text)", "the binary that the text is in base 64", "text that is not", (STRING,), BINARY),
        Function("unhex(text)",
                 "the binary of these hexadecimal digits, null for other characters", "", (STRING,), BINARY),
        Function("upper(text)", "the text in upper case", "", (STRING,), STRING),
    ),
    "Time": (
        Function("date_add(date, days)", "the date that many days later", "overflow"),
        Function("date_format(timestamp, 'pattern' [, zone])", "the time as text", "an unknown zone"),
        Function("date_trunc('unit', timestamp [, zone])", "the start of its year, month, week, hour, ...",
                 "overflow, an unknown zone"),
        Function("datediff(end, start)", "the days from `start` to `end`", "overflow", (DATE, DATE), INT),
        Function("day(date [, zone])", "the day of the month"),
        Function("dayofweek(date [, zone])", "the day of the week, 1 (Sunday) to 7"),
        Function("event_time([table])", "the record's event time; or from when a join's row is valid", "overflow"),
        Function("from_unixtime(seconds [, 'pattern'])", "the time that long after 1970 as text", "overflow"),
        Function("from_utc_timestamp(timestamp, zone)", "the time that clocks in the zone show then",
                 "overflow, an unknown zone"),
        Function("hour(timestamp [, zone])", "the hour, 0 to 23"),
        Function("minute(timestamp [, zone])", "the minute, 0 to 59"),
        Function("month(date [, zone])", "the month, 1 to 12"),
        Function("quarter(date [, zone])", "the quarter, 1 to 4"),
        Function("second(timestamp [, zone])", "the second, 0 to 59"),
        Function("timestamp_millis(milliseconds)", "the timestamp that long after 1970", "overflow"),
        Function("timestamp_seconds(seconds)", "the timestamp that long after 1970", "overflow"),
        Function("to_date(text [, 'pattern'])", "the date that the text gives", "text of another form"),
        Function("to_timestamp(text [, 'pattern'])", "the timestamp that the text gives", "text of another form"),
        Function("to_utc_timestamp(timestamp, zone)", "when clocks in the zone show that time",
                 "overflow, an unknown zone"),
        Function("try_to_timestamp(text [, 'pattern'])", "as `to_timestamp`, but null where that fails"),
        Function("unix_millis(timestamp)", "the milliseconds since 1970"),
        Function("unix_seconds(timestamp)", "the seconds since 1970"),
        Function("year(date [, zone])", "the year"),
    ),
    "Arrays, maps, structs and JSON": (
        Function("aggregate(array, start, (sum, x) -> value [, sum -> result])", "another name of `reduce`"),
        Function("array([element, ...])", "the array of these elements"),
        Function("array_contains(array, value)", "whether an element is equal; null if not, but an element is null"),
        Function("array_distinct(array)", "the array without repeated elements"),
        Function("element_at(array or map, index or key)",
                 "the element: 1 is the first, -1 the last; or the key's value, null if none", "no such element"),
        Function("exists(array, x -> condition)",
                 "whether the condition is true of an element; null if not, but it is null of one"),
        Function("filter(array, x -> condition)",
                 "the elements of which it is true; with `(x, i) -> condition`, `i` is the element's number from 0"),
        Function("forall(array, x -> condition)",
                 "whether the condition is true of all elements; null if it is false of none, but null of one"),
        Function("from_json(text, 'schema')", "the JSON's content in this schema, null where it does not fit"),
        Function("get_json_object(text, '$.path')",
                 "what stands at the path (`$.a[0].b`): a text, or JSON; null if nothing"),
        Function("map(key, value, ...)", "the map of these entries", "a key that is null, or there twice"),
        Function("map_concat(map, ...)", "the entries of all maps", "a key that is there twice"),
        Function("map_entries(map)", "the entries, an array of `struct<key, value>`"),
        Function("map_from_entries(array)",
                 "the map of an array of `struct<key, value>`", "a key that is null, or there twice"),
        Function("map_keys(map)", "the keys"),
        Function("map_values(map)", "the values"),
        Function("reduce(array, start, (sum, x) -> value [, sum -> result])",
                 "`start`, and for each element what the lambda makes of it, and of the last sum"),
        Function("sequence(start, stop [, step])",
                 "from `start` to `stop` by `step`, a duration of times; by 1, or a day, without one",
                 "a step that does not lead there"),
        Function("size(array or map)", "the number of elements"),
        Function("slice(array, start, length)", "the elements from `start`: 1 is the first, -1 the last",
                 "a `start` of 0, a negative length"),
        Function("sort_array(array [, ascending])", "the array in order; nulls first, or last if not `ascending`"),
        Function("struct(value [as name], ...)", "the struct of these values; `col2` is the second without a name"),
        Function("to_json(array or map or struct)", "the value as JSON"),
        Function("transform(array, x -> value)",
                 "the array of the values; with `(x, i) -> value`, `i` is the element's number from 0"),
        Function("transform_values(map, (key, value) -> value)", "the map with these values"),
    ),
    "Hashes": (
        Function("md5(text or binary)", "the MD5 hash in hexadecimal digits"),
        Function("sha2(text or binary, bits)", "the SHA-2 hash of 224, 256, 384 or 512 bits in hexadecimal digits"),
        Function("xxhash64(value, ...)", "Spark's `xxhash64` of the values, a bigint"),
    ),
}  # fmt: skip
"""The functions of the language by topic, in the order of the documents."""

FUNCTIONS = {function.name: function for topic in TOPICS.values() for function in topic}
"""The functions by name."""

OPERATORS = _by_name(
    Function("add(a, b, ...)", "`a + b`, from left to right, each step of the call's type", "overflow"),
    Function("and(a, b, ...)", "`a and b`"),
    Function("case(condition, value, else, ...)", "condition, value, condition, value, ..., and always else"),
    Function("divide(a, b)", "`a / b`", "division by zero, overflow"),
    Function("element(array or map, index or key)", "`a[i]` from 0, and `m['k']`", "no such element"),
    Function("eq(a, b)", "`a = b`"),
    Function("ge(a, b)", "`a >= b`"),
    Function("get_field(struct, 'name')", "`s.name`"),
    Function("gt(a, b)", "`a > b`"),
    Function("in(value, option, ...)", "`value in (option, ...)`"),
    Function("is_not_null(a)", "`a is not null`"),
    Function("is_null(a)", "`a is null`"),
    Function("le(a, b)", "`a <= b`"),
    Function("like(text, pattern)", "`text like pattern`", "an escape character that escapes nothing"),
    Function("lt(a, b)", "`a < b`"),
    Function("modulo(a, b)", "`a % b`", "division by zero, overflow"),
    Function("multiply(a, b, ...)", "`a * b`, as add", "overflow"),
    Function("ne(a, b)", "`a <> b`"),
    Function("negate(a)", "`-a`", "overflow"),
    Function("not(a)", "`not a`"),
    Function("or(a, b, ...)", "`a or b`"),
    Function("subtract(a, b, ...)", "`a - b`, as add", "overflow"),
)  # fmt: skip
"""The operators by their names in a plan's calls. The language has no such words."""

CALLS = {**FUNCTIONS, **OPERATORS}
"""What a `Call` of a plan may be."""

AGGREGATES = _by_name(
    Function("approx_percentile(value, share)",
             "the value at the place `share * count`, rounded up, in ascending order; `share` is 0 to 1; exact"),
    Function("avg(number)", "the mean, a double, or of decimals one with four digits more"),
    Function("bool_and(condition)", "whether the condition is true on all rows on which it is not null"),
    Function("bool_or(condition)", "whether the condition is true on a row"),
    Function("collect_last(value, n)",
             "the array of the last `n` values that are not null, by event time, then by arrival"),
    Function("collect_list(value)", "the array of the values, by event time, then by arrival"),
    Function("collect_set(value)", "the array of the different values, in order of first appearance"),
    Function("collect_top(value, n by order [desc])",
             "the array of the values of the `n` rows with the least `order`, or the greatest; by it, then by arrival"),
    Function("count(*)", "the number of rows; `count(value)`, `count(distinct value)`: without nulls"),
    Function("first(value)", "the first value by event time, then by arrival; `first(value) ignore nulls`"),
    Function("last(value)", "the last value by event time, then by arrival; `last(value) ignore nulls`"),
    Function("max(value)", "the greatest value"),
    Function("max_by(value, order)", "the value where `order` is greatest"),
    Function("min(value)", "the least value"),
    Function("min_by(value, order)", "the value where `order` is least"),
    Function("stddev(number)", "the standard deviation of a sample, a double; null of one value"),
    Function("sum(number)", "the sum: a bigint, a double, or a decimal with ten digits more", "overflow"),
    Function("variance(number)", "the variance of a sample, a double; null of one value"),
)  # fmt: skip
"""The calls that only an ``aggregate`` may select, by name."""

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
"""Spark's spellings of the units of ``date_trunc``, in lower case, with the unit that each means."""

SHA2_BITS = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}
"""The bit lengths that ``sha2`` knows (0 means 256), with their hashes."""

_WIDTHS: Mapping[str, Set[int]] = {
    "y": {2, 4},
    "M": {1, 2, 3, 4},
    "d": {1, 2},
    "H": {1, 2},
    "h": {1, 2},
    "a": {1},
    "m": {1, 2},
    "s": {1, 2},
    "S": set(range(1, 10)),
    "X": {1, 2, 3},
    "x": {1, 2, 3},
    "Z": {1, 2, 3},
}
_WRITTEN: Mapping[str, Set[int]] = {**_WIDTHS, "D": {1, 2, 3}, "E": {1, 2, 3, 4}, "Q": {1, 2, 3, 4}}
"""The widths of letters in patterns that write."""
_OFFSETS = frozenset("XxZ")
_PIECE = r"'((?:[^']|'')*+)'|([A-Za-z])\2*|([^\[\]{}#'])"
"""A piece of a date pattern: a quoted text, a run of a letter, or another character."""


@record
class PatternPart:
    """A piece of a date pattern: a run of the pattern letter `letter`, or plain text if `letter` is empty."""

    letter: str
    text: str


PATTERN_LETTERS = "yyyy yy M MM MMM MMMM d dd H HH h hh a m mm s ss S... X XX XXX x xx xxx Z"
"""What patterns of times know, beside text in single quotes and punctuation."""
WRITTEN_LETTERS = "E EEEE D DDD Q QQQ"
"""What those know as well that write times: names of days, and days and quarters of the year."""


def parse_pattern(pattern: str, writes: bool = False) -> tuple[PatternPart, ...]:
    """The parts of a date pattern (``yyyy-MM-dd HH:mm:ss``), a subset of Java's ``DateTimeFormatter``.

    It knows `PATTERN_LETTERS`, and where it `writes` times also `WRITTEN_LETTERS`. Raises a ValueError that names the
    first other piece, or a letter that occurs twice: vsc does not promise to agree with Spark about those. `h` and `a`
    need each other.
    """
    widths = _WRITTEN if writes else _WIDTHS
    parts: list[PatternPart] = []
    seen: set[str] = set()
    at = 0
    while at < len(pattern):
        piece = re.compile(_PIECE, re.DOTALL).match(pattern, at)
        if piece is None:
            found = pattern[at]
            raise ValueError("a quote without its end" if found == "'" else f"pattern character {found!r}")
        quoted, letter, other = piece.groups()
        if letter is None:
            parts.append(PatternPart("", other or quoted.replace("''", "'") or "'"))
        else:
            if len(piece[0]) not in widths.get(letter, ()):
                only = " where times are read" if len(piece[0]) in _WRITTEN.get(letter, ()) else ""
                only = ", a zone's name, which depends on the release of Java" if letter == "z" else only
                raise ValueError(f"pattern letters {piece[0]!r}{only}")
            if letter in seen:
                raise ValueError(f"pattern letter {letter!r} twice")
            if letter in _OFFSETS and seen & _OFFSETS:
                raise ValueError("more than one offset from UTC (X, x, Z)")
            seen.add(letter)
            parts.append(PatternPart(letter, piece[0]))
        at = piece.end()
    if not seen:
        raise ValueError("a pattern without letters")
    if "h" in seen and "a" not in seen:
        raise ValueError("the pattern letter 'h' without 'a', morning or afternoon")
    if "a" in seen and ("h" not in seen or "H" in seen):
        raise ValueError(
            "the pattern letter 'a' without 'h', the hour from 1 to 12"
            if "h" not in seen
            else "the pattern letters 'h' and 'H' together"
        )
    return tuple(parts)
