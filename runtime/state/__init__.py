"""State: versioned and unversioned stores, the grace buffer, and the ordered maps of bytes that hold them all.

The only package that uses RocksDB. Users open `RocksDBVersionedStore` or `InMemoryVersionedStore`; the operators put
stores over a map that their stage shares. Names are loaded on first use, so the codecs work without RocksDB.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsc.runtime.errors import StateError
    from vsc.runtime.state.api import Miss, OutcomeKind, PutOutcome, VersionedRecord
    from vsc.runtime.state.versioned_stores import InMemoryVersionedStore, RocksDBVersionedStore

__all__ = [
    "InMemoryVersionedStore",
    "Miss",
    "OutcomeKind",
    "PutOutcome",
    "RocksDBVersionedStore",
    "StateError",
    "VersionedRecord",
]

_HOMES = {
    "InMemoryVersionedStore": "vsc.runtime.state.versioned_stores",
    "Miss": "vsc.runtime.state.api",
    "OutcomeKind": "vsc.runtime.state.api",
    "PutOutcome": "vsc.runtime.state.api",
    "RocksDBVersionedStore": "vsc.runtime.state.versioned_stores",
    "StateError": "vsc.runtime.errors",
    "VersionedRecord": "vsc.runtime.state.api",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
