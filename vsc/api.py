"""The Python API: `compile` and `start`, which ``vsc`` re-exports.

Both take a topology as a path or as text. For tests use `vsc.testing`; for a single part of vsc, that part.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from vsc.compiler import TopologyError, compile_topology
from vsc.compiler.files import holds_plan, source_file
from vsc.notebook import show_in_ipython
from vsc.plan import Plan, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from vsc.runtime.spark import Hook, RunningQuery
    from vsc.runtime.spark.base.job import Time

__all__ = ["Topology", "compile", "start"]

Topology = str | os.PathLike[str] | Plan
"""A path, the text of a topology, or its plan."""

show_in_ipython()  # plans display themselves in a notebook


def compile(topology: Topology, variables: Mapping[str, str] | None = None) -> Plan:
    """Compiles a topology to its plan.

    `topology` is a path, or the text itself. A string with a line break or a ``;`` is text; any other string is a path
    if it ends in ``.vdsl`` or ``.json`` or names a file, and text otherwise. A file or text that holds a plan, as
    ``vsc compile`` writes it, is loaded; a `Plan` is returned unchanged. `variables` are the values for ``${name}``;
    they take precedence over the environment.

    Raises `TopologyError`, whose ``diagnostics`` are all findings; OSError for a file that cannot be read;
    `vsc.plan.PlanError` for a plan that this vsc cannot run; ValueError or TypeError for arguments of the wrong type.
    """
    if isinstance(topology, Plan):
        return topology
    source = source_file(topology)
    if holds_plan(source.path, source.text):
        return load(source.text)
    try:
        return compile_topology(source.text, source.path, {} if variables is None else variables)
    except TopologyError as error:
        if isinstance(topology, str) and source.text is topology and "\n" not in topology and ";" not in topology:
            error.add_note(f"{topology[:100]!r} names no file, so it was taken for the text of a topology")
        raise


def start(
    topology: Topology,
    spark: SparkSession | None = None,
    *,
    checkpoint: str | os.PathLike[str],
    variables: Mapping[str, str] | None = None,
    partitions: int | None = None,
    trigger: str = "available-now",
    max_idle: str | None = None,
    local_dir: str | os.PathLike[str] | None = None,
    on_bad_row: Literal["drop", "fail"] = "drop",
    on_error: Literal["drop", "fail"] = "fail",
    on_epoch: Hook | None = None,
    back_to: int | None = None,
    max_bad: str | None = None,
    now: Time | None = None,
    functions: Sequence[str] = (),
    lineage: str | os.PathLike[str] | None = None,
) -> RunningQuery:
    """Starts a topology on a Spark session and returns the running query, a pyspark ``StreamingQuery``.

    `topology` is whatever `compile` takes. If `spark` is None, the active session is used. The other arguments are
    those of `vsc.runtime.spark.start`. Raises what these two raise, and `vsc.extras.MissingExtra` if pyspark is
    missing.
    """
    from vsc.runtime.spark import start

    return start(
        compile(topology, variables),
        spark,
        checkpoint=checkpoint,
        variables=variables,
        partitions=partitions,
        trigger=trigger,
        max_idle=max_idle,
        local_dir=local_dir,
        on_bad_row=on_bad_row,
        on_error=on_error,
        on_epoch=on_epoch,
        back_to=back_to,
        max_bad=max_bad,
        now=now,
        functions=functions,
        lineage=lineage,
    )
