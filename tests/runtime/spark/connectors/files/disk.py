"""A disk for the files sink that dies at a step, and the sink on it. No Spark."""

from __future__ import annotations

from typing import Any, cast

from vsc.runtime.spark.connectors.files.epoch_files import EpochFiles
from vsc.runtime.spark.exchange.tally import Tally

__all__ = ["ASIDE", "Crash", "Disk", "sink", "write"]

ASIDE = "_vsc-abcd-0"


class Crash(BaseException):
    """The process is gone."""


class Disk:
    """A `Folder` as a dictionary. The process dies at step `fuse` of those that change something.

    `copies`: a file system that renames by copying and deleting, as object stores do.
    """

    root = "/out"

    def __init__(self, copies: bool = False) -> None:
        self.content: dict[str, str] = {}
        self.copies = copies
        self.is_local = not copies
        self.fuse = -1
        self.steps = 0

    def step(self) -> None:
        if self.steps == self.fuse:
            raise Crash
        self.steps += 1

    def sync(self, name: str = "") -> None:
        """What is written is there."""

    def path(self, name: str = "") -> str:
        return f"{self.root}/{name}"

    def below(self, name: str) -> list[str]:
        prefix = f"{name}/" if name else ""
        return sorted(found.removeprefix(prefix) for found in self.content if found.startswith(prefix))

    def exists(self, name: str = "") -> bool:
        return name in self.content or bool(self.below(name))

    def names(self, name: str = "") -> list[str]:
        return sorted({found.split("/")[0] for found in self.below(name)})

    def sizes(self, name: str = "") -> dict[str, int]:
        above = f"{name}/" if name else ""
        return {n: len(self.content[above + n]) for n in self.names(name) if above + n in self.content}

    def size(self, name: str) -> int | None:
        return len(self.content[name]) if name in self.content else None

    def length(self, name: str) -> int:
        return len(self.content[name])

    def files(self, name: str = "") -> list[str]:
        return self.below(name)

    def read(self, name: str) -> str:
        return self.content[name]

    def write(self, name: str, text: str) -> None:
        parent, _, last = name.rpartition("/")
        self.step()
        self.content[f"{parent}/_{last}.new"] = text[: len(text) // 2]
        self.step()
        self.content[f"{parent}/_{last}.new"] = text
        self.rename(f"{parent}/_{last}.new", name)

    def rename(self, old: str, new: str) -> None:
        self.step()
        if new in self.content:
            raise FileExistsError(new)
        self.content[new] = self.content[old]
        if self.copies:
            self.step()
        del self.content[old]

    def delete(self, name: str) -> None:
        for found in [name, *(f"{name}/{n}" for n in self.below(name))]:
            if found in self.content:
                self.step()
                del self.content[found]

    def make(self, name: str = "") -> None:
        self.step()

    def save(self, path: str, contents: list[str]) -> dict[int, int]:
        """As Spark does: into a folder of its own, then where it belongs, then, if it is asked to, a mark."""
        folder = path.removeprefix(self.root + "/")
        for number, text in enumerate(contents):
            self.step()
            self.content[f"{folder}/_temporary/part-{number:05}"] = text[: len(text) // 2]
            self.step()
            self.content[f"{folder}/_temporary/part-{number:05}"] = text
        for number in range(len(contents)):
            self.rename(f"{folder}/_temporary/part-{number:05}", f"{folder}/part-{number:05}-uuid.x.json")
        self.step()
        self.content[f"{folder}/_SUCCESS"] = ""
        return dict.fromkeys(range(len(contents)), 1)

    @property
    def visible(self) -> dict[str, str]:
        """What readers see."""
        return {n: text for n, text in self.content.items() if not n.startswith("_") and "/_" not in n}


def sink(disk: Disk, append: bool = False, checkpoint: str = "abcd") -> EpochFiles:
    found = EpochFiles(cast(Any, disk), checkpoint, "0", "the sink of 's' (line 3)")
    found.prepare(append)
    return found


def write(disk: Disk, files: EpochFiles, epoch: int, contents: list[str], digest: int = 7) -> None:
    rows = Tally(len(contents), digest if contents else 0)
    files.write(epoch, lambda: rows, lambda path: disk.save(path, contents))
