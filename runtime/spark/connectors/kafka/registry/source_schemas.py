"""The schemas of a source that are in a registry: fetched on the driver, once an id, when the run begins and by an
epoch that meets a new one; kept in the checkpoint, ``vsc/schemas/RANK.json``.

An epoch that meets a new id fails in a task of stage 0, before anything is stateful or shows in a sink; then it is
computed again, with the schema. Guarantees: what an epoch was read with is in the checkpoint before any of it shows,
so a repeated epoch gives the same rows, and a restart asks the registry for nothing that it has had from it.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence

from vsc.runtime.errors import NewSchemaError, SourceError
from vsc.runtime.spark.base.checksummed import damaged, read_checksummed, with_checksum
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.kafka.layout import Part
from vsc.runtime.spark.connectors.kafka.registry.schemas import FOLDER, Known
from vsc.runtime.spark.connectors.kafka.registry.sources import fetched, looked_at, settled
from vsc.runtime.spark.connectors.source import OpenSource

__all__ = ["SourceSchemas", "inherit"]

_log = logging.getLogger(__name__)


class SourceSchemas:
    """The schemas of those `parts` of a source's records that have theirs in a registry."""

    def __init__(self, source: OpenSource, parts: Sequence[Part], checkpoint: Checkpoint) -> None:
        self._options, self._rank, self._files = source.options, source.node.source.rank, checkpoint.files
        self._parts: dict[str, Part] = {part.name: part for part in parts}
        self._name = f"{FOLDER}/{self._rank}.json"
        before, done = _kept(self._files, self._rank), SparkLogs(checkpoint.files).done
        self._known = {
            name: self._settled(part, before[name].after(done) if name in before else None)
            for name, part in self._parts.items()
        }
        self._keep()

    def learn(self, new: NewSchemaError, epoch: int) -> bool:
        """Fetches the schemas that an epoch has met; whether any of them is new, and of this source."""
        rank, name, met = new.met
        ids = [id for id in met if not self._known[name].has(id)] if rank == self._rank else []
        if not ids:
            return False
        _log.info("%s met the schemas %s of its %s for the first time", self._options.place, ", ".join(ids), name)
        self._known[name] = fetched(self._options, self._parts[name], self._known[name], ids, epoch)
        self._keep()
        return True

    def told(self, epoch: int) -> str:
        """What the tasks of an epoch need to know, as JSON."""
        for name, part in self._parts.items():
            known = self._known[name]
            if known.closed is not None and known.closed < epoch:
                self._known[name] = looked_at(self._options, part, known, epoch)
                self._keep()
        return json.dumps({name: one.dump() for name, one in self._known.items()}, separators=(",", ":"))

    def _settled(self, part: Part, before: Known | None) -> Known:
        try:
            return settled(self._options, part, before or Known())
        except SourceError as error:
            if before is None or before.reader is not None:
                raise
            _log.warning("%s: the run goes on with what the checkpoint knows", error.message)
            return before

    def _keep(self) -> None:
        text = with_checksum({name: known.dump() for name, known in self._known.items()})
        if not self._files.exists(self._name) or self._files.read(self._name) != text:
            self._files.write(self._name, text)


def inherit(was: int, rank: int, old: Files, new: Files) -> None:
    """Writes what `old` knows of the schemas of the source of rank `was` into a new checkpoint, whose epochs are
    others."""
    found = {part: known.after(sys.maxsize).dump() for part, known in _kept(old, was).items()}
    if found:
        new.write(f"{FOLDER}/{rank}.json", with_checksum(found))


def _kept(files: Files, rank: int) -> dict[str, Known]:
    """What a checkpoint knows of the schemas of the source of a rank, by the parts of its records. CheckpointError."""
    name = f"{FOLDER}/{rank}.json"
    if not files.exists(name):
        return {}
    data = read_checksummed(files, name)
    try:
        return {part: Known.load(known) for part, known in data.items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(files, name, "it has no schemas") from error
