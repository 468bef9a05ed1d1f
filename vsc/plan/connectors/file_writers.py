"""Spark's options for the files that a sink writes, in lower case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vsc.plan.connectors.facts import VARIABLE, Problem, Scalar, Values, Wrong, written

__all__ = ["writer_problems", "wrong_writer_option"]

_ANY = ("compression", "maxrecordsperfile")
_TEXT = (
    *_ANY, "codec", "dateformat", "timestampformat", "timestampntzformat", "timezone", "locale", "encoding", "charset",
    "linesep",
)  # fmt: skip
_CSV = (
    "sep", "delimiter", "quote", "escape", "escapequotes", "quoteall", "chartoescapequoteescaping", "header",
    "nullvalue", "emptyvalue", "ignoreleadingwhitespace", "ignoretrailingwhitespace", "extension",
)  # fmt: skip
_KNOWN: Mapping[Scalar | None, tuple[str, ...]] = {
    "csv": (*_TEXT, *_CSV), "json": (*_TEXT, "ignorenullfields", "pretty"), "parquet": _ANY, "orc": _ANY,
}  # fmt: skip
_FLAGS = (
    "escapequotes", "quoteall", "header", "ignoreleadingwhitespace", "ignoretrailingwhitespace", "ignorenullfields",
    "pretty",
)  # fmt: skip
_TEXT_CODECS = ("none", "uncompressed", "bzip2", "deflate", "gzip", "lz4", "snappy")
_CODECS: Mapping[Scalar | None, tuple[str, ...]] = {
    "csv": _TEXT_CODECS,
    "json": _TEXT_CODECS,
    "parquet": ("none", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd"),
    "orc": ("none", "uncompressed", "snappy", "zlib", "lzo", "brotli", "lz4", "zstd"),
}


def wrong_writer_option(name: str, options: Values) -> Wrong:
    """An option without an effect on what a files sink writes.

    Hadoop's options, and those of the format's own library, have a dot in their names, and are not looked at.
    """
    form = options.get("format")
    known = _KNOWN.get(form)
    if known is None or "." in name or name.lower() in known:
        return None
    message = f"'{name}' has no effect on {str(form).upper()} files that a sink writes"
    return message, f"remove it; those that have are {', '.join(sorted(known))}"


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
        return f"'{name}' cannot be '{text}' for {str(form).upper()}", f"use one of {', '.join(_CODECS[form])}"
    if lower in _FLAGS and text.lower() not in ("true", "false"):
        return f"'{name}' is true or false, not '{text}'", "write 'true' or 'false'"
    if lower == "maxrecordsperfile" and not (text.isdecimal() and int(text) > 0):
        return f"'{name}' is a whole number of at least 1, not '{text}'", "write one, such as '1000000'"
    return None
