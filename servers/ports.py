"""Ports of loopback."""

from __future__ import annotations

import itertools
import os
import socket

__all__ = ["free_port"]

_FIRST, _COUNT, _APART = 10_000, 6_000, 97
"""Below the ports that systems give to outgoing connections: one of those could take the port of a server that is to
start, or to start again. Each process begins somewhere else."""
_offsets = itertools.count(os.getpid() * _APART)


def free_port() -> int:
    """A free port that this process has not given out before."""
    for offset in itertools.islice(_offsets, _COUNT):
        port = _FIRST + offset % _COUNT
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:  # somebody has it, or had it a moment ago
                continue
            return port
    raise OSError(f"no port from {_FIRST} to {_FIRST + _COUNT - 1} is free")
