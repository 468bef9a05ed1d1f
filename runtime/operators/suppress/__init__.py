"""`suppress` (KIP-328): holds the changes of a table back, so only the last of several comes out.

A look-up into a `suppress` without its own store continues in its input, as if the held changes had not happened yet.
"""

from __future__ import annotations

from vsc.plan.nodes import Suppress
from vsc.runtime.operators.operator import Operator
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.suppress.held import HELD, behind_held
from vsc.runtime.operators.suppress.step import Holding
from vsc.runtime.operators.tables.lookups import Lookup

__all__ = ["OPERATOR"]


def _look_up(site: Site, operation: Suppress, as_of: bool) -> Lookup:
    step = site.batch.step(site.node.name)
    assert isinstance(step, Holding)
    return behind_held(site.look_up(site.node.inputs[0]), step.hidden)


OPERATOR = Operator(Holding, _look_up, HELD)
