"""A soak: rounds of a topology, each killed at random points until its kills are used up, then run to its end.

After every kill, the same command is run again. A round ends with a verdict: what its sinks hold, compared with what an
undisturbed run wrote. Nothing here waits for ever: a life without progress and the whole soak have time limits.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from soak.compare import Content, content, differences, leftovers
from soak.job import CLUSTER, LOCAL, Job, Life
from soak.subjects import SUBJECTS
from vsc.runtime.errors import LostProcessError

__all__ = ["Kill", "Limit", "Pace", "Plan", "Round", "SoakError", "Undisturbed", "by_command", "is_spark_error", "soak"]

STUCK_SECONDS = 600
"""A life that commits no epoch for this long counts as hung."""
_POLL_SECONDS = 0.02
_KILLS_A_ROUND = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do.

    `kills` is the total over all `subjects`; they take turns over `kinds` (one that is named twice comes twice as
    often). `epochs` is the size of the input, `minutes` bounds everything. `starting` is the share of kills that come
    at any time after the start of a life; the others come during an epoch.
    """

    kills: int
    seed: int
    kinds: tuple[str, ...]
    subjects: tuple[str, ...]
    epochs: int
    minutes: float
    starting: float = 0.25


@dataclass(frozen=True, slots=True)
class Kill:
    """What was killed and when: the phase, as far as it is visible from outside, and the newest committed epoch."""

    kind: str
    phase: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Round:
    """One job from its first start to its end. `faults` is empty if its sinks hold what they should.

    `ended` is False for a round that ran out of time or was interrupted: nothing is known about it.
    """

    subject: str
    master: str
    kills: tuple[Kill, ...]
    lives: int
    seconds: float
    faults: tuple[str, ...]
    ended: bool = True


@dataclass(frozen=True, slots=True)
class Pace:
    """How long an undisturbed run takes, in seconds: until the end of its first epoch, and for each later epoch."""

    start: float
    epoch: float

    def whole(self, epochs: int) -> float:
        """Twice the time for a whole run, in case the machine gets busier."""
        return 2 * (self.start + epochs * self.epoch)


@dataclass(slots=True)
class Limit:
    """When the soak has to end: at `deadline` (on the monotonic clock), or as soon as it is `stopped`."""

    deadline: float
    stopped: bool = False

    def leaves(self, seconds: float) -> bool:
        """Whether that much time is left."""
        return not self.stopped and time.monotonic() + seconds < self.deadline


Undisturbed = Callable[[Job, Limit], Pace]
"""Runs a job without killing it, and returns its pace."""


class SoakError(Exception):
    """The undisturbed run failed, so there is nothing to compare with."""


class Stuck(Exception):
    """A life makes no progress."""


class OutOfTime(Exception):
    """The soak's time is up, or it was stopped."""


def soak(
    plan: Plan, folder: Path, tell: Callable[[str], None], limit: Limit, undisturbed: Undisturbed | None = None
) -> list[Round]:
    """Runs the plan in `folder`, the topologies in turn. Reports each round to `tell` as it ends.

    `undisturbed` runs a job that is not killed (None: by its command). A topology's first bad round is its last. Once
    only the time for one run is left, nothing more is killed, so that each round gets its verdict. Raises SoakError if
    an undisturbed run fails. Once `limit` is stopped, everything that was started is killed, and the rounds so far are
    returned.
    """
    chance = random.Random(plan.seed)
    try:
        expected = _references(plan, folder, tell, limit, undisturbed or by_command)
    except OutOfTime:
        return []
    left = {name: plan.kills // len(plan.subjects) for name in plan.subjects}
    left[plan.subjects[0]] += plan.kills % len(plan.subjects)
    rounds: list[Round] = []
    while any(left.values()):
        number = len(rounds)
        name = max(left, key=lambda one: left[one])  # the most kills left; of several, the first
        if not limit.leaves(expected[name][1].whole(plan.epochs)):
            break
        kinds, master = _setting(plan.kinds, sum(r.subject == name for r in rounds))
        job = Job(SUBJECTS[name], folder / name / f"round-{number}", master)
        play = _Play(job, plan, kinds, expected[name][1], chance, limit)
        found = play.run(min(left[name], _KILLS_A_ROUND), expected[name][0])
        rounds.append(found)
        left[name] = left[name] - len(found.kills) if found.ended and not found.faults else 0
        tell(_told(found))
        if not found.faults:
            shutil.rmtree(job.folder)
    return rounds


def _references(
    plan: Plan, folder: Path, tell: Callable[[str], None], limit: Limit, undisturbed: Undisturbed
) -> dict[str, tuple[Content, Pace]]:
    """What an undisturbed run of each topology writes, and its pace."""
    found = {}
    for name in plan.subjects:
        job = Job(SUBJECTS[name], folder / name / "reference")
        job.prepare(plan.epochs, plan.seed)
        pace = undisturbed(job, limit)
        faults = list(leftovers(job))
        if faults:
            raise SoakError(f"{name}: the undisturbed run left something behind: {faults}")
        found[name] = content(job), pace
        tell(f"{name}: undisturbed, the first epoch ends after {pace.start:.1f} s, each more takes {pace.epoch:.1f} s")
    return found


def _setting(kinds: Sequence[str], number: int) -> tuple[tuple[str, ...], str]:
    """What is killed in a topology's round, and the master. Only a cluster has executors; every other round has one."""
    if "executor" in kinds and (len(kinds) == 1 or number % 2 == 0):
        return tuple(kinds), CLUSTER
    return tuple(kind for kind in kinds if kind != "executor"), LOCAL


def is_spark_error(output: str) -> bool:
    """Whether a run has ended with no error but Spark's, or that Spark has lost processes, as it may after a kill."""
    return set(re.findall(r"error\[(VSC\d+)\]", output)) <= {LostProcessError.code}


def _told(found: Round) -> str:
    verdict = "as undisturbed" if found.ended else "not ended"
    if found.faults:
        verdict = "DIFFERS: " + "; ".join(found.faults)
    counts = f"{len(found.kills)} kills, {found.lives} lives, {found.seconds:.0f} s"
    return f"{found.subject} on {found.master}: {counts}: {verdict}"


def by_command(job: Job, limit: Limit) -> Pace:
    """Runs a job to its end, and returns its pace.

    Raises SoakError if it fails, OutOfTime if it is stopped.
    """
    name = job.subject.name
    life = job.start()
    started = time.monotonic()
    first: float | None = None
    try:
        while life.status is None:
            if first is None and job.committed >= 0:
                first = time.monotonic() - started
            if not limit.stopped and not limit.leaves(0):
                raise SoakError(f"{name}: the undisturbed run did not end in time")
            if limit.stopped:
                break
            time.sleep(_POLL_SECONDS)
    finally:
        life.kill("tree")
    if limit.stopped:
        raise OutOfTime
    if life.status != 0:
        raise SoakError(f"{name}: the undisturbed run ended with status {life.status}: {life.output[-2000:]}")
    total, epochs = time.monotonic() - started, job.committed + 1
    first = total if first is None else first
    return Pace(first, (total - first) / max(epochs - 1, 1))


class _Play:
    """One round."""

    def __init__(
        self, job: Job, plan: Plan, kinds: Sequence[str], pace: Pace, chance: random.Random, limit: Limit
    ) -> None:
        self._job = job
        self._plan = plan
        self._kinds = kinds
        self._deck: list[str] = []
        self._pace = pace
        self._chance = chance
        self._limit = limit
        self._kills: list[Kill] = []
        self._lives = 0

    def run(self, kills: int, expected: Content) -> Round:
        """Kills up to `kills` times, then lets it end."""
        started = time.monotonic()
        self._job.prepare(self._plan.epochs, self._plan.seed)
        ended, faults = True, []
        try:
            faults = self._played(kills)
        except Stuck as error:
            faults = [str(error)]
        except OutOfTime:
            ended = False
        if ended and not faults:
            subject = self._job.subject
            faults = [*differences(subject.sinks, expected, content(self._job)), *leftovers(self._job)]
        return Round(
            self._job.subject.name, self._job.master, tuple(self._kills), self._lives, time.monotonic() - started,
            tuple(faults), ended,
        )  # fmt: skip

    def _played(self, kills: int) -> list[str]:
        while True:
            life = self._job.start()
            self._lives += 1
            hurt = False
            try:
                while len(self._kills) < kills and self._in_time() and self._until_the_moment(life):
                    hurt = self._kill(life) or hurt
                self._until(life, lambda: False)
            finally:
                if life.status is None:
                    life.kill("tree")
            if life.status == 0:
                return []
            if not hurt or not is_spark_error(life.output):
                return [f"the command failed unprovoked, with status {life.status}: {life.output[-2000:]}"]

    def _in_time(self) -> bool:
        """Whether the round could still end in time if the next kill destroyed all progress."""
        return self._limit.leaves(self._pace.whole(self._plan.epochs - self._job.committed))

    def _kill(self, life: Life) -> bool:
        if not self._deck:
            self._deck = self._chance.sample(self._kinds, len(self._kinds))
        kind = self._deck[-1]
        phase, epoch = life.phase, self._job.committed
        if not life.kill(kind):
            return False
        self._deck.pop()
        self._kills.append(Kill(kind, phase, epoch))
        self._job.note(f"killed: {kind} while {phase}, after epoch {epoch}")
        return True

    def _until_the_moment(self, life: Life) -> bool:
        """Waits for a random point in this life, or in what is left of it. False if it ended before that."""
        committed = self._job.committed
        if self._chance.random() < self._plan.starting:
            wait = self._chance.uniform(0, self._pace.start)
        else:
            epochs = self._chance.randint(0, 2)
            if not self._until(life, lambda: life.at_work and self._in_epoch(committed + epochs)):
                return False
            wait = self._chance.uniform(0, self._pace.epoch)
        moment = time.monotonic() + wait
        return self._until(life, lambda: time.monotonic() >= moment)

    def _in_epoch(self, committed: int) -> bool:
        """Whether epoch `committed` is done and a later one is in progress."""
        return self._job.planned > self._job.committed >= committed

    def _until(self, life: Life, reached: Callable[[], bool]) -> bool:
        """Waits until `reached` is true. False if the process ends first. May raise Stuck or OutOfTime."""
        committed, since = self._job.committed, time.monotonic()
        while life.status is None:
            if reached():
                return True
            now = time.monotonic()
            if self._job.committed != committed:
                committed, since = self._job.committed, now
            if now - since > STUCK_SECONDS:
                raise Stuck(f"no epoch was committed for {STUCK_SECONDS} s after epoch {committed}")
            if not self._limit.leaves(0):
                raise OutOfTime
            time.sleep(_POLL_SECONDS)
        if self._limit.stopped:  # Ctrl-C reaches the command too, which may end first
            raise OutOfTime
        return False
