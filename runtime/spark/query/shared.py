"""The local paths of a run that its driver and all executors have to share."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from vsc.runtime.errors import CheckpointError, SinkError, SourceError
from vsc.runtime.spark.base.disks import CHECKPOINT
from vsc.runtime.spark.base.paths import is_local, local_path
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.query.written_folders import results_of
from vsc.runtime.spark.session.findings import Shared
from vsc.runtime.spark.session.session import is_here

__all__ = ["shared_by"]


def shared_by(spark: SparkSession, ends: Ends, checkpoint: str | None, default_local: bool) -> tuple[Shared, ...]:
    """The shared folders of a run. `default_local`: paths without a scheme are local.

    The tables that it names have to be there.
    """
    if is_here(spark.sparkContext.master):
        return ()
    found = []
    for source in ends.sources:
        path = source.path() or source.catalogued(spark)
        if path is not None:
            found.append(Shared(f"the source '{source.node.name}'", path, SourceError, read=True))
    for place in results_of(ends, checkpoint):
        found.append(Shared(place.what, place.path, CheckpointError if place.what == CHECKPOINT else SinkError))
    for sink in ends.sinks:
        path = sink.catalogued(spark)
        if path is not None:
            found.append(Shared(f"the sink of '{sink.sink.owner}'", path, SinkError))
    local = (one for one in found if is_local(one.path, default_local))
    # Relative paths are relative to the driver's working directory: executors get them whole.
    return tuple(Shared(one.what, os.path.abspath(local_path(one.path)), one.error, one.read) for one in local)
