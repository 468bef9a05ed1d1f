"""The whole compiler on one page: text, tree, topology, facts, plan.

Nothing here decides anything: each step is a function elsewhere that takes values and gives values and findings. A
plan exists exactly when no finding is an error.
"""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass

from vsc.compiler import syntax
from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.diagnostics.model import Diagnostic, Finding, TopologyError, locate
from vsc.compiler.parser import parse
from vsc.compiler.source import SourceFile
from vsc.plan.nodes import Plan

__all__ = ["Result", "check_topology", "compile_source", "compile_topology"]

_NO_VARIABLES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Result:
    """What compiling came to: every diagnostic, in the order of the places, and the plan if none is an error."""

    source: SourceFile
    diagnostics: tuple[Diagnostic, ...]
    plan: Plan | None


def compile_topology(text: str, path: str = "topology.vdsl", variables: Mapping[str, str] = _NO_VARIABLES) -> Plan:
    """The plan of a topology.

    `path` is what messages show; its stem names the topology if `text` does not. `variables` are the values for
    ``${name}``, before those of the environment. Raises `TopologyError`, which holds all findings.
    """
    result = compile_source(text, path, variables)
    if result.plan is None:
        raise TopologyError(result.diagnostics)
    return result.plan


def check_topology(
    text: str, path: str = "topology.vdsl", variables: Mapping[str, str] = _NO_VARIABLES
) -> tuple[Diagnostic, ...]:
    """All that there is to say about a topology, warnings too; see `compile_topology` for the arguments."""
    return compile_source(text, path, variables).diagnostics


def compile_source(text: str, path: str = "topology.vdsl", variables: Mapping[str, str] = _NO_VARIABLES) -> Result:
    """Everything that compiling a topology comes to; see `compile_topology` for the arguments."""
    source = SourceFile(path, text)
    parsed = parse(text, ChainMap(dict(variables), os.environ))
    findings = list(parsed.findings)
    plan = _middle(source, parsed.file, not findings, findings)
    found = tuple(_located(findings, source))
    return Result(source, found, None if any(d.severity == "error" for d in found) else plan)


def _middle(source: SourceFile, file: syntax.File, complete: bool, findings: list[Finding]) -> Plan | None:
    """From the tree to the plan; None if there is an error. `complete`: the whole text could be read."""
    return None


def _located(findings: list[Finding], source: SourceFile) -> list[Diagnostic]:
    """The findings as users see them: each once, in the order of the places."""
    unique = sorted(set(findings), key=lambda finding: (finding.span, finding.code, finding.message))
    return [locate(finding, CODES[finding.code].severity, source) for finding in unique]
