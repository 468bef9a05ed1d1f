"""Python's cyclic garbage collector, kept out of batches.

A batch makes many objects that live until its end, and none of them in cycles that matter: each pass of the collector
looks at all of them again, which takes loops over records about a quarter of their time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses the collector; it goes on as it was before, also after an exception."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
