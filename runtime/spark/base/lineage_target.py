"""Where OpenLineage's events may go: what ``--lineage`` takes."""

from __future__ import annotations

from urllib.parse import urlsplit

from vsc.plan.secrets import instead_of_secret
from vsc.runtime.errors import ConfigurationError

__all__ = ["HELP", "KEY", "check_target"]

KEY = "OPENLINEAGE_API_KEY"
"""The variable that holds the key for a server."""
HELP = "give the path of a file on this machine, or the URL of a server, such as http://localhost:5000"


def check_target(target: str) -> None:
    """ConfigurationError for what is neither the path of a file nor the URL of a server, or may hold a secret."""
    if not target.strip():
        raise ConfigurationError("--lineage names neither a file nor a server", HELP)
    scheme, found, rest = target.partition("://")
    if not found:
        return
    if instead_of_secret(target) is not None or "@" in rest.partition("/")[0]:
        raise ConfigurationError("the URL of --lineage holds a secret", f"give a key as the variable {KEY}")
    if "?" in rest or "#" in rest:
        raise ConfigurationError("the URL of --lineage has a query or a fragment", f"give a key as the variable {KEY}")
    if scheme not in ("http", "https") or not _has_host(target):
        raise ConfigurationError(f"--lineage {target} is not the URL of a server that takes events", HELP)


def _has_host(url: str) -> bool:
    if any(char.isspace() or not char.isprintable() for char in url):
        return False
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, or half an IPv6 address
        return False
