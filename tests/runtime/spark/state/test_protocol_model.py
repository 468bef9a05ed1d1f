"""A model of the state protocol, driven at random: whatever dies, lags behind or is repeated, the state is that of a
dictionary, and every invariant of ``docs/inside/state-protocol.md`` that can be seen from outside holds after each
step.

The code under test is the real one: chains, manifests and folding of `protocol`, folders, locks and sweeps of
`local_folder`. Only Spark, RocksDB and time are simulated, in `tests.runtime.spark.state.simulated`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.runtime.spark.state.simulated import Attempt, Disks, Rows, SparkState, Writes, rows_of
from vsc.runtime.spark.state import protocol
from vsc.runtime.spark.state.local_folder import LocalFolders
from vsc.runtime.spark.state.protocol import STAMP_KEY, Manifest, PartitionState
from vsc.runtime.state.kv import MemoryKV

CHUNK, FOLD = 60, 120
"""Bytes: so small that snapshots are in several chunks, and that two or three epochs are worth folding."""
PARTITIONS, EXECUTORS = range(2), range(2)
# Few keys, one of them the beginning of another.
KEYS = st.sampled_from([b"k", b"k\0", b"ka", b"kab", b"kb"])
VALUES = st.one_of(st.none(), st.binary(min_size=1, max_size=40))
RANGES = st.tuples(KEYS, KEYS).map(lambda pair: (min(pair), max(pair)))
WRITES = st.builds(
    Writes,
    st.lists(RANGES, max_size=1).map(tuple),
    st.dictionaries(KEYS, VALUES, min_size=1, max_size=4).map(lambda found: tuple(found.items())),
)
PORTIONS = st.lists(WRITES, min_size=1, max_size=3).map(tuple)
STEPS = st.one_of(st.none(), st.integers(0, 14))
OFTEN, LATE = st.sampled_from((True, True, True, False)), st.sampled_from((False, False, False, True))
PARTITION, EXECUTOR = st.sampled_from(PARTITIONS), st.sampled_from(EXECUTORS)


class Version:
    """What Spark has committed after an epoch: for each partition its state, and what the model says it is.

    `lineage` are the names of all changelogs that led there, `folded` how many of them the snapshot stands for.
    """

    def __init__(
        self,
        states: dict[int, SparkState],
        rows: dict[int, Rows],
        lineage: dict[int, list[str]],
        folded: dict[int, int],
    ) -> None:
        self.states, self.rows, self.lineage, self.folded = states, rows, lineage, folded

    def next(self) -> Version:
        """A copy to change."""
        return Version(dict(self.states), dict(self.rows), dict(self.lineage), dict(self.folded))


class Protocol(RuleBasedStateMachine):
    """A query with two partitions on two executors, from epoch to epoch."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="vsc-model-"))
        self.store = Disks()
        self.runs = 0
        self.just_committed = False
        states = {p: SparkState() for p in PARTITIONS}
        self.versions = [
            Version(states, {p: {} for p in PARTITIONS}, {p: [] for p in PARTITIONS}, dict.fromkeys(PARTITIONS, 0))
        ]
        self.attempts: list[Attempt] = []
        self.inputs: dict[int, tuple[Writes, ...]] = {}
        self.committed: dict[str, Rows] = {"": {}}  # what a store with that stamp holds, for every stamp there may be
        self.after: dict[str, set[str]] = {}  # for each stamp those that followed it, in one history or another
        self.saved: dict[Path, Rows] = {}
        self._restart()

    def teardown(self) -> None:
        for attempt in getattr(self, "attempts", ()):
            attempt.kill(0)
        if hasattr(self, "root"):
            shutil.rmtree(self.root)

    # ------------------------------------------------------------------------------------------------ the query

    @rule(
        first=st.one_of(st.none(), PORTIONS),
        second=PORTIONS,
        attempts=st.lists(st.tuples(PARTITION, EXECUTOR, STEPS, LATE), max_size=3),
        executor=EXECUTOR,
        winner=st.integers(0, 3),
        committed=OFTEN,
    )
    def epoch(
        self,
        first: tuple[Writes, ...] | None,
        second: tuple[Writes, ...],
        attempts: list[tuple[int, int, int | None, bool]],
        executor: int,
        winner: int,
        committed: bool,
    ) -> None:
        """An epoch begins, or the one that is not done goes on; a partition without rows is not called.

        Attempts begin: the first, retries, speculative ones; a late one is a task of the run before. Each ends, or
        stops somewhere. Then, if the epoch is `committed`, every partition has an attempt that ended, and one wins.
        """
        if not self.inputs:
            self.just_committed = False
            self.inputs = {1: second} if first is None else {0: first, 1: second}
        for partition, where, steps, late in attempts:
            if partition in self.inputs:
                self._advance(self._begin(partition, where, self.runs - late), steps)
        if committed:
            self._commit(executor, winner)

    @rule(which=st.integers(0, 9), steps=STEPS)
    @precondition(lambda self: self.attempts)
    def go_on(self, which: int, steps: int | None) -> None:
        """An attempt that had stopped goes on: it may be of an epoch, or a run, long past."""
        self._advance(self._pick(which), steps)

    @rule(which=st.integers(0, 9), kept=st.integers(0, 6))
    @precondition(lambda self: self.attempts)
    def kill(self, which: int, kept: int) -> None:
        """The process of one of them dies."""
        attempt = self._pick(which)
        attempt.kill(kept)
        self.attempts.remove(attempt)

    # --------------------------------------------------------------------------------------------- what goes wrong

    @rule(what=st.sampled_from(("restart", "replay", "backup")), all_dead=st.booleans(), epochs=st.integers(1, 3))
    def driver(self, what: str, all_dead: bool, epochs: int) -> None:
        """The driver dies and another one starts. Tasks of the old run die, or linger as zombies.

        Where it died before it noted the newest epoch as done, nobody has built on that epoch: it is repeated, and it
        is as if it had not been. Or its checkpoint is restored from a backup: local disks are ahead of it then.
        """
        if what == "backup":
            self.inputs, self.just_committed = {}, False
            del self.versions[max(1, len(self.versions) - epochs) :]
        elif what == "replay" and self.just_committed:
            self.just_committed = False
            newest, before = self.versions.pop(), self.versions[-1]
            for partition in PARTITIONS:
                for name in newest.lineage[partition][len(before.lineage[partition]) :]:
                    del self.committed[name]
        for attempt in [a for a in self.attempts if all_dead or what == "backup" or a.ended]:
            attempt.kill(9)
            self.attempts.remove(attempt)
        if what != "backup":
            self._restart()

    @rule(executor=EXECUTOR, what=st.sampled_from(("lost", "swapped", "copied", "stale", "damaged")))
    def disks(self, executor: int, what: str) -> None:
        """A disk is lost or damaged; executors swap theirs; folders are copied, or come back as they were then."""
        folders = [folder for folder in self.root.glob("*/vsc-*/*") if folder.is_dir()]
        if what == "copied":
            found = {folder: self.store.find(folder) for folder in folders}
            free = {folder: name for folder, name in found.items() if name and name not in self.store.in_use}
            self.saved |= {folder: dict(self.store.contents[name]) for folder, name in free.items()}
            return
        for each in EXECUTORS:
            self._die_on(each)
        if what == "lost":
            shutil.rmtree(self.root / str(executor))
            (self.root / str(executor)).mkdir()
        elif what == "swapped":
            one, other, aside = (self.root / name for name in ("0", "1", "aside"))
            one.rename(aside)
            other.rename(one)
            aside.rename(other)
        for folder in folders:
            if what == "damaged" and folder.is_dir():  # who dies may have removed it
                (folder / "half-removed").touch()
            elif what == "stale" and folder in self.saved:
                self.store.put(folder, self.saved[folder])

    # ----------------------------------------------------------------------------------------------- what holds

    @invariant()
    def the_manifest_is_the_truth(self) -> None:
        """1, 6: the chain alone gives the state; there are just the blobs that it names, and few of them."""
        for partition in PARTITIONS:
            newest = self.versions[-1]
            state = newest.states[partition]
            manifest = Manifest.load(state.text)
            restored = MemoryKV()
            PartitionState.open(state, restored, manifest)
            assert _without_stamp(rows_of(restored)) == newest.rows[partition]
            assert set(state.chunks) == {(b.name, i) for b in manifest.blobs for i in range(len(b.lengths))}
            kinds = [b.kind for b in manifest.blobs]
            assert "snapshot" not in kinds[1:]
            changelogs = [b for b in manifest.blobs if b.kind == "changelog"]
            older = sum(b.size for b in changelogs if _call_of(b.name) != _call_of(changelogs[-1].name))
            assert older <= max(FOLD, sum(b.size for b in manifest.blobs if b.kind == "snapshot"))

    @invariant()
    def a_local_store_is_a_committed_prefix(self) -> None:
        """2, 3: what its stamp says, and at most one more blob of those that were ever committed behind it."""
        for home in self.root.glob("*/vsc-*"):
            for folder in home.iterdir():
                name = self.store.find(folder) if folder.is_dir() else None
                if name is None or name in self.store.in_use or (folder / "half-removed").exists():
                    continue
                self._check_prefix(self.store.contents[name])

    def _check_prefix(self, rows: Rows) -> None:
        stamp = rows.get(STAMP_KEY)
        found = _without_stamp(rows)
        if stamp is None:
            # Restoring was cut off: it is some rows of a snapshot or of a first changelog, and will be discarded.
            assert all(any(held.get(k) == v for held in self.committed.values()) for k, v in found.items())
            return
        assert stamp.decode() in self.committed, "uncommitted writes reached a local store"
        followers = self.after.get(stamp.decode(), set()) & self.committed.keys()
        assert found in [self.committed[stamp.decode()], *(self.committed[name] for name in followers)]

    # --------------------------------------------------------------------------------------------------- helpers

    def _folders(self, executor: int, run: int) -> LocalFolders:
        return LocalFolders(str(self.root / str(executor)), "ck", f"{run:04}")

    def _restart(self) -> None:
        self.runs += 1
        for executor in EXECUTORS:
            (self.root / str(executor)).mkdir(exist_ok=True)

    def _commit(self, executor: int, winner: int) -> None:
        newest, following = self.versions[-1], self.versions[-1].next()
        for partition, portions in self.inputs.items():
            if not self._ended(partition):
                self._advance(self._begin(partition, executor), None)
            ended = self._ended(partition)
            won = ended[winner % len(ended)]
            assert all((a.result.text, a.result.chunks) == (won.result.text, won.result.chunks) for a in ended)  # 4
            following.states[partition] = SparkState(won.result.text, dict(won.result.chunks))
            self._note(partition, newest, following, portions)
        self.versions.append(following)
        self.attempts = [a for a in self.attempts if not a.ended]
        self.inputs = {}
        self.just_committed = True

    def _begin(self, partition: int, executor: int, run: int | None = None) -> Attempt:
        newest, call = self.versions[-1], (len(self.versions), partition)
        folders = self._folders(executor, self.runs if run is None else run)
        portions, rows = self.inputs[partition], newest.rows[partition]
        found = Attempt(self.store, folders, call, newest.states[partition], portions, rows)
        self.attempts.append(found)
        return found

    def _advance(self, attempt: Attempt, steps: int | None) -> None:
        """Goes on with an attempt; when that ends it, its folder has to be up to date, and that at no needless cost."""
        before, newest, partition = attempt.ended, self.versions[-1], attempt.call[1]
        homes = list(self.root.glob(f"*/vsc-ck-{self.runs:04}"))
        ended = attempt.advance(steps)
        assert all(home.is_dir() for home in homes), "the folders of the run at work were swept"
        if not ended or before or not self._counts(attempt) or attempt.folder is None:
            return
        lineage = newest.lineage[partition]
        name = self.store.find(attempt.folder)
        if name is None or attempt.folder.name != f"1-{partition}":
            return  # it worked beside another one
        assert _stamp(self.store.contents[name]) == (lineage[-1] if lineage else "")
        stamp = _stamp(attempt.found or {})
        if stamp in lineage and lineage.index(stamp) + 1 >= newest.folded[partition]:
            assert not attempt.restored, "a folder that was a prefix of the chain was thrown away"
            assert attempt.result.read <= set(lineage[lineage.index(stamp) + 1 :]), "blobs were read that were applied"

    def _counts(self, attempt: Attempt) -> bool:
        """Whether the attempt is of this epoch and this run: what others give is discarded."""
        return attempt.call[0] == len(self.versions) and attempt.folders.run == f"{self.runs:04}"

    def _pick(self, which: int) -> Attempt:
        return self.attempts[which % len(self.attempts)]

    def _ended(self, partition: int) -> list[Attempt]:
        return [a for a in self.attempts if a.ended and a.call[1] == partition and self._counts(a)]

    def _die_on(self, executor: int) -> None:
        for attempt in [a for a in self.attempts if Path(str(a.folders.root)).name == str(executor)]:
            attempt.kill(9)
            self.attempts.remove(attempt)

    def _note(self, partition: int, before: Version, now: Version, portions: tuple[Writes, ...]) -> None:
        """A commit: from now on stores may have the stamps of its changelogs, one for each portion."""
        old, new = (Manifest.load(version.states[partition].text) for version in (before, now))
        lineage, rows = before.lineage[partition], before.rows[partition]
        if new.blobs and new.blobs[0].kind == "snapshot" and new.blobs[0] not in old.blobs:
            now.folded[partition] = len(lineage)
        names = [blob.name for blob in new.blobs if blob.kind == "changelog" and blob not in old.blobs]
        for stamp, follower, portion in zip([old.newest, *names[:-1]], names, portions, strict=True):
            rows = portion.applied(rows)
            self.committed[follower] = rows
            self.after.setdefault(stamp, set()).add(follower)
        now.lineage[partition] = [*lineage, *names]
        now.rows[partition] = rows


def _call_of(changelog: str) -> str:
    return changelog.rsplit("-", 1)[0]


def _stamp(rows: Rows) -> str:
    return rows.get(STAMP_KEY, b"").decode()


def _without_stamp(rows: Rows) -> Rows:
    return {key: value for key, value in rows.items() if key != STAMP_KEY}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Chunks and folds at sizes that a test reaches in a few epochs."""
    monkeypatch.setattr(protocol, "CHUNK_BYTES", CHUNK)
    monkeypatch.setattr(protocol, "FOLD_BYTES", FOLD)
    yield


SETTINGS = settings(
    max_examples=40,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,  # the same run everywhere
    database=None,
)


@pytest.mark.slow
@pytest.mark.timeout(900)  # it waits for the disk: 12 s alone, 300 s beside others
def test_the_protocol_is_a_dictionary(small: None) -> None:
    run_state_machine_as_test(Protocol, settings=SETTINGS)
