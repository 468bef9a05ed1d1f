"""What others call the place of a connector: OpenLineage's names of datasets, by which producers mean the same one."""

from __future__ import annotations

import os
import posixpath
import re
from typing import NamedTuple

__all__ = ["Dataset", "at_path"]

_SAME = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "wasbs"}
"""Schemes that say only how a store is reached."""
_CONTAINERS = ("abfss", "wasbs")
"""Stores in whose URLs a container, not a user, stands before the ``@``."""
_OBJECTS = ("s3", "gs", *_CONTAINERS)
"""Stores of objects: their keys begin with no slash."""
_GLOB = re.compile(r"[*?\[]|(?<!\$)\{")


class Dataset(NamedTuple):
    """A dataset: the `namespace` is the system that has it, `name` its name there."""

    namespace: str
    name: str


def at_path(path: str, files: str) -> Dataset:
    """A folder. Of a path with wildcards it is the folder above the first of them.

    `files`: as for `vsc.plan.connectors.facts.ConnectorFacts.dataset`.
    """
    if "://" not in path and not path.startswith("file:"):
        if not files:
            return Dataset("file", _folder(path if path.startswith("${") else os.path.abspath(path)))
        path = f"{files.rstrip('/')}/{path.lstrip('/')}"
    if "://" not in path:
        return Dataset("file", _folder(path.removeprefix("file:")))
    scheme, _, rest = path.partition("://")
    server, _, inside = rest.partition("/")
    scheme, folder = _SAME.get(scheme, scheme), _folder(f"/{inside}")
    user, at, host = server.rpartition("@")
    server = f"{user.partition(':')[0]}@{host}" if at and scheme in _CONTAINERS else host
    if scheme == "file" and not server:
        return Dataset("file", folder)
    return Dataset(f"{scheme}://{server}", (folder.strip("/") or "/") if scheme in _OBJECTS else folder)


def _folder(path: str) -> str:
    parts = posixpath.normpath(path).split("/")
    wild = next((place for place, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    return "/".join(parts[:wild]) or "/"
