"""What Spark's plan and its web interface call the parts of a topology: its stages, with their nodes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from vsc.plan.nodes import Plan
from vsc.plan.words import cut
from vsc.runtime.spark.base.releases import minor_release

__all__ = ["stage_name", "stateful_called"]

_naming = threading.Lock()


def stage_name(plan: Plan, stage: int) -> str:
    """A stage with the nodes that it runs, as the user calls them: ``stage 1: priced, totals``."""
    (nodes,) = (one.nodes for one in plan.stages if one.id == stage)
    return cut(f"stage {stage}: {', '.join(dict.fromkeys(plan.node(name).owner for name in nodes))}")


@contextmanager
def stateful_called(name: str) -> Iterator[None]:
    """Meanwhile, stateful operators get this name: Spark shows that of a function of PySpark, which takes no other.

    With Spark 4.0, which makes that function again for each operator, they keep its name.
    """
    if minor_release() == "4.0":
        yield
        return
    from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasUdfUtils

    function = TransformWithStateInPandasUdfUtils.transformWithStateUDF
    with _naming:
        before = function.__name__
        function.__name__ = name
        try:
            yield
        finally:
            function.__name__ = before
