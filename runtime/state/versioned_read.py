"""Many reads of a versioned store at once. (Simple form.)"""
from __future__ import annotations
from typing import Any
import numpy as np
import pyarrow as pa
from vsc.runtime.state.api import LOOKUP_MISSES, NEVER, Lookups, Versions, VersionedRecord
def get_many(store: Any, keys: Any, as_of: Any) -> Any:
    return [store.lookup(k, None if as_of is None else int(as_of[i])) for i, k in enumerate(keys)]
def lookup_columns(store: Any, keys: Any, index: Any, as_of: Any) -> Lookups:
    out = get_many(store, [keys[i] for i in index], as_of)
    f = [isinstance(r, VersionedRecord) for r in out]
    return Lookups(np.array([0 if ok else LOOKUP_MISSES.index(r) for ok, r in zip(f, out)], np.uint8), np.array([r.valid_from if ok else -1 for ok, r in zip(f, out)], np.int64), np.array([(NEVER if r.valid_to is None else r.valid_to) if ok else -1 for ok, r in zip(f, out)], np.int64), pa.array([r.value if ok else None for ok, r in zip(f, out)], pa.binary()))
def versions_many(store: Any, keys: Any, from_ts: Any, to_ts: Any) -> Versions:
    K, F, T, V = [], [], [], []
    h = store.horizon
    for i, k in enumerate(keys):
        hist = store._history(k, h)
        found = [v for v in hist.overlapping(int(from_ts[i]), int(to_ts[i])) if v[2] is not None]
        if hist.newest() is not None: found.append(hist.newest())
        for v in found:
            if (v[2] is None or v[2] > h) and not store._forgotten(v):
                K.append(i); F.append(v[1]); T.append(NEVER if v[2] is None else v[2]); V.append(v[0])
    return Versions(np.array(K, np.int64), np.array(F, np.int64), np.array(T, np.int64), pa.array(V, pa.binary()))
