"""`to_stream`: a table's changes as records; a tombstone becomes a record without value."""

from __future__ import annotations

from dataclasses import replace

from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.operator import Operator, Step

__all__ = ["OPERATOR"]


class _ToStream(Step):
    def process(self, flow: Flow) -> Flow:
        return replace(flow, old=None, latest=None)


OPERATOR = Operator(lambda site, operation: _ToStream())
