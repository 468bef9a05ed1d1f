"""The ordered maps under the stores, in one place: see the modules that this one re-exports."""

from __future__ import annotations

from vsc.runtime.state.changelog import apply_changelog
from vsc.runtime.state.kv_base import LowerKV, OrderedKV, prefix_end
from vsc.runtime.state.kv_memory import MemoryKV
from vsc.runtime.state.kv_overlay import OverlayKV
from vsc.runtime.state.kv_rocks import RocksKV

__all__ = ["LowerKV", "MemoryKV", "OrderedKV", "OverlayKV", "RocksKV", "apply_changelog", "prefix_end"]
