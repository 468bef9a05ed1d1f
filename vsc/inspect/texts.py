"""What all texts of a column have in common: numbers, dates or timestamps. It looks at them batch by batch.

A type is chosen only if sources read every text seen as that type, without loss: `007` stays a string.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from vsc.inspect.model import DataColumn
from vsc.inspect.wording import written
from vsc.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, DataType, DecimalType
from vsc.runtime.expressions.calendar import pattern_reader
from vsc.runtime.text_columns import timestamps_of

__all__ = ["MARKERS", "Numbers", "Texts", "instants"]

MARKERS = ("NA", "N/A", "n/a", "NULL", "null", "None", "-", "?", "\\N")
"""Texts that often stand for a missing value."""

_BOOLEAN = r"^(?i:true|false)$"
_INTEGER = r"^-?(0|[1-9][0-9]*)$"
_NUMBER = r"^(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|(?i:nan)|-?Infinity)$"
_FIXED = r"^-?[0-9]+(\.[0-9]+)?$"
_COMMAS = (
    ("decimal commas", r"^-?[0-9]+(,[0-9]+)?$", "replace({}, ',', '.')"),
    ("decimal commas", r"^-?[0-9]{1,3}(\.[0-9]{3})*(,[0-9]+)?$", "replace(replace({}, '.', ''), ',', '.')"),
    ("commas between thousands", r"^-?[0-9]{1,3}(,[0-9]{3})*(\.[0-9]+)?$", "replace({}, ',', '')"),
)
"""Numbers with commas: what these are, a regular expression of the texts, and what makes such a number of one."""
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_ZONED = r":[0-9:.]* ?[A-Za-z+-]"
"""Of a text that is a timestamp: whether it names its offset or zone, behind the time of the day."""
_DAYS = {
    "dd-MM-yyyy": r"(0[1-9]|[12][0-9]|3[01])-(0[1-9]|1[0-2])-[0-9]{4}",
    "dd-MMM-yyyy": r"(0[1-9]|[12][0-9]|3[01])-[A-Z][a-z]{2}-[0-9]{4}",
    "dd MMM yyyy": r"(0[1-9]|[12][0-9]|3[01]) [A-Z][a-z]{2} [0-9]{4}",
    "dd.MM.yyyy": r"(0[1-9]|[12][0-9]|3[01])\.(0[1-9]|1[0-2])\.[0-9]{4}",
    "dd/MM/yyyy": r"(0[1-9]|[12][0-9]|3[01])/(0[1-9]|1[0-2])/[0-9]{4}",
    "MM/dd/yyyy": r"(0[1-9]|1[0-2])/(0[1-9]|[12][0-9]|3[01])/[0-9]{4}",
    "yyyy/MM/dd": r"[0-9]{4}/(0[1-9]|1[0-2])/(0[1-9]|[12][0-9]|3[01])",
}
_CLOCKS = {
    " HH:mm:ss": r" [0-2][0-9]:[0-5][0-9]:[0-5][0-9]",
    " HH:mm:ss.SSS": r" [0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}",
    " HH:mm": r" [0-2][0-9]:[0-5][0-9]",
    " hh:mm a": r" (0[1-9]|1[0-2]):[0-5][0-9] [AP]M",
    " hh:mm:ss a": r" (0[1-9]|1[0-2]):[0-5][0-9]:[0-5][0-9] [AP]M",
    "": "",
}
_COMPACT = r"(19[7-9]|20[0-9])[0-9](0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])"
_PATTERNS = {day + clock: f"^{d}{c}$" for day, d in _DAYS.items() for clock, c in _CLOCKS.items()} | {
    "yyyy-MM-dd HH:mm:ss,SSS": r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-2][0-9]:[0-5][0-9]:[0-5][0-9],[0-9]{3}$",
    "yyyyMMdd": f"^{_COMPACT}$",
    "yyyyMMddHHmmss": f"^{_COMPACT}[0-2][0-9][0-5][0-9][0-5][0-9]$",
}
"""Patterns of dates and times, each with a regular expression of the texts that may be one."""
_MOST_DIGITS = 38
_EXACT_DIGITS = 15


def instants(texts: pa.Array, pattern: str | None = None) -> pa.Array:
    """The timestamps that texts are, in ISO or by a pattern, null for others. Without an offset it is UTC."""
    if pattern is None:
        return timestamps_of(texts)
    encoded, read = texts.dictionary_encode(), pattern_reader(pattern)
    known = [None if text is None else read(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(known, pa.int64()).take(encoded.indices).view(pa.timestamp("us", "UTC"))


class Numbers:
    """How large and how exact the numbers of a text column are."""

    def __init__(self) -> None:
        self.integers = self.fixed = self.small = self.exact = True
        self.whole = self.scale = 0
        self.shortest: int | None = None

    def see(self, texts: pa.Array) -> None:
        """Takes in texts, all of which look like numbers."""
        self.integers = self.integers and _all(texts, _INTEGER)
        if self.integers and self.small:
            try:
                texts.cast(pa.int64())
            except pa.ArrowInvalid:
                self.small = False
        self.fixed = self.fixed and _all(texts, _FIXED)
        digits = pc.replace_substring_regex(texts, r"^-?0*|[eE].*$|\.", "")
        self.exact = self.exact and _longest(digits) <= _EXACT_DIGITS
        if self.fixed:
            self.whole = max(self.whole, _longest(pc.replace_substring_regex(texts, r"^-|\..*$", "")))
            lengths = pc.utf8_length(pc.replace_substring_regex(texts, r"^[^.]*\.?", ""))
            self.scale = max(self.scale, pc.max(lengths).as_py())
            shortest = pc.min(lengths).as_py()
            self.shortest = shortest if self.shortest is None else min(self.shortest, shortest)

    def type(self) -> tuple[DataType, tuple[str, ...]]:
        """A type that loses nothing, and notes about the numbers."""
        if self.integers and self.small:
            return BIGINT, ()
        decimal = DecimalType(max(self.whole + self.scale, 1), self.scale)
        held = self.fixed and decimal.precision <= _MOST_DIGITS
        if self.integers or (self.fixed and not self.exact):
            return (decimal, ()) if held else (STRING, ("numbers with too many digits for a number type",))
        money = self.fixed and self.exact and self.scale == self.shortest and 1 < self.scale <= 4
        roomy = DecimalType(max(12, decimal.precision + 2), self.scale)
        return DOUBLE, ((f"always {self.scale} decimals: decimal({roomy.precision}, {roomy.scale}) is exact",) * money)


class Texts:
    """What the texts of a column have in common so far."""

    def __init__(self) -> None:
        self.count = self.zoned = self.local = self.marked = 0
        self.markers: set[str] = set()
        self.numbers = Numbers()
        self.booleans = self.numeric = self.dates = self.times = True
        self.has_comma = self.has_blank = False
        self.commas = list(_COMMAS)
        self.patterns = set(_PATTERNS)

    def see(self, texts: pa.Array, cells: bool = False) -> None:
        """Takes in texts, none of them null. Of `cells`, as in CSV, it leaves out empty ones, and counts texts that may
        stand for null separately."""
        if cells:
            filled = texts.filter(pc.not_equal(texts, ""))
            self.has_blank, texts = self.has_blank or len(filled) < len(texts), filled
            marked = pc.is_in(texts, pa.array(MARKERS))
            found = pc.sum(marked).as_py() or 0
            if found:
                self.marked += found
                self.markers.update(texts.filter(marked).unique().to_pylist())
                texts = texts.filter(pc.invert(marked))
        if not len(texts):
            return
        self.count += len(texts)
        self.booleans = self.booleans and _all(texts, _BOOLEAN)
        self.numeric = self.numeric and _all(texts, _NUMBER)
        if self.numeric:
            self.numbers.see(texts)
        self.commas = [form for form in self.commas if _all(texts, form[1])]
        self.has_comma = self.has_comma or bool(pc.any(pc.match_substring(texts, ",")).as_py())
        self._see_times(texts)
        self.patterns = {
            pattern
            for pattern in self.patterns
            if _all(texts, _PATTERNS[pattern]) and not instants(texts, pattern).null_count
        }

    def _see_times(self, texts: pa.Array) -> None:
        if not self.times:
            return
        self.times = timestamps_of(texts).null_count == 0
        if self.times:
            self.dates = self.dates and _all(texts, _DATE)
            zoned = pc.sum(pc.match_substring_regex(texts, _ZONED)).as_py()
            self.zoned += zoned
            self.local += len(texts) - zoned

    def column(self, name: str, cells: bool) -> DataColumn:
        """The column. With `cells`, as in CSV, texts can be numbers and booleans."""
        if not self.count:
            return DataColumn(name, STRING, ("without a value",) if not self.marked else ())
        if cells and self.booleans:
            return DataColumn(name, BOOLEAN)
        if cells and self.numeric and not self.patterns:
            return DataColumn(name, *self.numbers.type())
        if self.times:
            if self.dates:
                return DataColumn(name, DATE)
            return DataColumn(name, TIMESTAMP, local=self.local > 0)
        if cells and self.commas and self.has_comma:
            cast = "try_cast" if self.has_blank else "cast"
            ways = {
                what: f"{cast}({way.format(written(name))} as decimal(18, 4))" for what, _, way in self.commas[::-1]
            }
            return DataColumn(name, STRING, (" or ".join(f"{what}: {way}" for what, way in sorted(ways.items())),))
        patterns = tuple(sorted(self.patterns))
        blank = ", and empty ones" if self.has_blank else ""
        notes = (f"times written as {' or '.join(patterns)}{blank}",) if patterns else ()
        return DataColumn(name, STRING, notes, () if blank else patterns)  # a pattern fails on an empty one


def _all(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _longest(texts: pa.Array) -> int:
    return int(pc.max(pc.utf8_length(texts)).as_py())
