"""What ends a query that reads on in a lake table, in the user's words."""

from __future__ import annotations

import re

from vsc.runtime.errors import LakeChangeError

__all__ = ["lake_failure"]

_ANEW = "or start with a new checkpoint"
_KNOWN = (
    (
        r"DELTA_SOURCE_TABLE_IGNORE_CHANGES|DELTA_SOURCE_IGNORE_DELETE",
        "rows of a Delta table were changed or deleted, and the source reads only those that are appended",
        "read the change feed ('readChangeFeed' = 'true'), leave such commits out ('skipChangeCommits' = 'true'), "
        + _ANEW,
    ),
    (
        r"Cannot process (?:overwrite|delete) snapshot",
        "rows of an Iceberg table were changed or deleted, and the source reads only those that are appended",
        "leave such snapshots out ('streaming-skip-overwrite-snapshots' = 'true', "
        f"'streaming-skip-delete-snapshots' = 'true'), {_ANEW}",
    ),
    (
        r"DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        "the Delta table is not the one that the checkpoint has read", "start with a new checkpoint",
    ),
    (
        r"DELTA_MISSING_CHANGE_DATA|DELTA_LOG_FILE_NOT_FOUND|DELTA_TRUNCATED_TRANSACTION_LOG|"
        r"DELTA_VERSION_NOT_FOUND|DELTA_FILE_NOT_FOUND|Cannot load current offset at snapshot|"
        r"snapshot \d+ was expired|parent .*is (?:missing|expired)",
        "versions of a lake table that are still to be read are gone",
        f"keep them for longer (log and file retention, expiry of snapshots), {_ANEW}",
    ),
    (
        r"DELTA_SCHEMA_CHANGED|DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE|DELTA_CHANGE_DATA_FEED_INCOMPATIBLE",
        "the columns of a Delta table have changed",
        f"if those that the source declares are still there, run the same command again, {_ANEW}",
    ),
)  # fmt: skip


def lake_failure(text: str, cause: str) -> LakeChangeError | None:
    """The error that an exception with that `text` amounts to, for that `cause`; None for what is not known here."""
    for pattern, message, help in _KNOWN:
        if re.search(pattern, text):
            return LakeChangeError(f"{message}: {cause}", help)
    return None
