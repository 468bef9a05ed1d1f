"""The engine for whole columns: the stages that it supports, with the results of the record-by-record engine.

Use: ``if supports(plan, stage): ColumnarStage(plan, stage.id, kv, options, observe).process(inputs)``; `NotColumnar`
means that nothing was written and that the batch is one for the other engine.
"""

from vsc.runtime.operators.columnar.flow import NotColumnar
from vsc.runtime.operators.columnar.stage import ColumnarStage
from vsc.runtime.operators.columnar.support import supports

__all__ = ["ColumnarStage", "NotColumnar", "supports"]
