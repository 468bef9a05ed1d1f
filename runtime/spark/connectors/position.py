"""Where the source of a new checkpoint begins: positions that a user gives, and Spark's own notes of them.

What Spark keeps under ``sources/N`` of a checkpoint says where source N begins (0 is the control source, then the
sources in the order of the plan; the same in Spark 4.1 to 4.3). For files it is a log of those that have been handed
out: the first entry of a new log has them all, each with the number of a batch that there is not, `KNOWN`, so that
Spark takes note of the files and does not read them again. Where nothing is written, a source begins at its beginning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vsc.plan.nodes import Node
from vsc.runtime.errors import PositionError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.spark_logs import KNOWN

__all__ = ["BEGINNING", "NOW", "SeenFiles", "SourceNotes", "refused_position"]

BEGINNING, NOW = "beginning", "now"
SeenFiles = Callable[[], Iterable[tuple[str, int]]]
"""Files that count as read: the URL of each, and when it was changed, in ms."""


@dataclass(frozen=True, slots=True)
class SourceNotes:
    """Spark's notes of source `number` in a new checkpoint."""

    files: Files
    number: int

    def write_known(self, seen: SeenFiles) -> None:
        """That these files have been read."""
        lines = (
            json.dumps({"path": path, "timestamp": time, "batchId": KNOWN}, separators=(",", ":"))
            for path, time in seen()
        )
        self.write("0", "\n".join(["v1", *lines]))

    def write(self, name: str, text: str) -> None:
        """One note, by its name."""
        self.files.write(f"sources/{self.number}/{name}", text)


def refused_position(node: Node, problem: str, help: str) -> PositionError:
    """The error for a position that a source cannot have."""
    return PositionError(f"source {node.name} (line {node.line}): {problem}", help)
