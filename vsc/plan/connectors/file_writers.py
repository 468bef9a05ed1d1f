"""Spark's options for the files that a sink writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vsc.plan.connectors.facts import VARIABLE, Problem, Scalar, Values, Wrong, written
from vsc.plan.connectors.java_texts import wrong_time_pattern
from vsc.plan.connectors.spark_values import wrong_count, wrong_flag

__all__ = ["writer_problems", "wrong_writer_option"]

_ANY = ("compression", "maxRecordsPerFile")
_TEXT = (
    *_ANY, "dateFormat", "timestampFormat", "timestampNTZFormat", "timeZone", "locale", "encoding", "charset",
    "lineSep",
)  # fmt: skip
_CSV = (
    "codec", "sep", "delimiter", "quote", "escape", "escapeQuotes", "quoteAll", "charToEscapeQuoteEscaping", "comment",
    "header", "nullValue", "emptyValue", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "extension",
)  # fmt: skip
_JSON = ("ignoreNullFields", "pretty", "writeNonAsciiCharacterAsCodePoint")
_KNOWN: Mapping[Scalar | None, tuple[str, ...]] = {
    "csv": (*_TEXT, *_CSV), "json": (*_TEXT, *_JSON), "parquet": _ANY, "orc": _ANY,
}  # fmt: skip
_FLAGS = (
    "escapequotes", "quoteall", "header", "ignoreleadingwhitespace", "ignoretrailingwhitespace", "ignorenullfields",
    "pretty", "writenonasciicharacterascodepoint",
)  # fmt: skip
_TEXT_CODECS = ("none", "uncompressed", "bzip2", "deflate", "gzip", "lz4", "snappy")
_CODECS: Mapping[Scalar | None, tuple[str, ...]] = {
    "csv": _TEXT_CODECS,
    "json": _TEXT_CODECS,
    "parquet": ("none", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd"),
    "orc": ("none", "uncompressed", "snappy", "zlib", "lzo", "brotli", "lz4", "zstd"),
}

_PATTERNS = ("dateformat", "timestampformat", "timestampntzformat")
_CHARSETS = ("UTF-8", "US-ASCII", "ISO-8859-1", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32")
_SINGLE = ("quote", "escape", "comment", "chartoescapequoteescaping")


def wrong_writer_option(name: str, options: Values) -> Wrong:
    """An option without an effect on what a files sink writes.

    Hadoop's options, and those of the format's own library, have a dot in their names, and are not looked at.
    """
    form = options.get("format")
    known = _KNOWN.get(form)
    if known is None or "." in name or name.lower() in map(str.lower, known):
        return None
    message = f"'{name}' has no effect on {_shown(form)} files that a sink writes"
    return message, f"remove it; the options with an effect are {', '.join(sorted(known, key=str.lower))}"


def writer_problems(options: Values, spark: Values) -> Iterator[Problem]:
    """Values with which a files sink would fail at its first epoch."""
    form = options.get("format")
    for name, value in spark.items() if form in _KNOWN else ():
        text = written(value)
        if not VARIABLE.search(text) and (problem := _value(form, name, text)) is not None:
            yield Problem(name, True, True, *problem)


def _value(form: Scalar | None, name: str, text: str) -> Wrong:
    """What is wrong with the value of a known option, with its help."""
    lower = name.lower()
    if lower in ("compression", "codec") and "." not in text and text.lower() not in _CODECS[form]:
        return f"'{name}' cannot be '{text}' for {_shown(form)}", f"use one of {', '.join(_CODECS[form])}"
    if lower in _FLAGS:
        return wrong_flag(name, text)
    if lower in _PATTERNS:
        return wrong_time_pattern(name, text, reads=False)
    if lower in ("encoding", "charset") and text.upper() not in _CHARSETS:
        return f"'{name}' cannot be '{text}'", f"use one of {', '.join(_CHARSETS)}"
    if lower == "maxrecordsperfile":
        return wrong_count(name, text, 1_000_000)
    if lower == "linesep" and not text:
        return f"'{name}' is empty", f"write the end of a line, or remove '{name}'"
    return _cell_value(name, text) if form == "csv" else None


def _cell_value(name: str, text: str) -> Wrong:
    """What is wrong with the value of an option for how CSV files are written."""
    lower = name.lower()
    if lower in ("sep", "delimiter") and text in ("", "\\"):
        return f"'{name}' cannot be '{text}'", f"write a character, such as `'{name}' = ';'`"
    if lower in _SINGLE and len(text) > 1:
        return f"'{name}' is a single character, not '{text}'", f"write one, or remove '{name}'"
    if lower == "linesep" and len(text) > 2:
        return (
            f"'{name}' is at most two characters for CSV, not '{text}'",
            f"remove '{name}': lines then end in a '\\n'",
        )
    if lower == "extension" and text and not text.isalpha():
        return f"'{name}' is made of letters, not '{text}'", "write one without a dot, such as 'csv'"
    return None


def _shown(form: Scalar | None) -> str:
    """A format, as people write it."""
    return "Parquet" if form == "parquet" else str(form).upper()
