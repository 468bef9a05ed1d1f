"""The ordered maps: against a sorted dictionary, and what they say about folders that are not theirs."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsc.runtime.errors import StateError
from vsc.runtime.state import kv_overlay, kv_rocks
from vsc.runtime.state.changelog import decode_changelog, encode_changelog
from vsc.runtime.state.kv import MemoryKV, OrderedKV, OverlayKV, RocksKV, apply_changelog, prefix_end

KEYS = (b"", b"\0", b"a", b"a\0", b"a|", b"a|\xff", b"ab", b"b", b"\xff", b"\xff\xff")

keys = st.sampled_from(KEYS)
ends = st.one_of(st.none(), keys)
write = st.tuples(
    st.lists(st.tuples(keys, st.sampled_from([b"", b"1", b"22"])), max_size=6),
    st.lists(keys, max_size=3),
    st.lists(st.tuples(keys, keys).filter(lambda r: r[0] <= r[1]), max_size=2),
)
operations = st.lists(st.one_of(write, st.just("commit")), min_size=1, max_size=8)


def apply_to(model: dict[bytes, bytes], puts: Any, deletes: Any, ranges: Any) -> None:
    for start, end in ranges:
        for key in [key for key in model if start <= key < end]:
            del model[key]
    for key in deletes:
        model.pop(key, None)
    model.update(puts)


def check(kv: OrderedKV, model: dict[bytes, bytes], start: bytes, end: bytes | None) -> None:
    expected = sorted((k, v) for k, v in model.items() if start <= k and (end is None or k < end))
    assert list(kv.scan(start, end)) == kv.between(start, end) == expected
    assert list(kv.scan(start, end, reverse=True)) == expected[::-1]
    assert kv.get_many(KEYS) == [model.get(key) for key in KEYS] == [kv.get(key) for key in KEYS]


@settings(max_examples=150, deadline=None)
@given(ops=operations, start=keys, end=ends)
def test_memory_and_overlay_are_a_sorted_dictionary(ops: list[Any], start: bytes, end: bytes | None) -> None:
    base, copy, memory = MemoryKV(), MemoryKV(), MemoryKV()
    overlay, model = OverlayKV(base), dict[bytes, bytes]()
    for op in ops:
        if op == "commit":
            blob = overlay.changelog()
            for _ in range(2):  # applying it again changes nothing
                apply_changelog(base, blob)
            apply_changelog(copy, blob)
            overlay = OverlayKV(base)
        else:
            apply_to(model, *op)
            memory.write(*op)
            overlay.write(*op)
        check(memory, model, start, end)
        check(overlay, model, start, end)
    apply_changelog(copy, overlay.changelog())
    check(copy, model, start, end)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(ops=operations, start=keys, end=ends)
def test_rocksdb_is_a_sorted_dictionary(
    ops: list[Any], start: bytes, end: bytes | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, model = tmp_path_factory.mktemp("kv") / "db", dict[bytes, bytes]()
    kv = RocksKV(folder, durable=False)
    for op in ops:
        if op == "commit":
            kv.close()
            kv = RocksKV(folder, durable=False)
        else:
            apply_to(model, *op)
            kv.write(*op)
        check(kv, model, start, end)
    kv.close()


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(before=operations, behind=operations, start=keys, end=ends)
def test_a_scratch_copy_is_a_dictionary_of_its_own(
    before: list[Any], behind: list[Any], start: bytes, end: bytes | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("kv") / "db"
    with RocksKV(folder, durable=False) as rocks:
        for base in (rocks, MemoryKV()):
            model = dict[bytes, bytes]()
            for op in before:
                if op != "commit":
                    apply_to(model, *op)
                    base.write(*op)
            copy, mine = base.scratch(), dict(model)
            overlay = OverlayKV(base)
            for op in behind:
                if op == "commit":
                    overlay.settle(copy)
                    assert overlay.written == 0
                else:
                    apply_to(mine, *op)
                    overlay.write(*op)
                check(overlay, mine, start, end)
            overlay.settle(copy)
            check(copy, mine, start, end)
            check(base, model, start, end)
    assert not (folder / "scratch").exists()
    with RocksKV(folder, durable=False) as rocks:
        check(rocks, model, start, end)


def test_a_scratch_copy_that_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    with RocksKV(tmp_path / "db", durable=False) as kv:
        kv.write([(b"a", b"1")])
        kv.scratch().write([(b"a", b"2")])
        shutil.copytree(tmp_path / "db" / "scratch", tmp_path / "left")
    (tmp_path / "left").rename(tmp_path / "db" / "scratch")
    with RocksKV(tmp_path / "db", durable=False) as kv:
        assert not (tmp_path / "db" / "scratch").exists()
        copy = kv.scratch()
        assert copy.get(b"a") == kv.get(b"a") == b"1"


@pytest.mark.parametrize(
    ("prefix", "end"), [(b"", None), (b"\xff\xff", None), (b"a", b"b"), (b"a\xff", b"b"), (b"\0", b"\x01")]
)
def test_prefix_end(prefix: bytes, end: bytes | None) -> None:
    assert prefix_end(prefix) == end


def test_a_scan_outlives_no_close_and_locks_no_folder(tmp_path: Path) -> None:
    kv = RocksKV(tmp_path / "db")
    kv.write([(b"a", b"1"), (b"b", b"2")])
    scan = kv.scan(b"", None)
    assert next(scan) == (b"a", b"1")
    kv.close()
    with pytest.raises(StateError, match="is closed"):
        next(scan)
    with RocksKV(tmp_path / "db") as again:
        assert list(again.scan(b"a", b"b")) == [(b"a", b"1")]


@pytest.mark.parametrize(
    "use",
    [
        lambda kv: kv.get(b"a"),
        lambda kv: kv.get_many([b"a"]),
        lambda kv: kv.write([]),
        lambda kv: kv.scan(b"", None),
        lambda kv: kv.between(b"", None),
    ],
)
def test_a_closed_map_says_so(use: Callable[[RocksKV], object], tmp_path: Path) -> None:
    kv = RocksKV(tmp_path / "db")
    kv.close()
    kv.close()
    with pytest.raises(StateError, match="is closed"):
        use(kv)


def test_a_second_opening_is_refused(tmp_path: Path) -> None:
    with RocksKV(tmp_path / "db"), pytest.raises(StateError, match="is in use"):
        RocksKV(tmp_path / "db")


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "db").write_text("text")
    with pytest.raises(StateError, match="is a file, not a folder"):
        RocksKV(tmp_path / "db")


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("text")
    with pytest.raises(StateError, match=r"holds 'notes\.txt' but no file CURRENT"):
        RocksKV(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_damaged_folder_is_refused(tmp_path: Path) -> None:
    with RocksKV(tmp_path / "db") as kv:
        kv.write([(b"a", b"1")])
    for file in (tmp_path / "db").glob("MANIFEST-*"):
        file.write_bytes(b"garbage" * 9)
    with pytest.raises(StateError, match="cannot be opened"):
        RocksKV(tmp_path / "db")


def test_a_folder_that_lost_its_manifest_is_not_begun_anew(tmp_path: Path) -> None:
    with RocksKV(tmp_path / "db") as kv:
        kv.write([(b"a", b"1")])
    (tmp_path / "db" / "CURRENT").unlink()
    with pytest.raises(StateError, match="no file CURRENT"):
        RocksKV(tmp_path / "db")


def test_changelog_bytes_stay_the_same() -> None:
    blob = encode_changelog([(b"a", b"b")], [b"x"], [(b"k", b"value"), (b"", b"")])
    assert blob.hex() == (
        "5653434c01000000" + "b092982b" + "3100000000000000" + "010000000100000002000000"
        "01000000" + "01000000" + "01000000" + "0100000000000000" + "0500000000000000" + "6162786b76616c7565"
    )
    assert decode_changelog(blob) == ([(b"a", b"b")], [b"x"], [(b"k", b"value"), (b"", b"")])


@pytest.mark.parametrize("size", [3, 400])
def test_a_damaged_changelog_is_refused_and_changes_nothing(size: int) -> None:
    blob = encode_changelog([], [b"x"], [(b"k%d" % at, b"v" * at) for at in range(size)])
    kv = MemoryKV()
    for cut in {*range(0, 40), len(blob) // 2, len(blob) - 1}:
        with pytest.raises(StateError):
            apply_changelog(kv, blob[:cut])
    for at in {*range(0, 60), len(blob) // 2, len(blob) - 1}:
        if at not in (6, 7):  # two bytes that are not used
            broken = bytearray(blob)
            broken[at] ^= 0x55
            with pytest.raises(StateError):
                apply_changelog(kv, bytes(broken))
    assert len(kv) == 0
    apply_changelog(kv, blob)
    assert len(kv) == size


def test_another_format_version_is_named() -> None:
    blob = bytearray(encode_changelog([], [], []))
    blob[4] = 9
    with pytest.raises(StateError, match="format version 9; this vsc reads format version 1"):
        apply_changelog(MemoryKV(), bytes(blob))


@pytest.mark.parametrize(
    "body", [b"", b"\0" * 11, b"\0" * 8 + b"\x01" + b"\0" * 3, b"\0" * 8 + b"\x01" + b"\0" * 3 + b"\x05" * 8]
)
def test_lengths_that_lie_are_refused(body: bytes) -> None:
    checked = len(body).to_bytes(8, "little") + body
    blob = b"VSCL\x01\0\0\0" + zlib.crc32(checked).to_bytes(4, "little") + checked
    with pytest.raises(StateError, match="the changelog is damaged"):
        decode_changelog(blob)


def test_a_folder_has_its_options_in_each_of_its_lives(tmp_path: Path) -> None:
    for _ in range(2):
        with RocksKV(tmp_path / "db", durable=False) as kv:
            kv.write([(b"a", b"1")])
    for file in (tmp_path / "db").glob("OPTIONS-*"):
        assert "filter_policy=bloomfilter" in file.read_text()


def test_a_folder_of_many_short_lives_has_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_rocks, "_IDLE_SECONDS", 1)  # a busy machine may begin a compaction late
    most = 0
    for i in range(40):
        with RocksKV(tmp_path / "db", durable=False) as kv:
            kv.write([(b"%d" % (j * 7919 % 1000), b"%06d" % i * 50) for j in range(i, i + 50)])
        most = max(most, len(list((tmp_path / "db").glob("*.sst"))))
    assert 1 < most <= 16  # eight, and those that were merged and are not swept yet


scans = st.lists(st.tuples(keys, ends, st.booleans(), st.integers(0, 9)), max_size=4)


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(keys, min_size=4), ops=st.lists(st.tuples(scans, write), min_size=1, max_size=8))
def test_what_scans_have_learnt_is_true(rows: list[bytes], ops: list[Any]) -> None:
    base = MemoryKV()
    base.write([(key, b"0") for key in rows])
    overlay, model = OverlayKV(base), {key: b"0" for key in rows}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kv_overlay, "_MANY", 1)
        for some, op in ops:
            begun = [islice(overlay.scan(start, end, reverse), most) for start, end, reverse, most in some]
            for scan in begun:
                list(scan)  # some give up before their end
            apply_to(model, *op)
            overlay.write(*op)
            check(overlay, model, b"", None)
            for key in KEYS:
                check(overlay, model, key, None)
                check(overlay, model, b"", key)
                check(overlay, model, key, key + b"\xff\xff")


def test_a_scan_across_a_commit_has_learnt_nothing_of_what_was_committed() -> None:
    base = MemoryKV()
    base.write([(b"q%d" % number, b"") for number in range(9)])
    overlay = OverlayKV(base)
    overlay.write([(b"q0", b"new")], [b"q%d" % number for number in range(1, 8)])
    scan = overlay.scan(b"q", b"r")
    assert next(scan) == (b"q0", b"new")
    overlay.commit()
    assert list(scan) == [(b"q8", b"")]
    assert list(overlay.scan(b"q", b"r")) == [(b"q0", b"new"), (b"q8", b"")]


class Counted(MemoryKV):
    """Counts the rows that scans give."""

    visited = 0

    def scan(self, start: bytes, end: bytes | None, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        for row in super().scan(start, end, reverse):
            self.visited += 1
            yield row


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("ranges", [False, True])
def test_a_queue_over_an_overlay_passes_what_it_has_deleted_once(reverse: bool, ranges: bool) -> None:
    base = Counted()
    queued = [b"q%04d" % number for number in range(1000)]
    base.write([(key, b"") for key in (b"a", b"z", *queued)])
    overlay, taken = OverlayKV(base), []
    while (found := next(overlay.scan(b"q", b"r", reverse), None)) is not None:
        taken.append(found[0])
        if ranges:
            overlay.write((), (), [(found[0], found[0] + b"\0")])
        else:
            overlay.write((), [found[0]])
        if len(taken) % 100 == 50:
            overlay.write([(found[0], b"again")])
            assert list(overlay.scan(found[0], found[0] + b"\0")) == [(found[0], b"again")]
            overlay.write((), [found[0]])
    assert taken == (queued[::-1] if reverse else queued)
    assert base.visited < 20 * len(queued)
    assert list(overlay.scan(b"", None)) == [(b"a", b""), (b"z", b"")]
