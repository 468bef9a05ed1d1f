"""What to run, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vsc.plan.nodes import Plan
from vsc.runtime.operators.task import RunOptions

__all__ = ["Run"]


@dataclass(frozen=True, slots=True)
class Run:
    """The arguments of `vsc.runtime.spark.start`, and `drain`."""

    plan: Plan
    checkpoint: str
    variables: Mapping[str, str] = field(default_factory=dict)
    partitions: int | None = None
    trigger: str = "available-now"
    max_idle: str | None = None
    local_dir: str | None = None
    options: RunOptions = field(default_factory=RunOptions)
    back_to: int | None = None
    drain: bool = False
