"""A checkpoint that was moved, or copied: what Spark keeps in it by absolute paths is set right.

* Where the files with the schemas of state are: ``state/OPERATOR/_metadata/v2/EPOCH``. Without them neither a query nor
  a reader of state begins, and a copy would go on to need its original.
* Which of the checkpoint's own files were read, by the control source (source 0) and by those whose input was taken
  into the checkpoint: ``sources/N``. They would all be read again.

Both are looked at whenever a checkpoint is used, and written only if they name another folder.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from vsc.runtime.spark.base.checksummed import damaged, read_text
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs, replace_log

__all__ = ["follow_logs", "follow_schemas"]

_SEPARATORS = (",", ":")  # as Spark writes JSON


def follow_schemas(files: Files) -> None:
    """Makes state name the schemas in this checkpoint. Raises CheckpointError if it is damaged.

    A query that reads them from another path, such as another mount, finds them all the same: it does this as well.
    """
    for operator in files.names("state"):
        folder, schemas = f"state/{operator}/_metadata/v2", f"state/{operator}/_stateSchema/"
        for epoch in files.names(folder):
            if epoch.isdigit():
                _follow_schemas(files, f"{folder}/{epoch}", schemas)


def follow_logs(files: Files) -> None:
    """Makes the logs of sources name what they have read of this checkpoint's own files by its present path.

    Whoever calls this has claimed the checkpoint, and has checked that Spark's logs are whole.
    """
    logs = SparkLogs(files)
    control = [f"sources/0/{name}" for _, name in sorted(logs.source_log("0").items(), reverse=True)]
    first = next((entry for name in control for entry in _entries(files, name)), None)
    if first is None:
        return  # nothing was read yet
    here = files.url("vsc/control").removesuffix("control")
    there = first["path"].rpartition("control/")[0]
    if there == here:
        return
    sources = sorted((name for name in files.names("sources") if name.isdigit()), key=int)
    for source in reversed(sources):  # the control source last: what it names shows that there is work to do
        for name in logs.source_log(source).values():
            _replace_folder(files, f"sources/{source}/{name}", there, here)


def _replace_folder(files: Files, name: str, there: str, here: str) -> None:
    entries = _entries(files, name)
    if not entries or not entries[0]["path"].startswith(there):
        return  # of files elsewhere
    for entry in entries:
        entry["path"] = here + entry["path"].removeprefix(there)
    replace_log(files, name, "\n".join(["v1", *(json.dumps(entry, separators=_SEPARATORS) for entry in entries)]))


def _entries(files: Files, name: str) -> list[dict[str, Any]]:
    """The entries of a log of files; none where it is one of another kind."""
    entries = [json.loads(line) for line in read_text(files, name).splitlines()[1:] if line.startswith("{")]
    return [entry for entry in entries if isinstance(entry.get("path"), str)]


def _follow_schemas(files: Files, name: str, schemas: str) -> None:
    version, _, text = read_text(files, name).partition("\n")
    try:
        note = json.loads(text)
        moved = False
        for store in note["stateStoreInfo"]:
            own = [_own(files, path, schemas) for path in store["stateSchemaFilePaths"]]
            moved = moved or own != store["stateSchemaFilePaths"]
            store["stateSchemaFilePaths"] = own
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(files, name, "it is not a note of state as Spark writes it") from error
    if moved:
        replace_log(files, name, f"{version}\n{json.dumps(note, separators=_SEPARATORS)}")


def _own(files: Files, path: str, schemas: str) -> str:
    """The file of this checkpoint for which `path` stands: `path` itself, unless that is of another folder."""
    _, found, name = path.rpartition(schemas)
    own = files.path(schemas + name)
    here, there = urlsplit(own), urlsplit(path)
    if not found or (here.netloc, here.path) == (there.netloc, there.path) or not files.exists(schemas + name):
        return path
    return own
