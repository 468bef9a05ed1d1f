"""Keys purged from the checkpoints of real queries."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from tests.runtime.spark.upgrade import test_upgrade
from vsc.cli.store_key import read_key
from vsc.runtime.errors import CheckpointError, ConfigurationError, UpgradeError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.claim import Claim, claim
from vsc.runtime.spark.checkpoint.replacing import finish
from vsc.runtime.spark.upgrade import purge as purging
from vsc.runtime.spark.upgrade.purge import Purge, prepare, purge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPOLOGY = """
stream orders (id bigint, person string, amount bigint, at bigint)
from files (path = '${in}/orders', format = 'json') key id timestamp at;
table people (person string, name string, at bigint)
from files (path = '${in}/people', format = 'json') key person timestamp at materialize versioned (retention = 1 hour);
stream named = left join orders with people on person select id, person, name, amount;
table totals = aggregate orders group by person select sum(amount) as total;
sink named to files (path = '${out}/named', format = 'parquet');
sink totals to files (path = '${out}/totals', format = 'parquet');
"""
PLAN = compiled(TOPOLOGY)
HER, HIM = (f"{name}-{secrets.token_urlsafe(60)}" for name in ("her", "him"))
"""Keys that compression leaves as they are."""


def feed(folder: Path, turn: int) -> None:
    people = [{"person": who, "name": f"{who[:3]} the {turn}.", "at": 100 * turn} for who in (HER, HIM)]
    write_json(folder / f"in/people/{turn}.json", people, turn)
    orders = [
        {"id": 10 * turn + n, "person": who, "amount": turn + n, "at": 100 * turn + 1 + n}
        for n, who in enumerate((HER, HIM))
    ]
    write_json(folder / f"in/orders/{turn}.json", orders, turn)


def run(spark: SparkSession, folder: Path) -> None:
    variables = {"in": str(folder / "in"), "out": str(folder / "out")}
    run_once(PLAN, spark, folder / "ck", variables=variables, partitions=2, local_dir=str(folder / "local"))


def job(folder: Path, *stores: str, key: str = HER, **how: Any) -> Purge:
    variables = {"in": str(folder / "in"), "out": str(folder / "out")}
    return Purge(str(folder / "ck"), stores or ("people", "totals"), (key,), read_key, variables, **how)


def mentions(word: str, *folders: Path) -> int:
    """How many files have the word anywhere."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return sum(word.encode() in path.read_bytes() for path in files)


def test_nothing_of_a_purged_key_is_left_after_the_next_run(spark: SparkSession, tmp_path: Path) -> None:
    for turn in (1, 2, 3):
        feed(tmp_path, turn)
        run(spark, tmp_path)
    (tmp_path / "local/vsc-of-another").mkdir()
    assert mentions(HER, tmp_path / "ck") > 3  # states of several epochs
    assert mentions(HER, tmp_path / "local") > 0
    said: list[str] = []

    prepare(job(tmp_path))
    purge(job(tmp_path, dry_run=True), spark, said.append)
    assert said[0].startswith("store people: ") and mentions(HER, tmp_path / "ck") > 3
    purge(job(tmp_path), spark, said.append)
    assert mentions(HER, tmp_path / "ck") == 0

    feed(tmp_path, 4)
    (tmp_path / "in/people/4.json").unlink()
    (tmp_path / "in/orders/4.json").write_text(f'{{"id": 41, "person": "{HIM}", "amount": 5, "at": 401}}\n')
    run(spark, tmp_path)
    assert mentions(HER, tmp_path / "ck", tmp_path / "local") == 0
    assert mentions(HIM, tmp_path / "local") > 0
    assert (tmp_path / "local/vsc-of-another").exists()
    named = [row for row in parquet_rows(tmp_path / "out/named") if row["id"] is not None]
    assert sorted((row["id"], row["name"], row["amount"]) for row in named if row["person"] == HIM) == [
        (11, "him the 1.", 2), (21, "him the 2.", 3), (31, "him the 3.", 4), (41, "him the 3.", 5),
    ]  # fmt: skip
    assert sum(row["person"] == HER for row in named) == 3  # sinks are as they were
    totals = [row["total"] for row in parquet_rows(tmp_path / "out/totals") if row["person"] == HIM]
    assert max(totals) == 2 + 3 + 4 + 5


def decided(spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkpoint when its purge has been decided, and nothing was removed yet."""
    feed(folder, 1)
    run(spark, folder)
    with monkeypatch.context() as patch:
        patch.setattr(purging, "finish", lambda files, check: None)
        purge(job(folder), spark, lambda text: None)
    return folder / "ck"


def nobody_else() -> None:
    """The claim is not lost."""


class Ended(Exception):
    """The process ends here."""


def ending(left: list[int], change: Callable[..., Any]) -> Callable[..., Any]:
    """`change`, of which, and of its like, so many are `left`."""

    def changed(*arguments: Any) -> Any:
        if not left[0]:
            raise Ended
        left[0] -= 1
        return change(*arguments)

    return changed


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "claim.lock"
    }


def test_a_purge_that_is_interrupted_anywhere_is_finished_when_it_is_repeated(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ck = decided(spark, tmp_path, monkeypatch)
    (ck / "results").mkdir()  # a sink's, say
    (ck / "results/part-0").write_text("1")
    (ck / "vsc/sources/1-of-a-killed-run").mkdir(parents=True)
    (ck / "vsc/sources/1-of-a-killed-run/part-0").write_text("2")
    whole = tmp_path / "whole"
    shutil.copytree(ck, whole)
    assert finish(Files(spark, str(whole)), nobody_else) == job(tmp_path).fingerprint
    assert (whole / "results/part-0").exists() and not list((whole / "vsc/sources").iterdir())
    ended, after = 0, 0
    while True:
        copy = tmp_path / f"copy-{after}"
        shutil.copytree(ck, copy)
        files, left = Files(spark, str(copy)), [after]
        with monkeypatch.context() as patch:
            for change in ("delete", "rename"):
                patch.setattr(files, change, ending(left, getattr(files, change)))
            try:
                finish(files, nobody_else)
                break
            except Ended:
                ended += 1
        with pytest.raises(CheckpointError, match="keys are being purged") as refused:
            run_once(PLAN, spark, copy, variables=job(tmp_path).variables)
        assert refused.value.help == "repeat that `vsc store purge`, which finishes it"
        finish(Files(spark, str(copy)), nobody_else)
        assert tree(copy) == tree(whole)
        after += 1
    assert ended > 10
    said: list[str] = []
    purge(job(tmp_path, dry_run=True), spark, said.append)
    assert said == ["a purge was interrupted: without --dry-run, this finishes it"]
    with pytest.raises(CheckpointError, match="the purge of other keys"):
        purge(job(tmp_path, key=HIM), spark, lambda text: None)
    assert tree(ck) == tree(whole)


def test_what_cannot_be_purged_is_refused_and_nothing_is_changed(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path, 1)
    run(spark, tmp_path)
    before = tree(tmp_path / "ck")
    with pytest.raises(ConfigurationError, match="there is no store 'nobody'"):
        prepare(job(tmp_path, "nobody"))
    held = claim(spark, Files(spark, str(tmp_path / "ck")))
    with pytest.raises(CheckpointError, match="is in use"):
        purge(job(tmp_path), spark, lambda text: None)
    held.release()
    assert tree(tmp_path / "ck") == before
    (tmp_path / "ck/vsc/purge/vsc").mkdir(parents=True)  # one that was killed before it was decided
    run(spark, tmp_path)
    assert not (tmp_path / "ck/vsc/purge").exists()
    purge(job(tmp_path), spark, lambda text: None)
    with pytest.raises(CheckpointError, match="has not committed an epoch yet") as refused:
        purge(job(tmp_path), spark, lambda text: None)
    assert refused.value.help == "run it once, so that it takes up its state; then repeat this command"


def test_a_run_that_has_opened_the_checkpoint_before_a_purge_does_not_go_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(tmp_path, 1)
    run(spark, tmp_path)

    def purged_before(spark: SparkSession, files: Files) -> Claim:
        purge(job(tmp_path), spark, lambda text: None)
        return claim(spark, files)

    monkeypatch.setattr("vsc.runtime.spark.query.start.claim", purged_before)
    with pytest.raises(CheckpointError, match="was replaced while this run began: keys were purged from it"):
        run(spark, tmp_path)


def test_what_cannot_be_removed_ends_a_purge_until_it_can(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ck = decided(spark, tmp_path, monkeypatch)
    files = Files(spark, str(ck))
    delete = files.delete
    monkeypatch.setattr(files, "delete", lambda name: None if name == "state" else delete(name))
    with pytest.raises(CheckpointError, match="/ck/state cannot be removed"):
        finish(files, nobody_else)
    assert (ck / "vsc/identity.json").exists() and mentions(HER, ck / "state") > 0
    monkeypatch.undo()
    finish(files, nobody_else)
    assert mentions(HER, ck) == 0


def test_while_records_wait_nothing_is_purged(spark: SparkSession, tmp_path: Path) -> None:
    test_upgrade.feed(tmp_path)
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    test_upgrade.half_run(spark, tmp_path, variables)
    before = tree(tmp_path / "old")
    with pytest.raises(UpgradeError, match=r"\d+ records that wait for other sources may have these keys"):
        purge(Purge(str(tmp_path / "old"), ("rates",), ("a",), read_key, variables), spark, lambda text: None)
    assert tree(tmp_path / "old") == before
