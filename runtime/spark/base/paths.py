"""Paths and URLs of files, as Spark and topologies write them."""

from __future__ import annotations

__all__ = ["is_local", "local_path", "logged_url"]


def is_local(path: str, default: bool = True) -> bool:
    """Whether `path` is on the local file system. `default`: the file system of a path without a scheme is."""
    return path.startswith("file:") or (default and "://" not in path)


def local_path(path: str) -> str:
    """The plain path of a local path or URL."""
    return path[5:] if path.startswith("file:") and not path.startswith("file://") else path.removeprefix("file://")


def logged_url(url: str) -> str:
    """The URL of a file as in Spark's log of read files, and in its errors: ``file:///a``, not ``file:/a``."""
    return f"file://{url[5:]}" if url.startswith("file:/") and not url.startswith("file://") else url
