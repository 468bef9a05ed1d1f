"""The plan: the only, typed interface between the compiler and the runtime. Standard library only.

The compiler makes a `Plan`, the runtime runs it; neither imports the other. `dump` writes its JSON and `load` reads it;
the same topology gives the same JSON, byte for byte.

`Column` here is a schema's column. For an expression's `Column` or `Literal`, import `vsc.plan.expressions`.
"""

from typing import TYPE_CHECKING, Any

from vsc.plan import operations, parts
from vsc.plan.expressions import Call, Cast, Expr
from vsc.plan.nodes import EXPIRING, FORMAT_VERSION, Clock, HandOver, Node, Plan, Sink, Stage, StageInput
from vsc.plan.operations import *  # noqa: F403
from vsc.plan.parts import *  # noqa: F403
from vsc.plan.types import DataType, parse_type

if TYPE_CHECKING:
    from vsc.plan.codec import PlanError, dump, load

__all__ = [
    "EXPIRING", "FORMAT_VERSION", "Call", "Cast", "Clock", "DataType", "Expr", "HandOver", "Node", "Plan", "PlanError",
    "Sink", "Stage", "StageInput", "dump", "load", "parse_type",
]  # fmt: skip
__all__ += operations.__all__
__all__ += parts.__all__


def __getattr__(name: str) -> Any:
    """Loads the codec on first use: `vsc check` has no plan to write."""
    if name in ("PlanError", "dump", "load"):
        from vsc.plan import codec

        return getattr(codec, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
