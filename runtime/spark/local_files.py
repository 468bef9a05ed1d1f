"""The files of a local folder, read without Spark."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["LocalFiles"]


class LocalFiles:
    """`hadoop.Files` as far as it reads (`sealed.ReadableFiles`)."""

    def __init__(self, root: str) -> None:
        self.root = root

    def exists(self, name: str = "") -> bool:
        """Whether there is such a file or folder."""
        return (Path(self.root) / name).exists()

    def read(self, name: str) -> str:
        """The text of a file."""
        return (Path(self.root) / name).read_text(encoding="utf-8")

    def names(self, name: str = "") -> list[str]:
        """The names in a folder, sorted; none if it does not exist."""
        folder = Path(self.root) / name
        return sorted(os.listdir(folder)) if folder.is_dir() else []
