"""A connector that the language knows and this version cannot run."""

from __future__ import annotations

from vsc.plan.nodes import Node
from vsc.runtime.errors import SinkError, SourceError
from vsc.runtime.spark.connectors.connector import Connector
from vsc.runtime.spark.options import Options

__all__ = ["Later"]


class Later(Connector):
    """Refuses both ways."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Refuses it."""
        what = f"{options.place} reads from {self.kind}, which this version of vsc cannot run yet"
        raise SourceError(what, "read from files for now")

    def check_sink(self, options: Options) -> None:
        """Refuses it."""
        what = f"{options.place} writes to {self.kind}, which this version of vsc cannot run yet"
        raise SinkError(what, "write to files for now")
