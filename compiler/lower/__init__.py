"""Lowering: from a checked topology to the plan. It cannot fail; if it does, a pass is missing."""

from vsc.compiler.lower import logical, physical
from vsc.compiler.lower.handing import completed
from vsc.compiler.passes.check import CheckedTopology
from vsc.compiler.passes.clock import DEFAULT_CLOCK
from vsc.plan import Plan

__all__ = ["lower"]


def lower(checked: CheckedTopology) -> Plan:
    """The plan of a topology: the same for the same text, whatever the hash seed."""
    nodes, sinks = logical.nodes(checked), logical.sinks(checked)
    nodes, stages = completed((*nodes, *logical.dead_letters(checked)), physical.stages(nodes), sinks)
    functions = logical.functions(checked, nodes)
    clock = checked.clock or DEFAULT_CLOCK
    # Before there were clocks, all went by records; but a join was not corrected.
    corrects = any(node.operation.watches for node in nodes)
    implied = checked.clock is None and clock == "input" and not corrects
    return Plan(
        checked.topology.name, nodes, sinks, stages, checked.connectors.variables, clock, implied, functions,
        checked.quiet,
    )  # fmt: skip
