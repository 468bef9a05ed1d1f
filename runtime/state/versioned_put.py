"""Many writes to a versioned store at once. (Simple form.)"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any
import numpy as np
from vsc.runtime.state.api import PutOutcomes
def put_columns(store: Any, keys: Any, index: Any, values: Any, timestamps: Any) -> PutOutcomes:
    if len(timestamps) and int(timestamps.min()) < 0: raise ValueError("a timestamp must not be negative")
    vals = values if isinstance(values, (list, tuple)) else values.to_pylist()
    kinds, to = [], []
    for i, v, t in zip(index.tolist(), vals, timestamps.tolist(), strict=True):
        o = store.put(keys[i], v, t)
        kinds.append(("latest", "superseded", "expired").index(o.kind)); to.append(-1 if o.valid_to is None else o.valid_to)
    return PutOutcomes(np.array(kinds, np.uint8), np.array(to, np.int64))
