"""Free ports on loopback."""

from __future__ import annotations

import itertools
import os
import socket

__all__ = ["free_port"]

_FIRST, _COUNT, _APART = 10_000, 6_000, 97
"""The range is below the ports for outgoing connections: such a connection could take the port of a server that is
about to start, or to restart. Each process begins at a different port."""
_offsets = itertools.count(os.getpid() * _APART)


def free_port() -> int:
    """A free port that this process has not given out before."""
    for offset in itertools.islice(_offsets, _COUNT):
        port = _FIRST + offset % _COUNT
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:  # the port is in use, or was a moment ago
                continue
            return port
    raise OSError(f"no port from {_FIRST} to {_FIRST + _COUNT - 1} is free")
