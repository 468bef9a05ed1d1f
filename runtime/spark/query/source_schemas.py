"""The schemas of a query's sources, as far as they are in a registry: fetched on the driver, once an id, when the run
begins and by an epoch that meets a new one; kept in the checkpoint, ``vsc/schemas/RANK.json`` for each source.

An epoch that meets a new id fails in a task of stage 0, before anything is stateful or shows in a sink; then it is
computed again, with the schema. Guarantees: what an epoch was read with is in the checkpoint before any of it shows,
so a repeated epoch gives the same rows, and a restart asks the registry for nothing that it has had from it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TypeVar

from vsc.runtime.errors import NewSchemaError, SourceError
from vsc.runtime.spark.base.checksummed import damaged, read_checksummed, with_checksum
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import Part
from vsc.runtime.spark.connectors.kafka.registry.schemas import Known
from vsc.runtime.spark.connectors.kafka.registry.sources import fetched, registered_parts, settled
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.query.failures import translated

__all__ = ["FOLDER", "SourceSchemas"]

FOLDER = "vsc/schemas"
T = TypeVar("T")
_log = logging.getLogger(__name__)


class SourceSchemas:
    """The schemas of the sources of a run. `tell` hands them to the tasks of an epoch."""

    def __init__(self, ends: Ends, files: Files, tell: Callable[[str], None]) -> None:
        self._sources: dict[int, tuple[Options, dict[str, Part]]] = {}
        for source in ends.sources:
            parts: dict[str, Part] = {part.name: part for part in registered_parts(source.node, source.options)}
            if parts:
                self._sources[source.node.source.rank] = source.options, parts
        self._files, self._tell = files, tell
        self._known: dict[int, dict[str, Known]] = {}

    @property
    def any(self) -> bool:
        """Whether a source has its schemas in a registry."""
        return bool(self._sources)

    def begin(self, done: int) -> None:
        """Loads what the checkpoint has, and fetches what is missing; `done` is the last epoch that has ended. Raises
        what `settled` does. The caller has claimed the checkpoint."""
        for rank, (options, parts) in self._sources.items():
            before = {name: known.after(done) for name, known in self._loaded(rank).items()}
            self._known[rank] = {
                name: self._settled(options, part, before.get(name)) for name, part in parts.items()
            }  # fmt: skip
            self._keep(rank)

    def complete(self, epoch: int, compute: Callable[[], T]) -> T:
        """What `compute` gives, which computes an epoch, once its schemas are known."""
        if not self._sources:
            return compute()
        while True:
            self._tell(self._dump())
            try:
                return compute()
            except Exception as error:
                found = translated(error)
                if not isinstance(found, NewSchemaError) or not self._learn(found, epoch):
                    raise

    def _learn(self, new: NewSchemaError, epoch: int) -> bool:
        """Fetches the schemas that an epoch has met; whether any of them is new."""
        rank, name, ids = new.met
        options, parts = self._sources[rank]
        known = self._known[rank][name]
        ids = [id for id in ids if not known.has(id)]
        if not ids:
            return False
        _log.info("%s met the schemas %s of its %s for the first time", options.place, ", ".join(ids), name)
        self._known[rank][name] = fetched(options, parts[name], known, ids, epoch)
        self._keep(rank)
        return True

    def _settled(self, options: Options, part: Part, before: Known | None) -> Known:
        try:
            return settled(options, part, before or Known())
        except SourceError as error:
            if before is None or before.reader is not None:
                raise
            _log.warning("%s: the run goes on with what the checkpoint knows", error.message)
            return before

    def _loaded(self, rank: int) -> dict[str, Known]:
        name = f"{FOLDER}/{rank}.json"
        if not self._files.exists(name):
            return {}
        data = read_checksummed(self._files, name)
        try:
            return {part: Known.load(known) for part, known in data.items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(self._files, name, "it has no schemas") from error

    def _keep(self, rank: int) -> None:
        text = with_checksum({name: known.dump() for name, known in self._known[rank].items()})
        name = f"{FOLDER}/{rank}.json"
        if not self._files.exists(name) or self._files.read(name) != text:
            self._files.write(name, text)

    def _dump(self) -> str:
        known = {rank: {name: one.dump() for name, one in parts.items()} for rank, parts in self._known.items()}
        return json.dumps(known, separators=(",", ":"))
