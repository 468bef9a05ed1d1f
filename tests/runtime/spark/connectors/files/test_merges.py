"""A file takes the place of small ones of a sink: of which, and what a crash between any two steps leaves. No Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import pytest

from tests.runtime.spark.connectors.files.disk import ASIDE, Crash, Disk, sink, write
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.connectors.files.epoch_files import EpochFiles
from vsc.runtime.spark.connectors.files.small_files import PublishedFile, runs

EPOCHS = 13


def merging_run(disk: Disk, done: list[int]) -> None:
    """As `run`, of a sink that merges the files of all epochs but the newest three."""
    files = sink(disk)
    for epoch in range(len(done), EPOCHS):
        write(disk, files, epoch, [f"{epoch:02}"], epoch)
        for merge in files.mergeable(epoch - 2, 100, "json"):
            files.stage_merge(merge, "json", partial(concatenate, disk))
            files.finish_merge()
        disk.step()
        done.append(epoch)


def concatenate(disk: Disk, paths: Sequence[str], folder: str) -> None:
    text = "".join(disk.content[path.removeprefix(f"{disk.root}/")] for path in paths)
    disk.save(folder, [text])


def without_covered(disk: Disk) -> str:
    """What a reader sees that leaves out files of which a merged one holds the rows, by their names."""
    files = [file for name in disk.visible if (file := PublishedFile.of(name, "part-abcd-0-")) is not None]
    assert len(files) == len(disk.visible)
    merged = [file for file in files if file.merged]
    shown = [
        file for file in files
        if not any(one != file and one.first <= file.first and file.last <= one.last for one in merged)
    ]  # fmt: skip
    return "".join(disk.content[file.name] for file in sorted(shown, key=lambda file: file.name))


@pytest.mark.parametrize("copies", [False, True])
def test_merged_files_hold_every_row_once_whatever_crashes(copies: bool) -> None:
    rows = "".join(f"{epoch:02}" for epoch in range(EPOCHS))
    merged = "part-abcd-0-0000000000-00000-to-0000000009-00000-1.x.json"
    last = {f"part-abcd-0-{epoch:010}-00000.x.json": f"{epoch:02}" for epoch in (10, 11, 12)}
    crashed = 0
    for fuse in range(1000):
        disk, done = Disk(copies), list[int]()
        disk.fuse = fuse
        try:
            merging_run(disk, done)
        except Crash:
            disk.fuse = -1
            assert rows.startswith(without_covered(disk))  # none is missing, none twice
            assert len(without_covered(disk)) >= 2 * len(done)
            merging_run(disk, done)
            crashed += 1
        else:
            break
        assert disk.visible == {merged: rows[:20], **last}
        assert disk.below(ASIDE) == ["11._commit", "12._commit"]
    assert crashed > 100


def test_each_row_is_rewritten_once_for_each_power_of_ten_and_no_file_of_the_target_size() -> None:
    disk, rewritten = Disk(), Counter[str]()

    def rewrite(paths: Sequence[str], folder: str) -> None:
        assert all(len(disk.content[path.removeprefix("/out/")]) < 600 for path in paths)
        concatenate(disk, paths, folder)
        text = next(text for name, text in disk.content.items() if folder.removeprefix("/out/") in name and text)
        rewritten.update(text[place : place + 4] for place in range(0, len(text), 4))

    files = sink(disk)
    for epoch in range(2003):
        write(disk, files, epoch, [f"{epoch:04}"], epoch)
        for merge in files.mergeable(epoch - 2, 600, "json"):
            files.stage_merge(merge, "json", rewrite)
            files.finish_merge()
    assert without_covered(disk) == "".join(f"{epoch:04}" for epoch in range(2003))
    assert max(rewritten.values()) == 3  # 4 to 40, to 400, to more than 600 bytes
    assert len(disk.visible) < 2003 * 4 / 600 + 30


def test_only_neighbours_of_one_format_in_one_folder_are_merged() -> None:
    def file(name: str) -> PublishedFile:
        found = PublishedFile.of(name, "part-abcd-0-")
        assert found is not None
        return found

    def small(folder: str, epochs: range, size: int = 1) -> list[tuple[PublishedFile, int]]:
        return [(file(f"{folder}/part-abcd-0-{epoch:010}-00000.json"), size) for epoch in epochs]

    def found(*files: list[tuple[PublishedFile, int]]) -> list[tuple[int, int]]:
        return [(run[0].first[0], run[-1].last[0]) for run in runs([o for some in files for o in some], 100, "json")]

    assert found(small("day=1", range(9)), small("day=2", range(9))) == []
    assert found(small("day=1", range(9)), small("day=1", range(9, 10), 100), small("day=1", range(10, 19))) == []
    assert found(small("day=1", range(10)), small("day=2", range(20, 30))) == [(0, 9), (20, 29)]
    csv = [(file("part-abcd-0-0000000009-00000.csv"), 1)]
    assert found(small("", range(9)), csv, small("", range(10, 19))) == []
    assert found(small("", range(9)), csv, small("", range(10, 20))) == [(10, 19)]
    many = [(file(f"part-abcd-0-0000000000-{number:05}.json"), 1) for number in range(99_995, 100_005)]
    (run,) = runs(many, 100, "json")
    assert [one.first[1] for one in run] == list(range(99_995, 100_005))
    assert found(small("a", range(2), 60)) == [(0, 1)]
    assert found(small("a", range(2), 49)) == []
    assert found(small("a", range(5), 60)) == [(0, 1), (2, 3)]
    assert found(small("a", range(1200), 0)) == [(0, 999), (1000, 1199)]
    assert file("a=1/part-abcd-0-0000000000-00000-to-0000000009-00003-2.snappy.parquet").merged == 2
    for other in ("part-abcd-0-notes", "part-abcd-1-0000000000-00000.json", "data.json"):
        assert PublishedFile.of(other, "part-abcd-0-") is None


def test_what_merged_files_hold_cannot_be_undone_or_written_again() -> None:
    disk = Disk()
    merging_run(disk, [])
    files = EpochFiles(cast(Any, disk), "abcd", "0", "the sink")
    before = dict(disk.content)
    with pytest.raises(SinkError, match="holds rows up to epoch 9, so nothing can go back to epoch 4") as error:
        files.check_back_to(4)
    assert error.value.help is not None and "go back to epoch 9 or a later one" in error.value.help
    files.check_back_to(9)
    with pytest.raises(SinkError, match=r"0000000012-00000.x.json holds rows of epochs up to 12, but there is no list"):
        write(disk, sink(disk), 9, ["again"])
    assert disk.content == before
    files.back_to(9)
    assert without_covered(disk) == "".join(f"{epoch:02}" for epoch in range(10))


def test_a_merge_that_fails_leaves_all_as_it_was() -> None:
    disk = Disk()
    files = sink(disk)
    for epoch in range(10):
        write(disk, files, epoch, [f"{epoch:02}"], epoch)
    before = dict(disk.content)
    [merge] = files.mergeable(10, 100, "json")
    assert files.mergeable(10, 100, "csv") == []

    def fails(paths: Sequence[str], folder: str) -> None:
        disk.save(folder, ["half"])
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        files.stage_merge(merge, "json", fails)
    assert disk.content == before

    def saves(contents: list[str], paths: Sequence[str], folder: str) -> None:
        disk.save(folder, contents)

    for contents in ([], ["a", "b"]):
        with pytest.raises(SinkError, match=rf"10 files were merged into {len(contents)}, as the driver sees"):
            files.stage_merge(merge, "json", partial(saves, contents))
        assert disk.content == before


def test_a_merge_whose_list_or_file_was_damaged_is_told() -> None:
    disk = Disk()
    files = sink(disk)
    for epoch in range(10):
        write(disk, files, epoch, [f"{epoch:02}"], epoch)
    [merge] = files.mergeable(10, 100, "json")
    files.stage_merge(merge, "json", partial(concatenate, disk))
    listed = disk.content[f"{ASIDE}/merge._commit"]
    for text in ("{}", listed[:40], listed.replace('"format": 1', '"format": 2'), listed.replace("part-abcd", "../p")):
        disk.content[f"{ASIDE}/merge._commit"] = text
        with pytest.raises(SinkError, match=r"/out/_vsc-abcd-0/merge._commit is damaged"):
            sink(disk)
    disk.content[f"{ASIDE}/merge._commit"] = listed
    [staged] = [name for name in disk.below(ASIDE) if name.startswith("merge-") and "part-" in name]
    del disk.content[f"{ASIDE}/{staged}"]
    with pytest.raises(SinkError, match=r"-to-0000000009-00000-1.x.json is gone, and its merge is not complete"):
        sink(disk)
    assert without_covered(disk) == "".join(f"{epoch:02}" for epoch in range(10))
