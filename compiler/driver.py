"""The whole compiler on one page: text, tree, topology, facts, plan.

No step is defined here: each is a function elsewhere that takes values and returns values and findings. A plan exists
exactly when no finding is an error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from vsc.compiler import syntax
from vsc.compiler.allowances import allowed
from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.diagnostics.model import Diagnostic, Finding, TopologyError, locate
from vsc.compiler.environment import Environment
from vsc.compiler.includes import Includes
from vsc.compiler.parser import parse
from vsc.compiler.passes.check import CheckedTopology, check, survey
from vsc.compiler.passes.survey import Survey
from vsc.compiler.resolve import resolve
from vsc.compiler.source import SourceFile
from vsc.compiler.topology import Topology
from vsc.plan.nodes import Plan
from vsc.plan.record import record

__all__ = [
    "Result",
    "Surveyed",
    "check_source",
    "check_topology",
    "compile_source",
    "compile_topology",
    "included_files",
    "survey_topology",
]

_NO_VARIABLES: Mapping[str, str] = {}
_UNNAMED = "topology"


@record
class Result:
    """The outcome of compiling: all diagnostics in the order of their places, and the plan if none is an error."""

    source: SourceFile
    diagnostics: tuple[Diagnostic, ...]
    plan: Plan | None


@record
class Surveyed:
    """Everything known about a text, valid or not; the findings are in the order of their places."""

    source: SourceFile
    file: syntax.File
    survey: Survey
    findings: tuple[Finding, ...]


def compile_topology(text: str, path: str = "topology.vdsl", variables: Mapping[str, str] = _NO_VARIABLES) -> Plan:
    """The plan of a topology.

    `path` is what messages show; its stem names the topology if `text` does not. `variables` are the values for
    ``${name}``, before those of the environment. Raises `TopologyError`, which holds all findings, and TypeError for
    variables that are not text.
    """
    result = compile_source(text, path, variables)
    if result.plan is None:
        raise TopologyError(result.diagnostics, result.source)
    return result.plan


def check_topology(
    text: str, path: str = "topology.vdsl", variables: Mapping[str, str] = _NO_VARIABLES
) -> tuple[Diagnostic, ...]:
    """All diagnostics of a topology, warnings too; see `compile_topology` for the arguments."""
    return check_source(text, path, variables)[1]


def check_source(
    text: str, path: str = "topology.vdsl", variables: Mapping[str, str] = _NO_VARIABLES
) -> tuple[SourceFile, tuple[Diagnostic, ...]]:
    """As `check_topology`, with the topology and the files that it includes."""
    source, _, findings = _check(SourceFile(path, text), variables)
    return source, _located(findings, source)


def included_files(text: str, path: str) -> tuple[str, ...]:
    """The paths of the files that a topology includes, as far as they can be read."""
    source, *_ = _resolved(SourceFile(path, text), Environment(_NO_VARIABLES))
    return tuple(part.path for part in source.included)


def compile_source(text: str, path: str = "topology.vdsl", variables: Mapping[str, str] = _NO_VARIABLES) -> Result:
    """The outcome of compiling a topology; see `compile_topology` for the arguments."""
    source, checked, findings = _check(SourceFile(path, text), variables)
    plan = None
    if checked is not None:
        from vsc.compiler.lower import lower  # `vsc check` does without

        plan = lower(checked)
    return Result(source, _located(findings, source), plan)


def survey_topology(text: str, path: str = "topology.vdsl", variables: Mapping[str, str] = _NO_VARIABLES) -> Surveyed:
    """The facts of a topology that may be half written, for editors; see `compile_topology`."""
    environment = Environment(_texts(variables))
    source, file, topology, before = _resolved(SourceFile(path, text), environment)
    found, of_passes = survey(source, topology)
    return Surveyed(source, file, found, _unique(environment.hidden(allowed((*before, *of_passes), source))))


def _check(
    given: SourceFile, variables: Mapping[str, str]
) -> tuple[SourceFile, CheckedTopology | None, tuple[Finding, ...]]:
    """The topology with the files that it includes, checked (None if there is an error), and all findings."""
    environment = Environment(_texts(variables))
    source, _, topology, before = _resolved(given, environment)
    checked, findings = check(source, topology, before)
    return source, checked, environment.hidden(allowed(findings, source))


def _resolved(
    given: SourceFile, environment: Environment
) -> tuple[SourceFile, syntax.File, Topology, tuple[Finding, ...]]:
    includes = Includes(given)
    parsed = parse(given.text, environment, includes)
    stem = os.path.splitext(os.path.basename(given.path))[0]
    stem = _UNNAMED if stem.startswith("<") else stem  # standard input
    topology, misnamed = resolve(parsed.file, stem, complete=not parsed.findings)
    return includes.source, parsed.file, topology, (*parsed.findings, *misnamed)


def _texts(variables: object) -> dict[str, str]:
    if not isinstance(variables, Mapping):
        raise TypeError(f"variables are a mapping of names to texts, not {type(variables).__name__}")
    for name, value in variables.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"the value of a variable is a text: {name!r} has {value!r}")
    return dict(variables)


def _located(findings: tuple[Finding, ...], source: SourceFile) -> tuple[Diagnostic, ...]:
    """The findings as users see them: each once, in the order of their places."""
    return tuple(locate(finding, CODES[finding.code].severity, source) for finding in _unique(findings))


def _unique(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(sorted(set(findings), key=lambda finding: (finding.span, finding.code, finding.message)))
