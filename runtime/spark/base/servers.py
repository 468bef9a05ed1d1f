"""Servers that a run connects to, looked at from the machine that does. Imports only Python's own modules."""

from __future__ import annotations

import socket

__all__ = ["Servers", "unreached"]

Servers = tuple[tuple[str, int], ...]
"""The hosts and ports of one system, any of which serves."""

_SECONDS = 5.0
"""How long a server may take to accept a connection."""


def unreached(servers: Servers) -> str | None:
    """Why none of them takes a connection; None if one does."""
    reasons = []
    for host, port in servers:
        try:
            socket.create_connection((host, port), _SECONDS).close()
            return None
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
    return "; ".join(reasons)
