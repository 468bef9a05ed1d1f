"""What stream time is in a topology: the options of the statement that names it."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.passes.options import CLAUSE, read_options
from vsc.compiler.topology import Topology
from vsc.plan import Clock
from vsc.plan.connectors.facts import OptionSpec

__all__ = ["DEFAULT_CLOCK", "TOPOLOGY_OPTIONS", "check_clock"]

DEFAULT_CLOCK: Clock = "input"
"""What stream time is if a topology does not say it."""
_CLOCKS: dict[str, Clock] = {"input": "input", "records": "records"}
TOPOLOGY_OPTIONS = {"clock": OptionSpec("string", "'records'", tuple(_CLOCKS))}


def check_clock(topology: Topology) -> tuple[Clock | None, tuple[Finding, ...]]:
    """The clock, None if the topology does not say it; and what is wrong with the options of `topology`."""
    options, wrong = read_options(topology.options, TOPOLOGY_OPTIONS, "`topology`", CLAUSE)
    value = options["clock"].value if "clock" in options else None
    text = value.value if isinstance(value, syntax.Literal) else None
    return _CLOCKS.get(str(text)), tuple(wrong)
