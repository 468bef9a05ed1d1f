"""Bytes of a checkpoint and plans that somebody has changed: refused with our own errors, or read as what they say."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spark.support import compiled
from vsc.plan import PlanError, dump, load
from vsc.runtime.errors import StateError
from vsc.runtime.spark.protocol import Manifest
from vsc.runtime.state.changelog import apply_changelog, decode_changelog, encode_changelog
from vsc.runtime.state.kv import MemoryKV

QUIETLY = settings(derandomize=True, max_examples=60, deadline=None)
PLAN = dump(compiled((Path(__file__).resolve().parents[2] / "examples/payments/topology.vdsl").read_text()))
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


def sealed(body: bytes, codec: int = 0, size: int | None = None) -> bytes:
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
        ranges, deletes, puts = decode_changelog(sealed(packed, min(codec, 1) if codec == 2 else codec, size))
    except StateError:
        return
    assert 4 * (2 * len(ranges) + len(deletes) + 2 * len(puts)) < max(len(body), 13)


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
