"""What to do with bad data, and what an expression that fails on a record becomes."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal

from vsc.plan.parts import MODULE
from vsc.runtime.errors import ConfigurationError, ExpressionError
from vsc.runtime.records import Origin
from vsc.runtime.values import brief

__all__ = ["NodeFailure", "RunOptions", "expression_error", "module_names"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What to do with bad data.

    `on_bad_row`: whether a row that cannot be read, or has no key or no usable event time, is dropped and counted or
    stops the run. `on_error`: the same for an expression that fails on a record. `now`: a fixed time in ms for the
    run's clock, which decides when an event time is too far in the future; None: on Spark the machine's clock,
    otherwise no bound. `functions`: the modules from which the plan may call functions.
    """

    on_bad_row: Literal["drop", "fail"] = "drop"
    on_error: Literal["drop", "fail"] = "fail"
    now: int | None = None
    functions: tuple[str, ...] = ()


def module_names(given: object) -> tuple[str, ...]:
    """The modules that `functions` names. Raises ConfigurationError for anything but a list of names."""
    names = tuple(given) if isinstance(given, Sequence | Set) and not isinstance(given, str | bytes) else None
    if names is None or not all(isinstance(one, str) and MODULE.fullmatch(one) for one in names):
        help = "give a list of names, as in ['scoring.rules']"
        raise ConfigurationError(f"`functions` are the names of modules, not {brief(given)}", help)
    return names


class NodeFailure(Exception):
    """An expression of a node failed on the record being processed; caught by the operator that asked for the value."""

    def __init__(self, node: str, text: str, reason: str) -> None:
        super().__init__(node, text, reason)
        self.node, self.text, self.reason = node, text, reason

    @property
    def told(self) -> str:
        """A text that says what failed, and why."""
        return f"{self.text} failed: {self.reason}"


def expression_error(failure: NodeFailure, origin: Origin, offset: int) -> ExpressionError:
    """The error for an expression that failed on a record caused by the row at `offset` of `origin`."""
    where = f"record {offset} of {origin.part or 'its only partition'} of source '{origin.source}'"
    return ExpressionError(
        f"'{failure.node}': {failure.text} failed on {where}: {failure.reason}",
        "guard the expression (try_cast, try_divide, case), or run with --on-error drop",
    )
