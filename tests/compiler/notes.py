"""How tests write a finding beside its line: ``--! VSC101 [text]``, its code and the text that its span covers."""

from __future__ import annotations

import re

from vsc.compiler.source import SourceFile, Span

Finding = tuple[int, str, str]
"""The line where it begins, its code, and the text that it covers, on one line."""

_NOTE = re.compile(r" *--! (VSC\d{3}) \[(.*?)\](?= *(?:--!|$))", re.MULTILINE)


def noted(text: str) -> tuple[str, list[Finding]]:
    """The text without its notes, and the findings that they say, in order."""
    lines = enumerate(text.split("\n"), start=1)
    return _NOTE.sub("", text), sorted(
        (number, note[1], note[2]) for number, line in lines for note in _NOTE.finditer(line)
    )


def finding(source: SourceFile, code: str, span: Span) -> Finding:
    """A finding in the form of notes."""
    return source.position(span.start).line, code, " ".join(source.slice(span).split())
