"""A stage as Spark's stateful processor: it names the state variables and runs the stage's task.

When a query starts, Spark runs a new Python process on the driver for each stage, only to call `init`, and the first
epoch waits for it. So this module imports nothing that only tasks need, and carries the task pickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from vsc.runtime.spark.session.loaded import keep_loaded

if TYPE_CHECKING:
    import pandas as pd

    from vsc.runtime.spark.stages.later_stage import LaterStageTask

__all__ = ["LaterStageProcessor"]


class LaterStageProcessor(StatefulProcessor):
    """Runs `task`; the grouping key is a slot, that is, a vsc partition."""

    def __init__(self, task: LaterStageTask) -> None:
        self._task = pickle.dumps(task)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Names the state variables."""
        self._manifest = handle.getValueState("manifest", "text string")
        self._blobs = handle.getMapState("blobs", "name string, chunk int", "data binary")

    def handleInputRows(  # type: ignore[override]  # of the two kinds of rows, we are given pandas frames
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """One epoch of one partition."""
        task: LaterStageTask = pickle.loads(self._task)
        return task.run(int(key[0]), rows, self._manifest, self._blobs)

    def close(self) -> None:
        """The task is done; nothing is held between calls."""
        keep_loaded()
