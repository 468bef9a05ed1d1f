"""The columns that a source has beside the declared ones: how a connector tells stage 0 where a row comes from."""

from __future__ import annotations

__all__ = ["BAD", "CORRUPT", "INDEX", "PART", "START", "TIME"]

PART = "_vsc_part"
"""Column: the source partition of the row (a file's path, in the form of a URL); with `INDEX` only in its first row."""
INDEX = "_vsc_index"
"""Column, where the format has it: the number of the row in its file, from 0. Saves a path in every row."""
TIME = "_vsc_time"
"""Column, where the source has no timestamp clause: the row's own time, ms since the epoch."""
BAD = "_vsc_bad"
"""Column, where the format can tell: why the row cannot be read, null if it can."""
CORRUPT = "_vsc_corrupt"
"""Column of JSON rows: the text of a record that cannot be read, null if it can."""
START = "_vsc_start"
"""Column: where in its file the task's split begins; not 0 would mean that the file was split."""
