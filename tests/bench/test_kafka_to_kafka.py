"""The benchmark from Kafka to Kafka checks its results: by a computation that is right, and a digest that tells."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.kafka import floors
from bench.kafka_to_kafka.doors import Files
from bench.kafka_to_kafka.measure import Measured
from bench.kafka_to_kafka.peers import PEERS, QUIX, VSC
from bench.kafka_to_kafka.rows import GATE, Amount, Digest, Payments, Rates, digest_of
from bench.processes import cpu_seconds

FEW = Amount(keys=5, versions=3, warm_up=20, measured=200)


def _joined(payments: Payments, rates: Rates) -> list[bytes]:
    """One row at a time, the last version at or before its time."""
    found = []
    for key, number, amount, at in zip(payments.key, payments.id, payments.amount, payments.at, strict=True):
        versions = [(v, r) for k, r, v in zip(rates.key, rates.rate, rates.at, strict=True) if k == key and v <= at]
        row = {"id": int(number), "amount": int(amount)}
        found.append(json.dumps(row | ({"rate": int(max(versions)[1])} if versions else {})).encode())
    return found


def test_what_is_expected_is_the_join_row_by_row() -> None:
    rates, payments = Rates.of(FEW), Payments.of(FEW)
    results = _joined(payments, rates)
    assert payments.expected(rates) == digest_of(results)
    assert len(results) == FEW.rows == GATE + 220
    assert sum(b"rate" not in row for row in results) > 0


def test_a_digest_tells_results_apart() -> None:
    rows = [b'{"id":1,"amount":2,"rate":3}', b'{"id":2,"amount":2,"rate":null}']
    found = digest_of(rows)
    assert found.count == 2
    assert digest_of([b'{"rate":3,"key":"k","amount":2,"id":1}', b'{"id":2,"amount":2}'][::-1]) == found
    for other in (rows[:1], [*rows, rows[0]], [rows[0].replace(b"3", b"4"), rows[1]], [rows[0], rows[0]]):
        assert digest_of(other) != found
    assert digest_of([]) == Digest(0, 0)


def test_the_gate_opens_when_all_versions_are_there() -> None:
    rates, payments = Rates.of(FEW), Payments.of(FEW)
    assert payments.at[:GATE].min() > rates.at.max()
    assert len(set(rates.at.tolist())) == FEW.keys * FEW.versions
    assert payments.part(0, GATE).id.tolist() == list(range(GATE))


def test_files_are_seen_as_a_whole_and_results_once(tmp_path: Path) -> None:
    door = Files(tmp_path / "door")
    door.payments(Payments.of(FEW).part(0, 2))
    [path] = (tmp_path / "door/payments").iterdir()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [sorted(row) for row in rows] == [["amount", "at", "id", "key"]] * 2
    (tmp_path / "door/priced/0.json").write_text("a\nb\n")
    (tmp_path / "door/priced/_vsc-1").mkdir()
    assert door.results() == [b"a", b"b"]
    assert door.results() == []


def test_cpu_time_is_that_of_all_processes() -> None:
    work = "sum(range(30_000_000))"
    begin = "import subprocess, sys, time;"
    inner = f"subprocess.run([sys.executable, '-c', {work!r}]); print('done', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", begin + inner], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        used = cpu_seconds(process.pid)
        process.kill()
    assert 0.05 < used < 10


def test_a_slow_peer_is_measured_over_fewer_rows() -> None:
    assert VSC.amount(Amount()) == Amount()
    assert QUIX.amount(Amount()) == replace(Amount(), warm_up=50_000, measured=100_000)
    assert QUIX.amount(FEW) == FEW


def test_floors_are_ratios_of_rows_a_cpu_second() -> None:
    cpu = {"vsc": 10.0, "default": 25.0, "one": 8.0, "files": 8.0}
    found = {name: Measured(1000, spent, 1.0) for name, spent in cpu.items()}
    told = floors(found)
    assert [(floor.name.split(":")[0], floor.least) for floor in told] == [
        ("floor", 2.0),
        ("goal", 2.5),
        ("floor", 0.5),
        ("goal", 0.9),
    ]
    assert [floor.ratio for floor in told] == pytest.approx([2.5, 0.8, 0.8, 0.8])
    assert {peer.name for peer in PEERS} == {"vsc", "files", "default", "one", "once", "quix"}
