"""What an editor sends: the headers of its messages, read with care, since a wrong one must not end the server."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import BinaryIO, cast

__all__ = ["MAX_BYTES", "input_of"]

MAX_BYTES = 64 << 20
"""The longest message that is read. No topology that the compiler reads is longer, however it is escaped."""

_LENGTH = re.compile(rb"(?i)content-length[ \t]*:[ \t]*([0-9]+)[ \t]*\r?\n\Z")
_LONGEST_LINE = 1 << 16
_OTHER_HEADER = b"\r\n"  # what a header is read as that means nothing


def input_of(stream: BinaryIO, refuse: Callable[[str], None]) -> BinaryIO:
    """`stream`, whose messages are at most `MAX_BYTES` long; `refuse` gets the others.

    Reading goes on at the next length of a message, wherever it stands, so the contents of a refused one are skipped.
    """
    return cast(BinaryIO, _Input(stream, refuse))


class _Input:
    def __init__(self, stream: BinaryIO, refuse: Callable[[str], None]) -> None:
        self._stream, self._refuse = stream, refuse

    def readline(self) -> bytes:
        """A header, with the length of a message written in one way."""
        line = self._stream.readline(_LONGEST_LINE)
        found = _LENGTH.search(line)
        if found is None:
            return line
        length = found[1].lstrip(b"0") or b"0"
        if len(length) > len(str(MAX_BYTES)) or int(length) > MAX_BYTES:
            shown = length.decode() if len(length) <= 20 else "too many"
            self._refuse(f"a message of {shown} bytes is not read: the limit is {MAX_BYTES:,}")
            return _OTHER_HEADER
        return b"Content-Length: " + length + b"\r\n"

    def read(self, size: int) -> bytes:
        """The contents of a message."""
        return self._stream.read(size)
