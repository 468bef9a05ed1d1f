"""`materialize`: an unchanged table, with its own store."""

from __future__ import annotations

from vsc.runtime.operators.operator import Operator
from vsc.runtime.operators.table import TableStep

__all__ = ["OPERATOR"]

OPERATOR = Operator(lambda site, operation: TableStep(site))
