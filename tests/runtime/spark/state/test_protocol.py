"""The state protocol on its own: chains, stamps, folding, damage; no Spark."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from vsc.runtime.errors import StateError
from vsc.runtime.spark.state import local_folder, protocol
from vsc.runtime.spark.state.local_folder import LocalFolders, opened
from vsc.runtime.spark.state.protocol import STAMP_KEY, Manifest, PartitionState
from vsc.runtime.state.kv import LowerKV, MemoryKV, OrderedKV


class Blobs:
    """Spark's state of one key, as a dictionary."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.chunks: dict[tuple[str, int], bytes] = {}
        self.reads: list[str] = []

    def manifest(self) -> str | None:
        return self.text

    def set_manifest(self, text: str) -> None:
        self.text = text

    def get(self, blob: str, chunk: int) -> bytes | None:
        self.reads.append(blob)
        return self.chunks.get((blob, chunk))

    def put(self, blob: str, chunk: int, data: bytes) -> None:
        self.chunks[(blob, chunk)] = data

    def remove(self, blob: str, chunk: int) -> None:
        del self.chunks[(blob, chunk)]

    def copy(self) -> Blobs:
        other = Blobs()
        other.text, other.chunks = self.text, dict(self.chunks)
        return other

    @property
    def loaded(self) -> Manifest:
        return Manifest.load(self.text)


def epoch(blobs: Blobs, base: LowerKV, call: str, puts: dict[bytes, bytes], deletes: tuple[bytes, ...] = ()) -> None:
    state = PartitionState.open(blobs, base, blobs.loaded)
    state.kv.write(puts.items(), deletes)
    state.commit(call)


def calls(names: Iterable[str]) -> list[str]:
    """Which call has written each of these blobs."""
    return [name.rsplit("-", 1)[0] for name in names]


def rows(base: OrderedKV) -> dict[bytes, bytes]:
    return {k: v for k, v in base.scan(b"", None) if k != STAMP_KEY}


def test_the_local_store_is_a_committed_prefix_and_the_tail_is_replayed() -> None:
    blobs, base = Blobs(), MemoryKV()
    epoch(blobs, base, "e0", {b"a": b"1"})
    assert rows(base) == {}
    epoch(blobs, base, "e1", {b"b": b"2"}, (b"a",))
    assert rows(base) == {b"a": b"1"}
    assert calls([(base.get(STAMP_KEY) or b"").decode()]) == ["e0"]
    PartitionState.open(blobs, base, blobs.loaded)
    assert rows(base) == {b"b": b"2"}
    assert calls([(base.get(STAMP_KEY) or b"").decode()]) == ["e1"]
    assert calls(blobs.reads) == ["e0", "e1"]  # each once
    PartitionState.open(blobs, base, blobs.loaded)
    assert calls(blobs.reads) == ["e0", "e1"]


def test_a_failed_attempt_costs_nothing() -> None:
    blobs, base = Blobs(), MemoryKV()
    epoch(blobs, base, "e0", {b"a": b"1"})
    rolled_back = blobs.copy()
    epoch(rolled_back, base, "e1", {b"a": b"lost"})
    epoch(blobs, base, "e1", {b"a": b"won"})
    restored = PartitionState.open(blobs, base, blobs.loaded)
    assert restored.kv.get(b"a") == b"won"
    assert calls(b.name for b in blobs.loaded.blobs) == ["e0", "e1"]
    assert blobs.loaded.newest != rolled_back.loaded.newest


def test_attempts_that_write_the_same_write_the_same_bytes_under_one_name() -> None:
    """Whatever order they write in: so Spark may keep files of both."""
    found = []
    for keys in (b"abc", b"cba"):
        blobs, base = Blobs(), MemoryKV()
        epoch(blobs, base, "e0", {b"d": b"1", b"e": b"2"})
        epoch(blobs, base, "e1", {bytes([key]): b"1" for key in keys}, (b"d", b"e") if keys == b"abc" else (b"e", b"d"))
        found.append((blobs.text, blobs.chunks))
    assert found[0] == found[1]


def test_a_name_stands_for_all_that_was_written_before() -> None:
    one, other = Blobs(), Blobs()
    for blobs, value in ((one, b"1"), (other, b"2")):
        base = MemoryKV()
        epoch(blobs, base, "e0", {b"a": value})
        epoch(blobs, base, "e1", {b"b": b"1"})
    assert not PartitionState.fits(base, one.loaded)
    assert {blob.name for blob in one.loaded.blobs}.isdisjoint(blob.name for blob in other.loaded.blobs)


def test_a_stamp_that_is_not_in_the_chain_does_not_fit() -> None:
    blobs, base, other = Blobs(), MemoryKV(), MemoryKV()
    epoch(blobs, base, "e0", {b"a": b"1"})
    other.write([(STAMP_KEY, b"elsewhere"), (b"z", b"1")])
    assert not PartitionState.fits(other, blobs.loaded)
    assert PartitionState.fits(MemoryKV(), blobs.loaded)
    without_stamp = MemoryKV()
    without_stamp.write([(b"z", b"1")])
    assert not PartitionState.fits(without_stamp, blobs.loaded)


def test_an_epoch_that_writes_nothing_leaves_the_chain_as_it_was() -> None:
    blobs, base = Blobs(), MemoryKV()
    epoch(blobs, base, "e0", {b"a": b"1"})
    epoch(blobs, base, "e1", {})
    assert calls(b.name for b in blobs.loaded.blobs) == ["e0"]


def test_damage_names_the_blob() -> None:
    blobs, base = Blobs(), MemoryKV()
    epoch(blobs, base, "e0", {b"a": b"1"})
    assert blobs.text is not None
    (chunk, data) = next(iter(blobs.chunks.items()))
    blobs.chunks[chunk] = data[:-1] + bytes([data[-1] ^ 1])
    with pytest.raises(StateError, match=rf"blob '{chunk[0]}' .* damaged"):
        PartitionState.open(blobs, MemoryKV(), blobs.loaded)
    epoch(other := Blobs(), MemoryKV(), "e0", {b"a": b"2"})
    (blobs.chunks[chunk],) = other.chunks.values()  # a changelog with a right checksum, but not this one
    assert len(blobs.chunks[chunk]) == len(data)
    with pytest.raises(StateError, match=rf"blob '{chunk[0]}' .* damaged"):
        PartitionState.open(blobs, MemoryKV(), blobs.loaded)
    del blobs.chunks[chunk]
    with pytest.raises(StateError, match=rf"blob '{chunk[0]}' .* missing"):
        PartitionState.open(blobs, MemoryKV(), blobs.loaded)
    with pytest.raises(StateError, match="format version 9"):
        Manifest.load(json.dumps({"format": 9, "blobs": []}))
    for text in ("{", "[" * 100_000, "null", blobs.text.replace("e0", "e1"), blobs.text[:-1]):
        with pytest.raises(StateError, match=r"manifest .* damaged"):
            Manifest.load(text)


@pytest.mark.parametrize("number", [-1, 1 << 32, 1 << 33, True, 1.0, None])
def test_a_length_has_32_bits(number: object) -> None:
    assert _with_length((1 << 32) - 1).blobs[0].lengths == ((1 << 32) - 1,)
    with pytest.raises(StateError, match="a length or a checksum is not valid"):
        _with_length(number)


def _with_length(number: object) -> Manifest:
    """The manifest of one blob, as if it had this length."""
    epoch(blobs := Blobs(), MemoryKV(), "e0", {b"a": b"1"})
    document = json.loads(blobs.text or "")
    document["blobs"][0][3] = [number]
    document["check"] = zlib.crc32(json.dumps(document["blobs"], separators=(",", ":")).encode())
    return Manifest.load(json.dumps(document))


def test_a_call_is_spilled_only_above_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    state = PartitionState.open(Blobs(), MemoryKV(), Manifest())
    state.kv.write([(b"a", b"1")], ())
    for bound, outgrown in ((state.kv.size + 1, False), (state.kv.size, False), (state.kv.size - 1, True)):
        monkeypatch.setattr(protocol, "SPILL_BYTES", bound)
        assert state.outgrown is outgrown


def test_random_histories_with_lost_attempts_and_lost_disks_end_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "CHUNK_BYTES", 300)
    monkeypatch.setattr(protocol, "FOLD_BYTES", 1000)
    chance = random.Random(7)
    folders = LocalFolders(str(tmp_path), "ck", "run")
    blobs = Blobs()
    model: dict[bytes, bytes] = {}
    folded = 0
    for number in range(120):
        puts = {f"k{chance.randint(0, 60)}".encode(): chance.randbytes(chance.randint(0, 60)) for _ in range(8)}
        deletes = tuple({f"k{chance.randint(0, 60)}".encode() for _ in range(3)} - puts.keys())
        attempt = blobs.copy()
        with folders.partition(1, 0) as folder:
            if chance.random() < 0.1 and folder.exists():
                for file in folder.iterdir():
                    file.unlink()
            with opened(folder, attempt.loaded) as base:
                state = PartitionState.open(attempt, base, attempt.loaded)
                assert dict(state.kv.scan(b"k", None)) == model
                state.kv.write(puts.items(), deletes)
                state.commit(f"e{number}")
        if chance.random() < 0.25:
            continue  # Spark rolled this attempt back
        blobs = attempt
        model = {k: v for k, v in {**model, **puts}.items() if k not in deletes}
        manifest = blobs.loaded
        folded += manifest.blobs[0].name.endswith(".snapshot") and len(set(calls(b.name for b in manifest.blobs))) == 1
        snapshot = sum(b.size for b in manifest.blobs if b.kind == "snapshot")
        assert manifest.size - snapshot <= max(1000, snapshot) + 900
        assert set(blobs.chunks) == {(b.name, i) for b in manifest.blobs for i in range(len(b.lengths))}
    assert folded > 5


def test_a_taken_folder_and_folders_of_earlier_runs(tmp_path: Path) -> None:
    old = LocalFolders(str(tmp_path), "ck", "run-1")
    with old.partition(1, 0) as folder:
        folder.mkdir()
    new = LocalFolders(str(tmp_path), "ck", "run-2")
    with new.partition(1, 0) as first, new.partition(1, 0) as second:
        assert first != second
        second.mkdir()
    assert not second.exists()
    assert [f.name for f in tmp_path.iterdir()] == ["vsc-ck-run-2"]
    with old.partition(1, 0):  # a task of a dead driver that begins late
        assert sorted(f.name for f in tmp_path.iterdir()) == ["vsc-ck-run-1", "vsc-ck-run-2"]
    assert local_folder.new_run() < local_folder.new_run()
