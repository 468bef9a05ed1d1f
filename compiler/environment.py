"""The variables of the environment, whose values no finding shows.

They may be anything, also secrets of whoever checks other people's topologies; a value that ``--var`` gives was given
for this topology.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from vsc.compiler.diagnostics.model import Finding, Fix, Label

__all__ = ["Environment"]

_SHORT = 3
"""A value with fewer characters is found only in quotes: it may be part of any word."""


class Environment(Mapping[str, str]):
    """The environment of the process, which knows what was read from it."""

    def __init__(self) -> None:
        self._read: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        self._read[name] = value = os.environ[name]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)

    def hidden(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """The findings, with ``${NAME}`` in place of each value that was read."""
        if not findings or not any(self._read.values()):
            return findings
        return tuple(self._without(finding) for finding in findings)

    def _without(self, finding: Finding) -> Finding:
        labels = tuple(Label(label.span, self._text(label.message)) for label in finding.labels)
        help = None if finding.help is None else self._text(finding.help)
        fix = finding.fix
        if fix is not None:
            fix = Fix(fix.span, self._text(fix.new), None if fix.rival is None else self._text(fix.rival))
        return replace(finding, message=self._text(finding.message), labels=labels, help=help, fix=fix)

    def _text(self, text: str) -> str:
        for name, value in sorted(self._read.items(), key=lambda one: -len(one[1])):
            if not value:
                continue
            edges = (r"(?<!\w)", r"(?!\w)") if len(value) >= _SHORT else (r"(?<=[`'])", r"(?=[`'])")
            text = re.sub(f"{edges[0]}{re.escape(value)}{edges[1]}", lambda _, name=name: f"${{{name}}}", text)
        return text
