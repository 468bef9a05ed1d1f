"""Files of rows, read as the source of a query reads them, but without Spark: for tests of topologies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vsc.plan.nodes import Node
from vsc.runtime.errors import SourceError
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.spark.connectors.files import one_file
from vsc.runtime.spark.connectors.kafka import dump

__all__ = ["read_file"]

_READERS: Mapping[str, Callable[[Node, Mapping[str, str], str, int | None], SourceRows]] = {
    "files": one_file.read,
    "kafka": dump.read,
}


def read_file(node: Node, variables: Mapping[str, str], path: str, time: int | None) -> SourceRows:
    """The rows of a source in the file at `path`, in order. `time`: theirs, in ms, if nothing in the file says it.

    `variables` are for ``${name}`` in the options that say how to read; then the environment is asked. Raises
    SourceError if a row of the source cannot be in a file, or the file cannot be read; ConfigurationError; OSError.
    """
    connector = node.source.connector
    read = _READERS.get(connector.kind)
    if read is None:
        raise SourceError(
            f"source '{node.name}' (line {node.line}): only Spark can read rows of {connector.kind}",
            "write the rows into the test",
        )
    return read(node, variables, path, time)
