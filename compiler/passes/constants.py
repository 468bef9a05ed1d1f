"""What constants may be: expressions without columns, each checked once, whether it is used or not."""

from __future__ import annotations

from dataclasses import replace

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.expressions.infer import type_expression
from vsc.compiler.expressions.scope import CONSTANTS
from vsc.compiler.topology import Topology

__all__ = ["check_constants"]


def check_constants(topology: Topology) -> tuple[Finding, ...]:
    """What is wrong with the values of constants."""
    findings: list[Finding] = []
    scope = replace(CONSTANTS, doubt=findings.append, functions=topology.functions)
    for constant in topology.constants:
        if not isinstance(constant.value, syntax.CalendarLength):
            findings += type_expression(constant.value, scope).findings
    return tuple(findings)
