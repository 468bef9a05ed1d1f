"""`materialize`: a table as it is, with a store of its own."""

from __future__ import annotations

from vsc.runtime.operators.operator import Operator
from vsc.runtime.operators.table import TableStep

__all__ = ["OPERATOR"]

OPERATOR = Operator(lambda site, operation: TableStep(site))
