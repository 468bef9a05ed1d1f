"""What stream time is in a topology, and when it goes on: the options of the statement that names it."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.options import CLAUSE, read_options, too_long
from vsc.compiler.topology import Topology
from vsc.plan import Clock
from vsc.plan.connectors.facts import OptionSpec

__all__ = ["DEFAULT_CLOCK", "TOPOLOGY_OPTIONS", "check_clock", "check_quiet"]

DEFAULT_CLOCK: Clock = "input"
"""What stream time is if a topology does not say it."""
_CLOCKS: dict[str, Clock] = {"input": "input", "records": "records"}
TOPOLOGY_OPTIONS = {
    "clock": OptionSpec("string", "'records'", tuple(_CLOCKS)), "quiet": OptionSpec("duration", "5 minutes"),
}  # fmt: skip


def check_clock(topology: Topology) -> tuple[Clock | None, tuple[Finding, ...]]:
    """The clock, None if the topology does not say it; and what is wrong with the options of `topology`."""
    options, wrong = read_options(topology.options, TOPOLOGY_OPTIONS, "`topology`", CLAUSE)
    value = options["clock"].value if "clock" in options else None
    text = value.value if isinstance(value, syntax.Literal) else None
    return _CLOCKS.get(str(text)), tuple(wrong)


def check_quiet(topology: Topology, clock: Clock) -> tuple[int | None, tuple[Finding, ...]]:
    """After how many ms without input a source's clock goes on, None if it does not; and what is wrong with that."""
    option = next((one for one in topology.options if one.name.text == "quiet" and not one.quoted), None)
    if option is None or not isinstance(option.value, syntax.Duration):
        return None, ()
    if (wrong := too_long(option.value, "VSC125")) is not None:
        return None, (wrong,)
    if option.value.milliseconds < 1:
        message = "a source that has just brought a row would be quiet at once"
        help = "write how long a source brings nothing before its clock goes on without it: `quiet = 5 minutes`"
        return None, (Finding("VSC125", option.value.span, message, (), help),)
    if clock == "records":
        message = "`quiet` needs the clock of the input: with the clock of records, only records move it"
        form = code(f"topology {named(topology.name)} (quiet = ...);")
        help = f"remove `quiet`, or use the clock of the input: {form}"
        return None, (Finding("VSC407", option.span, message, (), help),)
    return option.value.milliseconds, ()
