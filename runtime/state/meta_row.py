"""The meta row of a simple store: the kind of store, its format version, and the numbers that it keeps.

Layout (little endian): four letters, u16 format version; where there are numbers: u16 zero, then each as an i64.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from vsc.runtime.errors import StateError

__all__ = ["MetaRow"]


@dataclass(frozen=True, slots=True)
class MetaRow:
    """The meta rows of one kind of store. `first` are the numbers of a new store."""

    letters: bytes
    version: int
    what: str
    first: tuple[int, ...] = ()

    def read(self, data: bytes | None) -> tuple[int, ...]:
        """The numbers; for `data` None those of a new store. Raises `StateError` for a row of anything else."""
        if data is None:
            return self.first
        if len(data) != len(self.row(*self.first)) or not self.is_of(data):
            raise StateError(
                f"what lies here is not {self.what} of format version {self.version}, or it is damaged",
                "use the version of vsc that wrote it, or rebuild the state",
            )
        return struct.unpack_from(f"<{len(self.first)}q", data, 8) if self.first else ()

    def is_of(self, data: bytes | None) -> bool:
        """Whether `data` is a row of this kind of store in this format version."""
        return data is not None and data[:6] == struct.pack("<4sH", self.letters, self.version)

    def row(self, *numbers: int) -> bytes:
        """The row that holds `numbers`."""
        mark = struct.pack("<4sH", self.letters, self.version)
        return mark + struct.pack(f"<H{len(numbers)}q", 0, *numbers) if numbers else mark
