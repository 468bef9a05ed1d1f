"""Bytes of a checkpoint and plans that somebody has changed: refused with our own errors, or read as what they say."""

from __future__ import annotations

import contextlib
import json
import struct
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.spark.support import compiled
from vsc.plan import PlanError, dump, load
from vsc.plan.nodes import Column, Schema
from vsc.plan.types import parse_type
from vsc.runtime.errors import CheckpointError, StateError
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.spark.base.checksummed import with_checksum as sealed_json
from vsc.runtime.spark.checkpoint.identity import IDENTITY, Identity, read_identity
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.pace import Pace, Wait
from vsc.runtime.spark.state import protocol
from vsc.runtime.spark.state.protocol import Manifest
from vsc.runtime.state.changelog import apply_changelog, decode_changelog, encode_changelog
from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.state.rows import RowCodec

QUIETLY = settings(derandomize=True, max_examples=60, deadline=None)
PLAN = dump(compiled((Path(__file__).resolve().parents[4] / "examples/payments/topology.vdsl").read_text()))
MANIFEST = json.loads(
    '{"format":2,"check":0,"blobs":[["1-1-0-x.snapshot","snapshot","0-1-0-y",[10,20],[1,2]],'
    '["2-1-0-z","changelog","2-1-0-z",[5],[77]]]}'
)
CHANGELOG = encode_changelog([(b"a", b"b")], [b"gone"], [(f"key {i}".encode(), b"value" * i) for i in range(60)])

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON document."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


def changed(document: Any, path: tuple[Any, ...], to: Any) -> Any:
    """A copy of the document with something else at one place."""
    copy = json.loads(json.dumps(document))
    if not path:
        return to
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return copy


def with_checksum(body: bytes, codec: int = 0, size: int | None = None) -> bytes:
    """A changelog around any body, with the right checksum."""
    checked = struct.pack("<Q", len(body) if size is None else size) + body
    return struct.pack("<4sBBH", b"VSCL", 1, codec, 0) + struct.pack("<I", zlib.crc32(checked)) + checked


@QUIETLY
@given(at=st.integers(0, len(CHANGELOG) - 1), flip=st.integers(1, 255), cut=st.integers(0, len(CHANGELOG)))
def test_a_changelog_with_any_other_byte_or_length_is_refused_and_writes_nothing(at: int, flip: int, cut: int) -> None:
    flipped = bytearray(CHANGELOG)
    flipped[at] ^= flip
    for blob in (bytes(flipped), CHANGELOG[:cut], CHANGELOG + b"\0"):
        if blob != CHANGELOG and not 6 <= at < 8:  # two bytes have no meaning yet
            kv = MemoryKV()
            with pytest.raises(StateError):
                apply_changelog(kv, blob)
            assert len(kv) == 0


@QUIETLY
@given(body=st.binary(max_size=80), codec=st.integers(0, 3), size=st.none() | st.integers(0, 2**64 - 1))
def test_a_changelog_that_is_wrong_but_has_the_right_checksum_is_refused(
    body: bytes, codec: int, size: int | None
) -> None:
    packed = pa.compress(body, codec="lz4", asbytes=True) if codec == 2 else body
    try:
        ranges, deletes, puts = decode_changelog(with_checksum(packed, min(codec, 1) if codec == 2 else codec, size))
    except StateError:
        return
    assert 4 * (2 * len(ranges) + len(deletes) + 2 * len(puts)) < max(len(body), 13)


@pytest.mark.parametrize(
    ("body", "codec", "size", "words"),
    [
        (struct.pack("<III", 0, 0, 1) + struct.pack("<II", 1, 1) + b"kv!", 0, None, "lengths do not fit its content"),
        (struct.pack("<III", 0, 0, 1) + struct.pack("<II", 1, 9) + b"kv", 0, None, "lengths do not fit its content"),
        (struct.pack("<III", 0, 0, 9) + struct.pack("<II", 1, 1) + b"kv", 0, None, "fewer lengths than it counts"),
        (b"\0" * 40, 1, 1 << 40, "it cannot be as long as it says"),
    ],
)  # fmt: skip
def test_a_changelog_that_claims_more_than_it_has(body: bytes, codec: int, size: int | None, words: str) -> None:
    with pytest.raises(StateError, match=words):
        decode_changelog(with_checksum(body, codec, size))


def test_a_manifest_that_is_too_long_is_not_even_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Manifest().dump()
    monkeypatch.setattr(protocol, "MAX_MANIFEST", len(text))
    Manifest.load(text)
    with pytest.raises(StateError, match=f"longer than {len(text)} characters"):
        Manifest.load(text + " ")


@QUIETLY
@given(place=st.sampled_from(places(MANIFEST)), to=JSON, check=st.booleans())
def test_a_manifest_is_refused_or_names_blobs(place: tuple[Any, ...], to: Any, check: bool) -> None:
    document = changed(MANIFEST, place, to)
    if check and isinstance(document, dict) and "blobs" in document and place != ("check",):
        document["check"] = zlib.crc32(json.dumps(document["blobs"], separators=(",", ":")).encode())
    try:
        manifest = Manifest.load(json.dumps(document))
    except StateError:
        return
    assert check or document == MANIFEST, "another manifest under the old checksum"
    assert all(
        len(blob.lengths) == len(blob.checksums) and min(blob.lengths, default=0) >= 0 for blob in manifest.blobs
    )


@QUIETLY
@given(place=st.sampled_from(places(json.loads(PLAN))), to=JSON)
def test_a_plan_is_refused_or_is_one(place: tuple[Any, ...], to: Any) -> None:
    try:
        plan = load(json.dumps(changed(json.loads(PLAN), place, to)))
    except PlanError:
        return
    assert load(dump(plan)) == plan


@QUIETLY
@given(at=st.integers(0, len(PLAN) - 1), to=st.sampled_from(list('{}[]",:\\0e-')), cut=st.integers(0, len(PLAN) - 2))
def test_a_plan_with_another_character_is_refused_or_is_one(at: int, to: str, cut: int) -> None:
    for text in (PLAN[:at] + to + PLAN[at + 1 :], PLAN[:cut]):
        try:
            assert load(dump(load(text))) == load(text)
        except PlanError:
            continue


class Folder:
    """A checkpoint's folder, in memory."""

    root = "ck"

    def __init__(self, **contents: str) -> None:
        self.contents = contents

    def exists(self, name: str = "") -> bool:
        return name in self.contents

    def read(self, name: str) -> str:
        return self.contents[name]

    def names(self, name: str = "") -> list[str]:
        return []


HOSTILE = [
    ("id", "../../../home"), ("id", "0" * 31 + "/"), ("id", "0" * 32 + "\n"), ("id", 7), ("id", None),
    ("partitions", 0), ("partitions", True), ("partitions", "4"), ("format", "2"), ("format", None),
]  # fmt: skip


@pytest.mark.parametrize(("member", "value"), HOSTILE)
def test_an_identity_that_leads_elsewhere_is_refused_though_its_checksum_is_right(member: str, value: Any) -> None:
    """The id becomes part of the paths of local folders, which are swept, and of sinks' files."""
    whole = Identity("0123456789abcdef" * 2, 4, PLAN)
    files: Any = Folder(**{IDENTITY: whole.dump("x"), "vsc/plan.json": PLAN})
    assert read_identity(files) == whole
    data = json.loads(whole.dump("x"))
    del data["check"]
    files.contents[IDENTITY] = sealed_json({**data, member: value})
    with pytest.raises(CheckpointError, match=r"ck/vsc/identity\.json is damaged"):
        read_identity(files)


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"a":' * 100_000, "\0", '{"format": 1e999}'])
def test_an_identity_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(CheckpointError, match=r"ck/vsc/identity\.json is damaged"):
        read_identity(cast(Any, Folder(**{IDENTITY: text})))


PACE = json.loads(Pace({"s": Wait(5, "file:/a"), "t": Wait()}, {"1-0": 7}).dump())
REPORT = json.loads(json.dumps(EpochReport(3, read=Counter(s=4), written=Counter(x=1), clocks={"s": 9}).as_dict()))


@QUIETLY
@given(place=st.sampled_from(places(PACE)), to=JSON)
def test_a_pace_is_refused_or_is_one(place: tuple[Any, ...], to: Any) -> None:
    with contextlib.suppress(CheckpointError):
        pace = Pace.load(json.dumps(changed(PACE, place, to)))
        pace.frontier({name: 1 for name in pace.waits}, {})
        pace.left(EpochReport(1))
        assert Pace.load(pace.dump()) == pace


@QUIETLY
@given(place=st.sampled_from(places(REPORT)), to=JSON)
def test_a_report_is_refused_or_says_how_far_sources_have_come(place: tuple[Any, ...], to: Any) -> None:
    with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
        report = EpochReport.from_dict(changed(REPORT, place, to))
        assert max(report.clocks.values(), default=0) >= min(report.clocks.values(), default=0)
        Pace.load(json.dumps(PACE)).left(report)


TYPES = [
    parse_type(t) for t in ("bigint", "string", "array<int>", "map<string,decimal(20,3)>", "struct<a:array<date>>")
]
ROW = RowCodec(TYPES).encode((1, "text", [1, None], {"k": None}, ([3, 4],)))


@QUIETLY
@given(at=st.integers(0, len(ROW) - 1), to=st.binary(min_size=1, max_size=4), cut=st.integers(0, len(ROW)))
def test_a_row_with_other_bytes_is_refused_or_one_of_its_types(at: int, to: bytes, cut: int) -> None:
    codec = RowCodec(TYPES)
    for data in (ROW[:at] + to + ROW[at + len(to) :], ROW[:cut]):
        with contextlib.suppress(ValueError):
            assert len(codec.decode(data)) == len(TYPES)
        with contextlib.suppress(ValueError):
            for column in codec.decode_columns(pa.array([ROW, data, ROW], pa.binary())):
                column.validate()
                assert len(column) == 3


def test_a_list_that_says_that_it_is_long_takes_no_memory() -> None:
    data = bytearray(RowCodec(TYPES[2:3]).encode(([1, 2],)))
    at = data.index(struct.pack("<I", 2), 3)
    data[at : at + 4] = b"\xff\xff\xff\xff"
    with pytest.raises(ValueError, match="a nested value is cut short"):
        RowCodec(TYPES[2:3]).decode(bytes(data))


SCHEMA = Schema((Column("k", parse_type("string")),), (Column("v", parse_type("bigint")),))
_RANGE = np.arange(4, dtype=np.int64)
BATCH = Batch(
    SCHEMA, (Origin("s", 0, "p"),), Order(_RANGE, np.zeros(4, np.int32), _RANGE, _RANGE.reshape(4, 1)), _RANGE,
    np.ones(4, np.bool_), (pa.array(["a", "bb", "", "ccc"]),), (pa.array([1, None, 3, 4]),),
).to_ipc()  # fmt: skip


@QUIETLY
@given(at=st.integers(0, len(BATCH) - 1), to=st.binary(min_size=1, max_size=4), cut=st.integers(0, len(BATCH)))
def test_a_batch_with_other_bytes_is_refused_or_can_be_read(at: int, to: bytes, cut: int) -> None:
    for data in (BATCH[:at] + to + BATCH[at + len(to) :], BATCH[:cut]):
        with contextlib.suppress(StateError):
            batch = Batch.from_ipc(data, SCHEMA, trusted=False)
            assert len(batch) <= 4
            assert [len(column.to_pylist()) for column in batch.columns] == [len(batch)] * 2
