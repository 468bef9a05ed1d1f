"""Memory: the test driver fills and reads it, a run cannot."""

from __future__ import annotations

from vsc.plan.nodes import Node
from vsc.runtime.errors import SinkError, SourceError
from vsc.runtime.spark.connectors.connector import Connector
from vsc.runtime.spark.options import Options

__all__ = ["Memory"]


class Memory(Connector):
    """Refuses both ways."""

    kind = "memory"

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Refuses it."""
        raise SourceError(
            f"{options.place} reads from memory (), which only the test driver can fill",
            "give it another connector, files for example, or run it with vsc.testing.TopologyTestDriver",
        )

    def check_sink(self, options: Options) -> None:
        """Refuses it."""
        raise SinkError(
            f"{options.place} writes to memory (), which only the test driver can read",
            "give it another connector, console for example",
        )
