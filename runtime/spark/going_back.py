"""Going back to the state after an older epoch: what came later is forgotten, in the checkpoint and in the sinks.

Guarantees: nothing is changed before it is known that the state is kept; a crash in the middle does no harm, as the
checkpoint says first where it goes, and the next run finishes it before it does anything else.
"""

from __future__ import annotations

from collections.abc import Sequence

from vsc.runtime.spark.checkpoint import Checkpoint
from vsc.runtime.spark.connectors.connector import EpochSink
from vsc.runtime.spark.spark_logs import SparkLogs

__all__ = ["go_back"]


def go_back(opened: Checkpoint, sinks: Sequence[EpochSink], epoch: int | None) -> None:
    """Goes back to the state after `epoch`, or to where a run that has ended was going; None and nowhere: does nothing.

    CheckpointError if that state is not kept. Whoever calls this has claimed the checkpoint.
    """
    targets = [target for target in (epoch, opened.going_back()) if target is not None]
    if not targets:
        return
    target = min(targets)
    logs = SparkLogs(opened.files)
    logs.check_kept(target)
    opened.set_going_back(target)
    logs.forget_after(target)
    opened.forget_after(target)
    for sink in sinks:
        sink.back_to(target)
    opened.set_going_back(None)
