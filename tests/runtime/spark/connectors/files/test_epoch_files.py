"""The files sink on its own: an epoch's files appear once, whatever crashes between any two steps. No Spark."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import pytest

from tests.runtime.spark.connectors.files.disk import ASIDE, Crash, Disk, sink, write
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.connectors.files.epoch_files import EpochFiles
from vsc.runtime.spark.exchange.tally import Tally

EPOCHS = {0: ["a", "b"], 1: [], 2: ["c"], 3: ["d", "e"]}
"""The contents of each epoch's files."""
PUBLISHED = {
    "part-abcd-0-0000000000-00000.x.json": "a",
    "part-abcd-0-0000000000-00001.x.json": "b",
    "part-abcd-0-0000000002-00000.x.json": "c",
    "part-abcd-0-0000000003-00000.x.json": "d",
    "part-abcd-0-0000000003-00001.x.json": "e",
}


def run(disk: Disk, done: list[int]) -> None:
    """From the start of a process to the end of the input; `done` is Spark's commit log."""
    files = sink(disk)
    for epoch in range(len(done), len(EPOCHS)):
        write(disk, files, epoch, EPOCHS[epoch], epoch)
        disk.step()  # a crash after the sink, before Spark notes that the epoch is done
        done.append(epoch)


def crashes(disk: Disk, done: list[int]) -> Iterator[tuple[Disk, list[int]]]:
    """What a run from here leaves when it dies before its first step, its second, and so on."""
    for fuse in range(1000):
        copy = Disk(disk.copies)
        copy.content, copy.fuse = dict(disk.content), fuse
        committed = list(done)
        try:
            run(copy, committed)
        except Crash:
            copy.fuse = -1
            yield copy, committed
        else:
            return
    raise AssertionError("it never ends")


def test_a_crash_between_any_two_steps_and_another_one_while_that_is_mended() -> None:
    twice = 0
    for once, done in crashes(Disk(), []):
        assert once.visible.items() <= PUBLISHED.items()
        for disk, committed in crashes(once, done):
            assert disk.visible.items() <= PUBLISHED.items()
            run(disk, committed)
            assert disk.visible == PUBLISHED
            assert disk.below(ASIDE) == ["2._commit", "3._commit"] or disk.below(ASIDE) == ["3._commit"]
            twice += 1
    assert twice > 1000


def test_a_crash_in_the_middle_of_a_rename_that_copies() -> None:
    for disk, committed in crashes(Disk(copies=True), []):
        run(disk, committed)
        assert disk.visible == PUBLISHED


def test_names_carry_the_checkpoint_and_the_epoch_and_nothing_else_is_left() -> None:
    disk = Disk()
    run(disk, [])
    assert disk.visible == PUBLISHED
    assert disk.below(ASIDE) == ["2._commit", "3._commit"]


def folders(disk: Disk) -> EpochFiles:
    found = EpochFiles(cast(Any, disk), "abcd", "0", "the sink of 's' (line 3)", nested=True)
    found.prepare(False)
    return found


def save_in_folders(disk: Disk, path: str, contents: dict[str, str]) -> Counter[int]:
    for name, text in contents.items():
        disk.step()
        disk.content[f"{path.removeprefix(disk.root + '/')}/{name}"] = text
    return Counter(int(name.partition("part-")[2][:5]) for name in contents)


def test_files_in_folders_appear_once_whatever_crashes() -> None:
    epochs = [{"day=1/part-00000-u.json": "a", "day=2/part-00000-u.json": "b"}, {"day=2/k=x/part-00001-u.json": "c"}]
    published = {
        "day=1/part-abcd-0-0000000000-00000.json": "a",
        "day=2/part-abcd-0-0000000000-00001.json": "b",
        "day=2/k=x/part-abcd-0-0000000001-00000.json": "c",
    }

    def work(disk: Disk) -> None:
        files = folders(disk)
        for epoch, contents in enumerate(epochs):
            save = partial(save_in_folders, disk, contents=contents)
            files.write(epoch, partial(Tally, len(contents), 7), save)

    for fuse in range(1000):
        disk = Disk()
        disk.fuse = fuse
        try:
            work(disk)
            break
        except Crash:
            assert disk.visible.items() <= published.items()
            disk.fuse = -1
            work(disk)
            assert disk.visible == published
    assert fuse > 10 and disk.visible == published
    disk.fuse = -1
    assert not folders(disk).is_bare()
    folders(disk).back_to(0)
    assert disk.visible == {name: text for name, text in published.items() if text != "c"}
    disk.content["day=3/of somebody.json"] = ""
    with pytest.raises(SinkError, match=r"day=3/of somebody\.json, which this checkpoint did not write"):
        folders(disk)


def test_going_back_removes_what_came_later_and_nothing_else() -> None:
    disk = Disk()
    run(disk, [])
    others = {"part-abcd-1-0000000003-00000.x.json": "of another sink", "part-abcd-0-notes": "of somebody"}
    disk.content.update(others)
    for _ in range(2):
        EpochFiles(cast(Any, disk), "abcd", "0", "the sink").back_to(2)
        assert disk.visible == {**{name: text for name, text in PUBLISHED.items() if text in "abc"}, **others}
        assert disk.below(ASIDE) == ["2._commit"]
    run(disk, [0, 1, 2])
    assert disk.visible == {**PUBLISHED, **others}


def test_a_repeated_epoch_writes_nothing() -> None:
    disk = Disk()
    run(disk, [])
    before, disk.steps = dict(disk.content), 0
    files = sink(disk)
    files.write(3, lambda: Tally(2, 3), lambda path: pytest.fail("it was written again"))
    assert (disk.content, disk.steps) == (before, 2)  # a folder is made and deleted: it can be written


@pytest.mark.parametrize(
    ("rows", "words"), [(Tally(2, 4), "other content in its 2 rows"), (Tally(0, 0), "with 2 rows, now it has 0")]
)
def test_a_repeated_epoch_of_other_content_is_refused(rows: Tally, words: str) -> None:
    disk = Disk()
    run(disk, [])
    before = dict(disk.content)
    with pytest.raises(SinkError, match=words) as error:
        sink(disk).write(3, lambda: rows, lambda path: disk.save(path, ["z"]))
    assert disk.content == before
    # What the help says is enough: without the files and the list the epoch is written again.
    assert error.value.help is not None
    for shown in re.findall(r"/out/(\S+)", error.value.help):
        for name in [n for n in disk.content if re.fullmatch(re.escape(shown.rstrip(",")).replace(r"\*", ".*"), n)]:
            del disk.content[name]
    write(disk, sink(disk), 3, ["z"])
    assert disk.visible == {n: t for n, t in PUBLISHED.items() if "0000000003" not in n} | {
        "part-abcd-0-0000000003-00000.x.json": "z"
    }


def test_leftovers_are_swept_at_start() -> None:
    disk = Disk()
    run(disk, [])
    before = dict(disk.content)
    disk.content |= {f"{ASIDE}/4-0123/part-0": "x", f"{ASIDE}/4-0123/_temporary/part-1": "x"}
    disk.content |= {f"{ASIDE}/_4._commit.new": "{", f"{ASIDE}/0._commit": before[f"{ASIDE}/2._commit"]}
    sink(disk)
    assert disk.content == before


def test_lists_are_forgotten_by_epochs_without_rows_too() -> None:
    disk = Disk()
    files = sink(disk)
    for epoch in range(10):
        write(disk, files, epoch, ["x"] if epoch < 2 else [])
    assert disk.below(ASIDE) == []


def test_files_of_something_else_are_refused_unless_append() -> None:
    for name in ("part-ffff-0-0000000000-00000.json", "data.json", "day=1/part-0.json"):
        disk = Disk()
        disk.content[name] = "mine"
        with pytest.raises(SinkError, match=r"holds .*, which this checkpoint did not write"):
            sink(disk)
        write(disk, sink(disk, append=True), 0, ["a"])
        assert disk.visible == {name: "mine", "part-abcd-0-0000000000-00000.x.json": "a"}
    disk.content = {"_vsc-ffff-0/0._commit": "", ".hidden": "", "part-abcd-1-0000000000-00000.json": "another sink's"}
    sink(disk)


def test_no_file_is_overwritten() -> None:
    disk = Disk()
    disk.content["part-abcd-0-0000000002-00001.x.json"] = "from a backup"
    for epoch in (0, 2):
        with pytest.raises(SinkError, match=rf"rows of epochs up to 2, but there is no list of epoch {epoch}"):
            write(disk, sink(disk), epoch, ["a", "b"])
    assert disk.visible == {"part-abcd-0-0000000002-00001.x.json": "from a backup"}
    write(disk, sink(disk), 3, ["c"])
    late = sink(disk)
    disk.content["part-abcd-0-0000000004-00000.x.json"] = "of another process"
    taken = r"00004-00000.x.json is there already, and this query has not written it"
    with pytest.raises(SinkError, match=taken):
        write(disk, late, 4, ["of this process..."])
    with pytest.raises(SinkError, match=taken):
        write(disk, sink(disk), 4, ["of this process..."])
    assert disk.visible["part-abcd-0-0000000004-00000.x.json"] == "of another process"
    del disk.content["part-abcd-0-0000000004-00000.x.json"]
    write(disk, sink(disk), 4, ["of this process..."])
    assert disk.visible["part-abcd-0-0000000004-00000.x.json"] == "of this process..."


def test_published_files_that_changed_or_went_are_told() -> None:
    disk = Disk()
    run(disk, [])
    name = "part-abcd-0-0000000003-00001.x.json"
    disk.content[name] = "longer"
    with pytest.raises(SinkError, match=r"00001.x.json has 6 bytes, but was written with 1"):
        write(disk, sink(disk), 3, EPOCHS[3], 3)
    del disk.content[name]
    with pytest.raises(SinkError, match=r"00001.x.json is gone, although its epoch is not complete"):
        write(disk, sink(disk), 3, EPOCHS[3], 3)


@pytest.mark.parametrize(
    "text",
    [
        "part-0 part-1",
        "{}",
        '{"format": 2}',
        '{"format": 1, "rows": 1, "digest": "00", "folder": "3-0", "files": [["a", "../../b", 1]]}',
        '{"format": 1, "rows": 1, "digest": "00", "folder": "../x", "files": []}',
        '{"format": 1, "rows": 1, "digest": "00", "folder": "3-0", "files": [7]}',
    ],
)
def test_a_damaged_list_is_named(text: str) -> None:
    disk = Disk()
    run(disk, [])
    disk.content[f"{ASIDE}/3._commit"] = text
    with pytest.raises(SinkError, match=r"/out/_vsc-abcd-0/3._commit is damaged"):
        sink(disk)


def test_of_an_epoch_without_rows_nothing_stays() -> None:
    disk = Disk()
    files = sink(disk)
    write(disk, files, 0, [])
    assert disk.content == {}
    assert files.is_new(0)


def test_an_epoch_of_which_it_is_known_that_it_has_no_rows_is_not_written() -> None:
    disk = Disk()
    files = sink(disk)
    write(disk, files, 0, ["a"])
    steps = disk.steps
    for epoch in (1, 2):  # the list of epoch 0 goes, as behind any other epoch
        files.write(epoch, lambda: Tally(0, 0), None)
    assert (disk.steps, disk.below(ASIDE)) == (steps + 1, [])
    write(disk, files, 3, ["b"])
    assert list(disk.visible.values()) == ["a", "b"]


def test_files_keep_the_order_of_their_numbers() -> None:
    disk = Disk()
    names = [f"part-0000{task}-x-c{file:03}.json" for task in (0, 1) for file in (2, 999, 1000)]

    def make(path: str) -> dict[int, int]:
        folder = path.removeprefix(f"{disk.root}/")
        disk.content |= {f"{folder}/{name}": name for name in names}
        return {0: 3, 1: 3}

    EpochFiles(cast(Any, disk), "abcd", "0", "the sink").write(0, lambda: Tally(6, 0), make)
    assert [disk.content[name] for name in disk.names() if name.startswith("part-")] == names


@pytest.mark.parametrize(("lost", "missing"), [({1}, "1 file that .* epoch 4 is"), ({0, 1}, "2 files that .* are")])
def test_an_epoch_whose_tasks_wrote_to_disks_of_their_own_is_not_published(lost: set[int], missing: str) -> None:
    disk = Disk()

    def make(path: str) -> dict[int, int]:
        written = disk.save(path, ["a", "b", "c"])
        for number in lost:
            disk.delete(f"{path.removeprefix(f'{disk.root}/')}/part-{number:05}-uuid.x.json")
        return written

    with pytest.raises(SinkError, match=rf"the sink of 's' \(line 3\): {missing} not in /out"):
        sink(disk).write(4, lambda: Tally(3, 0), make)
    assert disk.visible == {}
    assert sink(disk).is_new(4)


def test_a_folder_whose_name_has_lost_a_letter_is_not_published() -> None:
    """In the locale C a JVM writes `city=Köln` and `city=Kéln` into one folder."""
    disk = Disk()
    save = partial(save_in_folders, disk, contents={"city=K?ln/part-00000-u.json": "a"})
    with pytest.raises(SinkError, match=r"lacks a letter in the name of the folder city=K\?ln"):
        folders(disk).write(0, partial(Tally, 1, 7), save)
    assert disk.visible == {}
