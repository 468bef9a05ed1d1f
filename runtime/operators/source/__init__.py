"""Stage 0, which processes the rows of a source before any shuffle; and a source table in the stages that keep it."""

from __future__ import annotations

from vsc.runtime.operators.operator import Operator
from vsc.runtime.operators.table import TableStep

__all__ = ["OPERATOR"]

OPERATOR = Operator(lambda site, operation: TableStep(site))
