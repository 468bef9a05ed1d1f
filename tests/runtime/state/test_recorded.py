"""What the real Kafka Streams answered, replayed on both stores, one operation at a time and in batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vsc.runtime.state import InMemoryVersionedStore, OutcomeKind, PutOutcome, RocksDBVersionedStore, VersionedRecord

# Kafka's unit test deletes here and asserts nothing; the null in the export is not an expectation. The recordings of
# the real store (which have many such deletes under a retention of 0) say that the version of timestamp 12 is returned.
NOT_ASSERTED = ("shouldAllowZeroHistoryRetention", 11)

RECORDED = Path(__file__).parent / "recorded"
TESTS = [
    pytest.param(test, id=f"{file.stem}-{test['name']}")
    for file in sorted(RECORDED.glob("*.json"))
    for test in json.loads(file.read_text("utf-8"))["tests"]
]


def test_all_recordings_are_here() -> None:
    assert {file.name for file in RECORDED.glob("*.json")} == {"kafka_unit_tests.json", "recorded.json"}
    assert len(TESTS) > 100


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
def test_store_answers_as_kafka_did(test: dict[str, Any], kind: str, tmp_path: Path) -> None:
    durations = {"history_retention_ms": test["history_retention"], "segment_interval_ms": test["segment_interval"]}
    store: Any = (
        InMemoryVersionedStore(**durations)
        if kind == "memory"
        else RocksDBVersionedStore(tmp_path / "store", **durations)
    )
    with store:
        for at, op in enumerate(test["ops"]):
            answer = _answer(store, op)
            if (test["name"], at) == NOT_ASSERTED:
                assert answer == {"value": "v2", "ts": 12}
            else:
                assert answer == _expected(op), f"operation {at}: {op}"


def _answer(store: Any, op: dict[str, Any]) -> object:
    key = op["key"].encode()
    match op["op"]:
        case "put":
            return store.put(key, None if op["value"] is None else op["value"].encode(), op["ts"])
        case "delete":
            return _seen(store.delete(key, op["ts"]), op)
        case "get":
            return _seen(store.get(key), op)
        case "get_as_of":
            return _seen(store.get(key, as_of=op["as_of"]), op)
        case other:
            raise AssertionError(f"unknown operation {other}")


def _seen(found: VersionedRecord | None, op: dict[str, Any]) -> object:
    if found is None:
        return None
    seen = {"value": found.value.decode(), "ts": found.valid_from}
    return seen | ({"valid_to": found.valid_to} if "valid_to" in (op["returns"] or {}) else {})


def _expected(op: dict[str, Any]) -> object:
    returns = op["returns"]
    if op["op"] != "put":
        return returns
    if isinstance(returns, dict):
        return PutOutcome(OutcomeKind.SUPERSEDED, returns["superseded"])
    return PutOutcome(OutcomeKind(returns))
