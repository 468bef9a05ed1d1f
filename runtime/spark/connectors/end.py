"""What a source and a sink of a run have in common."""

from __future__ import annotations

from pyspark.sql import SparkSession

from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.base.servers import Servers
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint

__all__ = ["End"]


class End:
    """A statement with its options, of whose variables a run has resolved all. `place` is its name in messages."""

    identity: str | None = None
    """What its system calls by it what is read or written, once `identify` has asked: another one has another identity,
    also under the same name. None: it has none."""

    def __init__(self, options: Options) -> None:
        self.options, self.place = options, options.place

    @property
    def name(self) -> str:
        """Its name among the identities that a checkpoint keeps."""
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
