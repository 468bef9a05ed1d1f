"""What a source and a sink of a run have in common."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import SparkSession

from vsc.plan.nodes import Node
from vsc.runtime.errors import VscRuntimeError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.base.servers import Servers
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint

__all__ = ["End"]


class End:
    """A statement with its options, of whose variables a run has resolved all. `place` is its name in messages, `node`
    the one that reads or is written."""

    is_identified: ClassVar[bool] = False
    """Whether its system tells what is read or written from another one of the same name."""
    identity: str | None = None
    """By what it tells, once `identify` has asked; None if it does not."""

    refusal: ClassVar[type[VscRuntimeError]]
    """What it is refused with."""

    def __init__(self, options: Options, node: Node) -> None:
        self.options, self.place, self.node = options, options.place, node

    @property
    def name(self) -> str:
        """Its name among the identities that a checkpoint keeps; for what is identified."""
        raise NotImplementedError

    def identify(self, spark: SparkSession, checkpoint: Checkpoint, known: str | None) -> None:
        """Asks for `identity`, and compares it with the `known` one of the checkpoint, on which the caller has the
        claim. VscRuntimeError if the run cannot go on with another one."""

    def path(self) -> str | None:
        """The path of the files: of a source, that or the pattern that it reads; of a sink, the folder that it writes
        to."""
        return None

    def catalogued(self, spark: SparkSession) -> str | None:
        """The folder of what a catalog knows by a name; None for all else."""
        return None

    def servers(self) -> tuple[Servers, ...]:
        """The systems that executors connect to, as far as the driver knows."""
        return ()
