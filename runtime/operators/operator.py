"""The interface of an operator to its stage, and how to find the operator of an operation.

Each operation of the plan has an operator of the same name: the module or folder ``vsc.runtime.operators.NAME``. Its
`OPERATOR` says how it is built for a node, how to look into the node's table if that has no store, and what it keeps
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
from vsc.runtime.operators.views.view import SideStore
from vsc.runtime.state.kv import OrderedKV

if TYPE_CHECKING:
    from vsc.runtime.operators.site import Site

__all__ = ["Operator", "Step", "operator_of"]


class Step:
    """An operator at work on one batch, at one node."""

    __slots__ = ()

    def fed(self, feeding: Sequence[Flow | None]) -> Flow:
        """The node's results for the records that reach its inputs: a flow per input, None if no records reach it."""
        (flow,) = (flow for flow in feeding if flow is not None)
        return self.process(flow)

    def process(self, flow: Flow) -> Flow:
        """The results for the records of its only input."""
        raise NotImplementedError

    def commit(self) -> None:
        """Writes all changes that are not written yet."""

    def closing(self, most: int) -> Flow:
        """The first `most` of the windows that time closes: see `operators.closing`."""
        raise NotImplementedError

    def waiting(self) -> list[tuple[int, Any]]:
        """Takes out everything held, in the order in which it would come out: when, ascending, and what."""
        raise NotImplementedError

    def release(self, waiting: list[tuple[int, Any]], at: Moments) -> Flow:
        """Emits what `waiting` took out, each at its moment."""
        raise NotImplementedError


def _not_stored(site: Site, operation: Any, as_of: bool) -> Lookup:
    raise ValueError(f"table '{site.node.name}' has no store to look into")


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: functions of a site and the operation of its node.

    `build` makes its step. `look_up` makes the look-up into a table without a store: for the row valid at a record's
    time, or the newest. `side_store`: what it keeps besides the node's table. `left`: how many records still wait under
    a prefix although the operation lets none wait any longer; they come out at once.
    """

    build: Callable[[Site, Any], Step]
    look_up: Callable[[Site, Any, bool], Lookup] = _not_stored
    side_store: SideStore | None = None
    left: Callable[[OrderedKV, bytes], int] | None = None


@cache
def _named(name: str) -> Operator:
    found: Operator = import_module(f"vsc.runtime.operators.{name}").OPERATOR
    return found


def operator_of(operation: Operation) -> Operator:
    """The operator of an operation."""
    return _named(operation.op)
