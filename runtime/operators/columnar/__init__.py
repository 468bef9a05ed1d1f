"""Stages on whole columns; see `stage`."""

from vsc.runtime.operators.columnar.stage import ColumnarStage
from vsc.runtime.operators.columnar.support import supports

__all__ = ["ColumnarStage", "supports"]
