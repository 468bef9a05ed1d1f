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
    """The variables that are `given`, then those of the process; it knows which of these were read."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        self._read: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name in self._given:
            return self._given[name]
        self._read[name] = value = os.environ[name]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter({**os.environ, **self._given})

    def __len__(self) -> int:
        return len({**os.environ, **self._given})

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
            text = f"${{{name}}}".join(re.split(f"{edges[0]}{re.escape(value)}{edges[1]}", text))
        return text
