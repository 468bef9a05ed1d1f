"""The files of a sink, epoch by epoch: each epoch's appear once, whole, whatever crashes between any two steps.

In the target folder, beside the files that readers see::

    part-CHECKPOINT-SINK-EPOCH-NUMBER.SUFFIX   published files, maybe in folders NAME=VALUE
    part-...-FIRST-NUMBER-to-LAST-NUMBER-TIMES.SUFFIX   one that holds the rows of several: `small_files`, `merges`
    _vsc-CHECKPOINT-SINK/EPOCH-UUID/           an epoch's files while they are written: readers skip what begins with _
    _vsc-CHECKPOINT-SINK/EPOCH._commit         the epoch's list: which file goes where, how big it is, rows, digest

An epoch is written aside; then its list appears, in one rename; then its files are renamed, none over another one;
then the folder goes. Before there is a list the epoch is discarded and written again; after it is only ever rolled
forward: an epoch that is repeated writes nothing, and has to have the rows and the digest that its list has. Only the
lists of the newest two epochs are kept: Spark repeats none but the newest.

Each attempt at an epoch has a folder of its own, so that what a dead driver's tasks still write is not taken for its.

Not for how rows become files: the caller does that, in the folder that it gets.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from vsc.plan.words import counted
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.base.folders import is_hidden
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.connectors.files.merges import Merges, Rewriter
from vsc.runtime.spark.connectors.files.small_files import PublishedFile, runs
from vsc.runtime.spark.exchange.tally import Tally

__all__ = ["MARK", "EpochFiles", "foreign"]

LIST_FORMAT = 1
MARK = 16
"""How many letters of a checkpoint's id begin the names of its files."""
_LIST = "._commit"
_KEPT = 2
_STAGED = re.compile(r"\d{1,18}")
_TASK = re.compile(r"part-(\d+)-")
"""What the name of a file begins with that a task writes: the task's number."""
_DIGITS = re.compile(r"(\d+)")


Writer: TypeAlias = Callable[[str], Mapping[int, int]]
"""Writes files into a folder; returns the number of files, at least, that each of Spark's tasks has written."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """An epoch's list. `folder`: where its files were written; `files`: the name there, the published name, bytes."""

    rows: Tally
    folder: str
    files: tuple[tuple[str, str, int], ...]

    def dump(self) -> str:
        data = {"format": LIST_FORMAT, "rows": self.rows.count, "digest": f"{self.rows.digest:032x}"}
        return json.dumps({**data, "folder": self.folder, "files": [list(f) for f in self.files]}) + "\n"

    @classmethod
    def load(cls, text: str) -> _Listed:
        """Raises ValueError, KeyError or TypeError for anything that `dump` did not write."""
        data = json.loads(text)
        if data["format"] != LIST_FORMAT:
            raise ValueError(f"format version {data['format']}, this vsc reads {LIST_FORMAT}")
        files = tuple((str(old), str(new), int(size)) for old, new, size in data["files"])
        folder = str(data["folder"])
        names = (folder, *(name for old, new, _ in files for name in (old, new)))
        if "/" in folder or any(part in ("", ".", "..") for name in names for part in name.split("/")):
            raise ValueError("a name leads out of the folder")
        return cls(Tally(int(data["rows"]), int(data["digest"], 16)), folder, files)


class EpochFiles:
    """The epochs of one sink in `folder`: by name, its files are in the order in which Spark has numbered them.

    `checkpoint` begins the names of all files of one checkpoint, `sink` tells its sinks apart, which may share a
    folder. `place` names the sink in messages. `nested`: the files may be in folders, at any depth.
    """

    def __init__(self, folder: Files, checkpoint: str, sink: str, place: str, nested: bool = False) -> None:
        self._folder = folder
        self.root = folder.root
        self._checkpoint = checkpoint
        self._mark = f"{checkpoint}-{sink}"
        self._begin = f"part-{self._mark}-"
        self._aside = f"_vsc-{self._mark}"
        self._place = place
        self._nested = nested
        self._lists: set[int] = set()
        self._merges = Merges(folder, self._aside, self._begin, place)
        self._newest: PublishedFile | None = None
        """The newest of the published files when the query began."""

    def prepare(self, append: bool, ancestors: Sequence[str] = ()) -> None:
        """Makes the folder; refuses foreign files in it, unless `append`; removes what a crash left unfinished.

        `ancestors`: the checkpoints whose files are not foreign. OSError if the folder cannot be written.
        """
        self._folder.make()
        self._folder.make(f"{self._aside}-try")
        self._folder.delete(f"{self._aside}-try")
        if not append:
            self._refuse_foreign(tuple(f"part-{one[:MARK]}-" for one in (self._checkpoint, *ancestors)))
        self._merges.finish()
        self._newest = max(self._published(), key=lambda file: file.last, default=None)
        names = self._folder.names(self._aside)
        stems = {name: name.removesuffix(_LIST) for name in names}
        self._lists = {int(stem) for name, stem in stems.items() if stem != name and stem.isdigit()}
        self._forget(max(self._lists, default=0) - _KEPT + 1)
        kept = {self._list(epoch) for epoch in self._lists}
        kept |= {f"{self._aside}/{self._listed(epoch).folder}" for epoch in self._lists}
        for name in names:
            if f"{self._aside}/{name}" not in kept:
                self._folder.delete(f"{self._aside}/{name}")

    def is_bare(self) -> bool:
        """Whether no published file is there."""
        return next(self._published(), None) is None

    def is_new(self, epoch: int) -> bool:
        """Whether the epoch has no list yet."""
        return epoch not in self._lists

    def write(self, epoch: int, rows: Callable[[], Tally], make: Writer | None) -> None:
        """Publishes the epoch's files; again, if a crash came in between. `make` writes them into the folder it gets;
        None: there are no rows.

        Of a new epoch `rows` is asked for only after `make`. SinkError when the epoch was written with other rows
        before, when files that a task has written are not there, others are not what the list says, or a name is taken.
        """
        if self.is_new(epoch):
            self._check_newest(epoch)
            if make is not None:
                self._write_new(epoch, rows, make)
        else:
            listed = self._listed(epoch)
            if listed.rows != rows():
                raise listed.rows.differs(rows(), self._place, epoch, f"remove {self._all_of(epoch)}")
            self._roll_forward(epoch, listed)
        self._forget(epoch - _KEPT + 1)

    def check_back_to(self, epoch: int) -> None:
        """SinkError if a file holds rows of that epoch and of later ones. A merge that a crash has left is finished."""
        self._merges.finish()
        for file in self._published():
            if file.first[0] <= epoch < file.last[0]:
                raise SinkError(
                    f"{self._place}: {self._folder.path(file.name)} holds rows up to epoch {file.last[0]}, so nothing "
                    f"can go back to epoch {epoch}",
                    f"go back to epoch {file.last[0]} or a later one, or run with a new checkpoint and another path",
                )

    def back_to(self, epoch: int) -> None:
        """Removes what was written for later epochs. Before `prepare`, after `check_back_to`; may be repeated."""
        later = [file.name for file in self._published() if file.last[0] > epoch]
        for name in self._folder.names(self._aside):
            found = _STAGED.match(name)
            if found is not None and int(found.group()) > epoch:
                later.append(f"{self._aside}/{name}")
        for name in later:
            self._folder.delete(name)

    def mergeable(self, before: int, target: int, form: str) -> list[tuple[PublishedFile, ...]]:
        """The runs of files of a format, of epochs before that one, to be merged into files of `target` bytes."""
        if self._nested:
            old = (file for file in self._published() if file.last[0] < before)
            return list(runs([(file, self._folder.length(file.name)) for file in old], target, form))
        sizes = self._folder.sizes()
        return list(runs([(f, sizes[f.name]) for f in self._of(sizes) if f.last[0] < before], target, form))

    def written(self, epoch: int) -> str | None:
        """The path of a file of that epoch, None if it has none."""
        return next((self._folder.path(file.name) for file in self._published() if file.first == file.last
                     and file.first[0] == epoch), None)  # fmt: skip

    def stage_merge(self, run: Sequence[PublishedFile], form: str, rewrite: Rewriter) -> None:
        """Begins a merge, which `finish_merge` has to follow. Whatever it raises, all is as before."""
        self._merges.stage(run, form, rewrite)

    def finish_merge(self) -> None:
        """Puts the new file in the place of the others."""
        self._merges.finish()

    def _published(self) -> Iterator[PublishedFile]:
        """The files that readers see of this sink."""
        return self._of(self._folder.files() if self._nested else self._folder.names())

    def _of(self, names: Iterable[str]) -> Iterator[PublishedFile]:
        """The published files of this sink among the paths."""
        for name in names:
            file = None if is_hidden(name) else PublishedFile.of(name, self._begin)
            if file is not None:
                yield file

    def _sizes(self, aside: str) -> dict[str, int]:
        """The files that wait in a folder, by their paths in it, with their lengths."""
        if not self._nested:
            return self._folder.sizes(aside)
        return {name: self._folder.length(f"{aside}/{name}") for name in self._folder.files(aside)}

    def _check_newest(self, epoch: int) -> None:
        """SinkError for an epoch that has no list, although its files were there when the query began."""
        if self._newest is not None and epoch <= self._newest.last[0]:
            raise SinkError(
                f"{self._place}: {self._folder.path(self._newest.name)} holds rows of epochs up to "
                f"{self._newest.last[0]}, but there is no list of epoch {epoch}",
                "the checkpoint is older than what it wrote: restore a newer one, or run with a new one and another "
                "path",
            )

    def _write_new(self, epoch: int, rows: Callable[[], Tally], make: Writer) -> None:
        """Writes and publishes an epoch that has no list; of one without rows nothing stays."""
        folder = f"{epoch}-{uuid.uuid4().hex}"
        aside = f"{self._aside}/{folder}"
        written = make(self._folder.path(aside))
        if rows().count:
            sizes = self._sizes(aside)
            parts = [(name, sizes[name]) for name in sorted(sizes, key=_by_numbers) if not is_hidden(name)]
            self._check_there(epoch, written, [name for name, _ in parts])
            self._check_names([name for name, _ in parts])
            files = tuple((name, self._name(epoch, i, name), size) for i, (name, size) in enumerate(parts))
            self._folder.write(self._list(epoch), _Listed(rows(), folder, files).dump())
            self._lists.add(epoch)
            for old, name, _ in files:
                self._publish(f"{aside}/{old}", name)
        self._folder.delete(aside)

    def _check_there(self, epoch: int, written: Mapping[int, int], names: Sequence[str]) -> None:
        """SinkError if files of a task are not here: it may have written them to a disk of its own machine."""
        here = Counter(int(found.group(1)) for name in names if (found := _TASK.match(name.rpartition("/")[2])))
        missing = sum(max(0, count - here[task]) for task, count in written.items())
        if missing:
            raise SinkError(
                f"{self._place}: {counted(missing, 'file')} that tasks have written for epoch {epoch} "
                f"{'is' if missing == 1 else 'are'} not in {self._folder.root}, as the driver sees it",
                "give a path that the driver and all executors share: hdfs://..., s3a://..., or a shared disk",
            )

    def _check_names(self, names: Sequence[str]) -> None:
        """SinkError if the name of a folder has lost a letter: Spark escapes a question mark, so a JVM has written it
        in the place of what its locale does not have. Other values would come into the same folder."""
        lost = next((name for name in names if "?" in name.rpartition("/")[0]), None)
        if lost is not None:
            raise SinkError(
                f"{self._place}: the locale of Spark's JVMs lacks a letter in the name of the folder "
                f"{lost.rpartition('/')[0]}",
                "start them in a UTF-8 locale: LC_ALL=C.UTF-8 in the environment of the driver, and for executors "
                "--conf spark.executorEnv.LC_ALL=C.UTF-8",
            )

    def _publish(self, staged: str, name: str) -> None:
        if "/" in name:
            self._folder.make(name.rpartition("/")[0])
        try:
            self._folder.rename(staged, name)
        except FileExistsError as error:
            raise self._taken(name) from error

    def _taken(self, name: str) -> SinkError:
        return SinkError(
            f"{self._place}: {self._folder.path(name)} is there already, and this query has not written it",
            "stop what else writes with this checkpoint's id, such as a query on a copy of it; move the file away, "
            "then run again",
        )

    def _roll_forward(self, epoch: int, listed: _Listed) -> None:
        """Publishes what a crash has left of an epoch that has its list, and looks at what is published."""
        aside = f"{self._aside}/{listed.folder}"
        staged = self._sizes(aside)
        for old, name, size in listed.files:
            published = self._folder.size(name)
            if published is None and old in staged:
                self._publish(f"{aside}/{old}", name)
            elif published is None:
                raise SinkError(
                    f"{self._place}: {self._folder.path(name)} is gone, although its epoch is not complete",
                    f"put it back; or, if it was taken away on purpose, remove {self._all_of(epoch)}, "
                    "and the epoch is written again",
                )
            elif published != size:
                raise SinkError(
                    f"{self._place}: {self._folder.path(name)} has {published:,} bytes, but was written with {size:,}",
                    "put back what was there: a published file must not be changed",
                )
            elif old in staged and self._folder.is_local:  # a store that renames by copying may leave both
                raise self._taken(name)
        self._folder.delete(aside)

    def _forget(self, before: int) -> None:
        """The lists of epochs that Spark will not repeat any more."""
        for epoch in sorted(self._lists):
            if epoch < before:
                self._folder.delete(self._list(epoch))
                self._lists.remove(epoch)

    def _listed(self, epoch: int) -> _Listed:
        try:
            return _Listed.load(self._folder.read(self._list(epoch)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise SinkError(
                f"{self._place}: {self._folder.path(self._list(epoch))} is damaged: {error}",
                f"restore it; or remove {self._all_of(epoch)}, and the epoch is written again",
            ) from error

    def _all_of(self, epoch: int) -> str:
        """What there is of an epoch, for a message."""
        files = f"{'**/' if self._nested else ''}part-{self._mark}-{epoch:010d}-*"
        return f"{self._folder.path(files)} and {self._folder.path(self._list(epoch))}"

    def _refuse_foreign(self, own: tuple[str, ...]) -> None:
        for name in self._folder.files():
            if not is_hidden(name) and not name.rpartition("/")[2].startswith(own):
                raise foreign(self._place, self._folder.root, name)

    def _list(self, epoch: int) -> str:
        return f"{self._aside}/{epoch}{_LIST}"

    def _name(self, epoch: int, number: int, staged: str) -> str:
        """The name to publish under, with what comes behind the first dot of Spark's: ``.snappy.parquet``."""
        folder, slash, last = staged.rpartition("/")
        _, dot, rest = last.partition(".")
        return f"{folder}{slash}{self._begin}{epoch:010d}-{number:05d}{dot}{rest}"


def foreign(place: str, root: str, name: str) -> SinkError:
    """A file in the folder of a sink that the sink has not written."""
    return SinkError(
        f"{place}: {root} holds {name}, which this checkpoint did not write",
        "give another path, remove the files, or add append = true",
    )


def _by_numbers(name: str) -> list[str | int]:
    """Sorts Spark's names: the thousandth file of a task is ``...-c1000``, behind ``...-c999``."""
    return [int(part) if part.isdecimal() else part for part in _DIGITS.split(name)]
