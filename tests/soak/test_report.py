"""What the soak says at its end, and how its rounds follow each other. No Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from soak import rounds as module
from soak.__main__ import report
from soak.job import CLUSTER, KINDS, LOCAL
from soak.rounds import Kill, Limit, Pace, Plan, Round, SoakError, is_spark_error, soak
from soak.subjects import ROOT

PLAN = Plan(4, 1, KINDS, ("flights", "shop"), 5, 45)


def played(kills: int, *faults: str, ended: bool = True) -> Round:
    return Round("shop", LOCAL, (Kill("tree", "computing", 3),) * kills, kills + 1, 9.5, faults, ended)


@pytest.mark.parametrize(
    ("rounds", "good", "words"),
    [
        ([played(2), played(2)], True, "4 of 4 kills in 2 rounds, 6 lives, 1.5 minutes: every round that ended as"),
        ([played(2), played(1)], False, "45 minutes did not suffice for all kills"),
        ([], False, "0 of 4 kills in 0 rounds"),
        ([played(4, "sink named: 1 row")], False, "1 of 1 rounds DIFFER\n  shop on local[2,3]: sink named: 1 row"),
        ([played(4, ended=False)], False, "the last round did not end in time"),
    ],
)
def test_the_report(rounds: list[Round], good: bool, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(PLAN, rounds, 90) == good
    said = capsys.readouterr().out
    assert words in said
    table = [line.split() for line in said.splitlines()[2:5]]
    assert table == [["tree", "0", str(sum(len(found.kills) for found in rounds)), "0", "0"]] + [
        [kind, "0", "0", "0", "0"] for kind in KINDS[1:]
    ]


def test_a_killed_worker_may_end_a_run_but_with_no_other_error_of_ours() -> None:
    lost = "error[VSC926]: a Python worker of Spark ended at work"
    assert is_spark_error("") and is_spark_error("StreamingQueryException") and is_spark_error(f"{lost}\n{lost}")
    assert not is_spark_error("error[VSC904]: damaged") and not is_spark_error(f"{lost}\nerror[VSC904]: damaged")


class Player:
    """Plays rounds that kill as often as they may, three times at most."""

    masters: list[tuple[str, str, tuple[str, ...]]] = []  # noqa: RUF012  # of one test at a time
    faults: tuple[str, ...] = ()

    def __init__(self, job: Any, plan: Plan, kinds: tuple[str, ...], *more: Any) -> None:
        job.folder.mkdir(parents=True)
        self.name, self.master = job.subject.name, job.master
        self.masters.append((self.name, self.master, kinds))

    def run(self, kills: int, expected: Any) -> Round:
        killed = (Kill("tree", "computing", 3),) * min(kills, 3)
        return Round(self.name, self.master, killed, 4, 1.0, self.faults if self.name == "shop" else ())


@pytest.fixture
def player(monkeypatch: pytest.MonkeyPatch) -> type[Player]:
    monkeypatch.setattr(module, "_Play", Player)
    monkeypatch.setattr(module, "content", lambda job: {"s": pa.table({})})
    monkeypatch.setattr(Player, "masters", [])
    monkeypatch.setattr(Player, "faults", ())
    return Player


def run(tmp_path: Path, kills: int) -> list[int]:
    plan = Plan(kills, 1, KINDS, ("flights", "shop"), 3, 1)
    return [len(r.kills) for r in soak(plan, tmp_path, lambda _: None, limit(1), lambda job, limit: Pace(1, 1))]


def limit(minutes: float) -> Limit:
    return Limit(time.monotonic() + 60 * minutes)


def test_topologies_take_turns_and_every_other_round_has_executors(tmp_path: Path, player: type[Player]) -> None:
    assert run(tmp_path, 13) == [3, 3, 3, 3, 1]
    both = ("tree", "workers")
    assert player.masters == [
        ("flights", CLUSTER, KINDS), ("shop", CLUSTER, KINDS), ("flights", LOCAL, both), ("shop", LOCAL, both),
        ("flights", CLUSTER, KINDS),
    ]  # fmt: skip


def test_without_the_time_for_a_run_no_round_begins(tmp_path: Path, player: type[Player]) -> None:
    plan = Plan(4, 1, KINDS, ("flights",), 3, minutes=1)
    for epoch, rounds in ((9, 2), (10, 0)):
        folder = tmp_path / str(epoch)
        undisturbed = lambda job, limit, e=epoch: Pace(1, e)  # noqa: E731
        assert len(soak(plan, folder, lambda _: None, limit(1), undisturbed)) == rounds


def test_a_bad_round_is_the_last_of_its_topology_and_is_kept(
    tmp_path: Path, player: type[Player], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player, "faults", ("bad",))
    assert run(tmp_path, 12) == [3, 3, 3]
    assert [name for name, _, _ in player.masters] == ["flights", "shop", "flights"]
    assert sorted(path.name for path in tmp_path.glob("*/round-*")) == ["round-1"]


def test_what_an_undisturbed_run_leaves_behind_ends_the_soak(tmp_path: Path) -> None:
    def undisturbed(job: Any, limit: Limit) -> Pace:
        (job.folder / "out/departures").mkdir()
        (job.folder / "out/departures/part-0.parquet").touch()
        return Pace(1, 1)

    with pytest.raises(SoakError, match=r"flights: the undisturbed run left something behind: .*part-0\.parquet"):
        soak(PLAN, tmp_path, lambda _: None, limit(45), undisturbed)


def test_a_soak_that_is_stopped_ends_with_the_rounds_so_far(tmp_path: Path, player: type[Player]) -> None:
    ends = limit(1)

    def tell(line: str) -> None:
        ends.stopped = ends.stopped or "kills" in line

    rounds = soak(PLAN, tmp_path / "a", tell, ends, lambda job, limit: Pace(1, 1))
    assert [(found.subject, found.ended) for found in rounds] == [("flights", True)]
    assert soak(PLAN, tmp_path / "b", tell, ends, lambda job, limit: Pace(1, 1)) == []


SLEEPER = """
import sys
from soak import __main__ as soak, job, rounds
sleeping = "import time; print('{\\"event\\"', flush=True); time.sleep(600)"
job.Job.command = property(lambda self: [sys.executable, "-c", sleeping])
job.Job.committed = property(lambda self: -1)
if sys.argv[1] == "round":
    rounds.by_command = lambda job, limit: rounds.Pace(1, 1)
    rounds.content = lambda job: {}
sys.exit(soak.main(["--kills", "2", "--subjects", "shop", "--epochs", "1", "--kinds", "workers"]))
"""


@pytest.mark.quick(1)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("place", ["undisturbed run", "round"])
def test_a_signal_ends_what_was_started_and_prints_the_report(
    number: int, status: int, place: str, tmp_path: Path
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER, place], stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )
    while not (logs := list(tmp_path.rglob("log"))) or '{"event"' not in logs[0].read_text():
        assert process.poll() is None
        time.sleep(0.02)
    (sleeper,) = psutil.Process(process.pid).children()
    process.send_signal(number)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == status
    assert not sleeper.is_running()
    rounds = 1 if place == "round" else 0
    assert f"0 of 2 kills in {rounds} rounds, {rounds} lives" in said and "interrupted: of a round" in said
    assert list(tmp_path.iterdir()) == []
