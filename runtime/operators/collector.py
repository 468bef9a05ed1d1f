"""Python's cyclic garbage collector, kept out of batches.

A batch makes many objects that live until its end, without cycles that matter. Each pass of the collector visits all of
them again, which costs loops over records about a quarter of their time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses the collector, and restores its state afterwards, also after an exception."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
