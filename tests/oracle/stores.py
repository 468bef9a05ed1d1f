"""The state of all stages in memory, and what lies in it, so that two of them can be compared."""

from __future__ import annotations

import struct
from typing import Any

from vsc.plan.nodes import Plan
from vsc.runtime.operators.layout import store_prefix
from vsc.runtime.state.kv import MemoryKV, prefix_end
from vsc.runtime.state.kv_base import store_root
from vsc.runtime.state.versioned import VersionedStore

__all__ = ["Stores"]

_MARKS = (struct.pack("<4sH", b"VSTS", 1), struct.pack("<4sH", b"VSUB", 1))


class Stores:
    """Keeps the state of every stage and partition, whoever opens it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], MemoryKV] = {}

    def __call__(self, stage: int, partition: int) -> MemoryKV:
        """The state of one stage and partition."""
        return self._kept.setdefault((stage, partition), MemoryKV())

    def content(self, plan: Plan) -> dict[Any, Any]:
        """Versioned stores as their readers see them, for when they clear what is too old is up to them; of all else
        every byte, but for marks that say nothing except that a store has been written to.
        """
        found: dict[Any, Any] = {}
        for (stage, partition), kv in sorted(self._kept.items()):
            rows = {key: value for key, value in kv.scan(b"", None) if value not in _MARKS}
            for name in plan.stages[stage].nodes:
                store, prefix = plan.node(name).store, store_prefix(plan.stages[stage], name)
                if store is None or store.kind != "versioned":
                    continue
                assert store.retention is not None
                opened = VersionedStore(kv, prefix, store.retention, store.segment, store.grace)
                newest = list(opened.scan())
                versions = {key: list(opened.versions(key)) for key, _ in newest}
                found[stage, partition, name] = opened.observed_stream_time, newest, versions
                root = store_root(prefix)
                for key, _ in kv.scan(root, prefix_end(root)):
                    rows.pop(key, None)
            found[stage, partition] = rows
        return {place: content for place, content in found.items() if content}
