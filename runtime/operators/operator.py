"""What a stage knows of an operator, and where it finds the one of an operation.

Each operation of the plan has an operator of its name: the module or folder ``vsc.runtime.operators.NAME``, whose
`OPERATOR` says how it is built for a node, how the node's table is looked into where it has no store, and what it keeps
beside that store. Nothing else in the runtime lists the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from vsc.plan.nodes import Operation
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.operators.tables.lookups import Lookup
from vsc.runtime.operators.views.view import Beside

if TYPE_CHECKING:
    from vsc.runtime.operators.site import Site

__all__ = ["Operator", "Step", "operator_of"]


class Step:
    """An operator at work on one batch, at one node."""

    __slots__ = ()

    def fed(self, feeding: Sequence[Flow | None]) -> Flow:
        """What the node gives for the records that reach its inputs: a flow for each input, None where none do."""
        (flow,) = (flow for flow in feeding if flow is not None)
        return self.process(flow)

    def process(self, flow: Flow) -> Flow:
        """What the records of its only input give."""
        raise NotImplementedError

    def commit(self) -> None:
        """Writes what has changed, as far as that has not been done."""

    def waiting(self) -> list[tuple[int, Any]]:
        """Takes out all that waits, in the order in which it would come out: when, ascending, and what it is."""
        raise NotImplementedError

    def release(self, waiting: list[tuple[int, Any]], at: Moments) -> Flow:
        """Lets it out, each at its moment."""
        raise NotImplementedError


def _not_stored(site: Site, operation: Any, as_of: bool) -> Lookup:
    raise ValueError(f"table '{site.node.name}' has no store to look into")


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: functions of a site and the operation of its node.

    `build` makes its step. `look_up` makes the look-up into a table without a store: of the row valid at a record's
    time, or of the newest. `beside`: what it keeps that is not the node's table.
    """

    build: Callable[[Site, Any], Step]
    look_up: Callable[[Site, Any, bool], Lookup] = _not_stored
    beside: Beside | None = None


@cache
def _named(name: str) -> Operator:
    found: Operator = import_module(f"vsc.runtime.operators.{name}").OPERATOR
    return found


def operator_of(operation: Operation) -> Operator:
    """The operator of an operation."""
    return _named(operation.op)
