"""`vsc upgrade`: what it shows and refuses before Spark starts."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.upgrade.support import ID, OLD, checkpoint
from vsc.changes import compare
from vsc.cli import main
from vsc.compiler import compile_topology
from vsc.plan import Clock, dump
from vsc.runtime.errors import CheckpointError, UpgradeError
from vsc.runtime.spark.base.checksummed import LocalFiles, with_checksum
from vsc.runtime.spark.checkpoint.ancestry import ORIGIN, SUCCESSOR, Origin, check_alone
from vsc.runtime.spark.checkpoint.identity import FORMAT, Identity, changes_in_place
from vsc.runtime.spark.upgrade.decisions import check_decided, emptied, remarks

CHANGED = OLD.replace("sum(n)", "max(n)")
SAME = OLD.replace("table t", "table sums").replace("sink t", "sink sums")
KAFKA = OLD.replace(
    "files (path = '${in}', format = 'json')", "kafka (bootstrap_servers = 'b:1', topic = 't', format = 'json')"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Topologies, and old checkpoints in each state in which one is refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name, text in (("same", SAME), ("changed", CHANGED), ("kafka", KAFKA)):
        (tmp_path / f"{name}.vdsl").write_text(text)
    for name in ("ck", "open", "behind", "begun", "young", "taken", "former", "newer", "damaged", "other"):
        checkpoint(tmp_path / name)
    (tmp_path / "open/offsets/1").write_text("v1\n")
    (tmp_path / "young/commits/0").unlink()
    (tmp_path / "behind" / SUCCESSOR).write_text(with_checksum({"path": "/new", "id": "1"}))
    (tmp_path / "begun/vsc/identity.json").unlink()
    (tmp_path / "begun" / ORIGIN).write_text(Origin("ck", ID, 0).dump())
    for name, version in (("former", FORMAT - 1), ("newer", FORMAT + 1)):
        identity = tmp_path / name / "vsc/identity.json"
        data = {**json.loads(identity.read_text()), "format": version}
        del data["check"]
        identity.write_text(with_checksum(data))
    (tmp_path / "damaged/vsc/plan.json").write_text("{}")
    shutil.rmtree(tmp_path / "other/vsc")
    checkpoint(tmp_path / "outer/ck")
    (tmp_path / "full").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "ck")
    (tmp_path / "full/data").write_text("1")
    (tmp_path / "file").write_text("1")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("changed.vdsl --from ck", 1, "error[VSC910]: decide what becomes of these stores:\n"),
        ("changed.vdsl --from ck", 1, "\n  t: `t`: it computed `sum(n)`, computes `max(n)`"),
        ("changed.vdsl --from ck", 1, " = help: `--reset t` empties it: what is in there is lost, unless a table can"),
        ("changed.vdsl --from ck --reset t#groups", 1, " = help: `--accept t` keeps what the old topology computed, a"),
        ("changed.vdsl --from ck --reset t --accept t#groups t", 2, "error[VSC907]: the store t is in --reset and in"),
        (
            "changed.vdsl --from ck --reset nope",
            2,
            "error[VSC907]: --reset nope: there is no such store\n = help: ther",
        ),
        (
            "same.vdsl --from ck --accept sums",
            2,
            "--accept sums: the verdict on this store is `renamed`, there is noth",
        ),
        (
            "kafka.vdsl --from ck",
            1,
            "error[VSC910]: source s (line 2): it read from files, reads from kafka: upgrade it with --position s=...\n"
            " = help: say where it begins with --position s=POSITION: write 'earliest', 'latest', or an offset for ",
        ),
        (
            "same.vdsl --from ck --position s=latest",
            1,
            "error[VSC915]: source s (line 2): files has no position 'latest'\n"
            " = help: 'now' takes all files that are there for read, 'beginning' reads them\n",
        ),
        ("same.vdsl --from ck --position t=now", 2, "error[VSC907]: --position t: unknown source\n = help: the sourc"),
        ("same.vdsl --from ck --position s", 2, "error: --position s: it is not SOURCE=POSITION\n = help: write, say"),
        ("same.vdsl --from ck --position s=now --position s=now", 2, "source s has a position already"),
        (
            "same.vdsl --from open",
            1,
            "error[VSC910]: the checkpoint {here}/open has an epoch that was begun and has no",
        ),
        ("same.vdsl --from young", 1, "error[VSC904]: the query of {here}/young has not committed an epoch yet"),
        (
            "same.vdsl --from behind",
            1,
            "error[VSC904]: the checkpoint {here}/behind was upgraded to /new, and that has",
        ),
        ("same.vdsl --from begun", 1, "error[VSC904]: the upgrade to the checkpoint {here}/begun was not finished"),
        ("changed.vdsl --from former", 1, "error[VSC910]: decide what becomes of these stores:"),
        (
            "same.vdsl --from newer",
            1,
            f"the checkpoint {{here}}/newer has format version {FORMAT + 1}, this vsc reads 2 to {FORMAT}\n",
        ),
        (
            "same.vdsl --from damaged",
            1,
            "error[VSC904]: {here}/damaged/vsc/plan.json is damaged: its checksum is wrong",
        ),
        ("same.vdsl --from other", 1, "error[VSC904]: {here}/other is not a checkpoint of vsc\n = help: give the fold"),
        ("same.vdsl --from nowhere", 1, "error[VSC904]: {here}/nowhere is not a checkpoint of vsc"),
        ("same.vdsl --from ck --checkpoint ck", 1, "error[VSC904]: {here}/ck is the old checkpoint"),
        (
            "same.vdsl --from ck --checkpoint ck/new",
            1,
            "{here}/ck/new is in the old checkpoint {here}/ck\n = help: give",
        ),
        (
            "same.vdsl --from ck --checkpoint ck/vsc/../deep/er",
            1,
            "{here}/ck/deep/er is in the old checkpoint {here}/ck",
        ),
        (
            "same.vdsl --from outer/ck --checkpoint outer",
            1,
            "{here}/outer is around the old checkpoint {here}/outer/ck",
        ),
        ("same.vdsl --from ck --checkpoint linked/new", 1, "{here}/linked/new is in the old checkpoint {here}/ck\n"),
        ("same.vdsl --from ck --checkpoint taken", 1, "error[VSC904]: {here}/taken is a checkpoint already"),
        ("same.vdsl --from ck --checkpoint full", 1, "error[VSC904]: the folder {here}/full is not empty (data)"),
        ("same.vdsl --from ck --checkpoint file", 1, "error[VSC904]: the checkpoint file cannot be written: it is a f"),
        ("same.vdsl --from ck --partitions 0", 2, "error: there cannot be 0 partitions"),
        ("same.vdsl", 2, "the following arguments are required: --from"),
    ],
)
def test_what_is_refused_before_spark_starts(
    arguments: str, status: int, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = [] if "--checkpoint" in arguments else ["--checkpoint", "new"]
    assert main(["upgrade", *arguments.split(), *target, "--var", "in=in"]) == status
    assert words.replace("{here}", str(folder)) in capsys.readouterr().err
    assert not (folder / "new").exists()


def test_a_run_on_an_unfinished_upgrade_or_an_upgraded_checkpoint_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, words in (("begun", "was not finished"), ("behind", "was upgraded to /new")):
        (folder / "old.vdsl").write_text(OLD)
        assert main(["run", "old.vdsl", "--checkpoint", name, "--var", "in=in"]) == 1
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("epochs", "refused"),
    [
        ({}, None),
        ({1: {}}, None),  # it has read rows, and written none
        ({1: {}, 2: {"sink-0": 3}}, 2),
        ({1: {"sink-0": 1}}, 1),
        ({1: None}, 1),  # begun: nobody knows
        ({7: {}}, 7),  # those before are forgotten
    ],
)
def test_a_run_is_refused_once_the_old_query_has_gone_on_and_written(
    epochs: dict[int, dict[str, int] | None], refused: int | None, folder: Path
) -> None:
    checkpoint(folder / "new")
    origin = Origin(f"file:{folder}/ck", ID, 0)
    (folder / "new" / ORIGIN).write_text(origin.dump())
    (folder / "ck/vsc/epochs").mkdir()
    for number, written in epochs.items():
        (folder / f"ck/offsets/{number}").write_text("v1\n")
        if written is not None:
            (folder / f"ck/vsc/epochs/{number}.json").write_text(with_checksum({"epoch": number, "written": written}))

    def check() -> None:
        check_alone(LocalFiles(str(folder / "new")), "1", lambda path: LocalFiles(path.removeprefix("file:")))

    if refused is None:
        check()
        return
    with pytest.raises(CheckpointError, match=f"has gone on to epoch {refused}, which may have written") as caught:
        check()
    assert caught.value.help == f"repeat `vsc upgrade` with --from file:{folder}/ck and a new folder, and run that one"
    (folder / "ck" / SUCCESSOR).write_text(with_checksum({"path": "/new", "id": "1"}))
    check()  # the old one has refused to go on since then
    (folder / "ck" / SUCCESSOR).write_text(with_checksum({"path": "/new", "id": "2"}))
    with pytest.raises(CheckpointError, match="was upgraded to /new as well"):
        check()


def test_it_is_refused_before_spark_starts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint(folder / "new")
    (folder / "new" / ORIGIN).write_text(Origin(f"file:{folder}/ck", ID, 0).dump())
    (folder / "ck/offsets/1").write_text("v1\n")
    (folder / "old.vdsl").write_text(OLD)
    assert main(["run", "old.vdsl", "--checkpoint", "new", "--var", "in=in"]) == 1
    assert f"error[VSC904]: the checkpoint file:{folder}/ck has gone on to epoch 1, which" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "states", "waits"),
    [({}, {"1-0": 0}, False), ({"1-0": 3}, {"1-0": 0}, False), ({"1-0": 3}, {}, True), ({}, {"1-1": 2}, True)],
)
def test_a_name_under_which_records_wait_cannot_change(
    before: dict[str, int], states: dict[str, int], waits: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = OLD + "table NAME = aggregate s group by n as m select count(*) as c;\nsink NAME to noop ();\n"
    old, plan = (compile_topology(text.replace("NAME", name)) for name in "uv")
    identity = Identity(ID, 2, dump(old))
    (folder / "ck/vsc/identity.json").write_text(identity.dump("t"))
    (folder / "ck/vsc/plan.json").write_text(identity.plan_text)
    for name in ("inputs", "epochs"):
        (folder / "ck/vsc" / name).mkdir()
    pace = json.dumps({"waits": {}, "waiting": before})
    (folder / "ck/vsc/inputs/0.json").write_text(with_checksum({"pace": pace}))
    report = {"epoch": 0, "state": {place: {"waiting": number} for place, number in states.items()}}
    (folder / "ck/vsc/epochs/0.json").write_text(with_checksum(report))
    files = LocalFiles(str(folder / "ck"))
    if not waits:
        assert [c.name for c in changes_in_place(files, identity, plan, "new.vdsl") or ()][:1] == ["v"]
        return
    with pytest.raises(CheckpointError, match=r"records wait in the checkpoint .*/ck for other sources") as caught:
        changes_in_place(files, identity, plan, "new.vdsl")
    assert str(caught.value.help).startswith("run the topology as it was until it has read all of its sources; or vsc")


@pytest.mark.parametrize(
    ("began", "plan", "problem"),
    [
        ("records", {"clock": "input"}, r"topology t: limits clock was 'records', is 'input'"),
        ("input", {"clock": "records"}, r"topology t: limits clock was 'input', is 'records'"),
        ("records", {"clock": "input", "clock_implied": True}, None),  # a checkpoint from before there were clocks
        ("input", {"clock": "input", "clock_implied": True}, None),
        ("input", {"clock": "input"}, None),
    ],
)
def test_a_checkpoint_keeps_the_clock_that_it_was_begun_with(
    began: Clock, plan: dict[str, Any], problem: str | None, folder: Path
) -> None:
    compiled = compile_topology(f"topology t (clock = 'records');{OLD}")
    identity = Identity(ID, 2, dump(replace(compiled, clock=began)))
    assert identity.clock == began
    files = LocalFiles(str(folder / "ck"))
    if problem is None:
        assert changes_in_place(files, identity, replace(compiled, **plan), "new.vdsl") is None
        return
    with pytest.raises(CheckpointError, match=problem) as caught:
        changes_in_place(files, identity, replace(compiled, **plan), "new.vdsl")
    assert str(caught.value.help).startswith("carry it over: vsc upgrade new.vdsl --from ")
    assert remarks(compare(replace(compiled, clock=began), replace(compiled, **plan))) == [
        "topology t: no partition's stream time goes back when the clock changes"
    ]


def test_that_the_clock_was_implied_when_a_checkpoint_began_is_no_difference(folder: Path) -> None:
    compiled = replace(compile_topology(OLD, path="t.vdsl"), clock="input")
    identity = Identity(ID, 2, dump(replace(compiled, clock_implied=True)))
    files = LocalFiles(str(folder / "ck"))
    assert changes_in_place(files, identity, replace(compiled, clock_implied=False), "new.vdsl") is None


def test_verdicts_and_remarks_are_shown_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_session(*_: object) -> None:
        raise RuntimeError("Spark was started")

    monkeypatch.setattr("vsc.runtime.spark.query.launch._session", no_session)
    monkeypatch.setattr("vsc.cli.machine.java_problem", lambda: None)
    arguments = ["--from", "ck", "--checkpoint", "new", "--var", "in=in", "--reset", "t"]
    assert main(["upgrade", "changed.vdsl", *arguments]) == 1
    out, err = capsys.readouterr()
    assert "store   t          rebuild" in out
    assert "sink t to noop: what it holds stays as the old text computed it; new results follow\n" in err
    assert "Spark was started" in err


BECOMES_VERSIONED = """
table b (k string, v bigint, at timestamp) from {} key k timestamp at{};
stream a (k string, at timestamp) from files (path = 'in', format = 'json') key k timestamp at;
stream j = left join a with b select v;
sink j to noop ();
"""
FILES, TOPIC = "files (path = 'b', format = 'json')", "kafka (bootstrap_servers = 'b:1', topic = 't', format = 'json')"


@pytest.mark.parametrize(("source", "first"), [(FILES, "beginning"), (TOPIC, "earliest")])
def test_a_table_that_becomes_versioned_can_be_filled_again_by_its_source(source: str, first: str) -> None:
    old = compile_topology(BECOMES_VERSIONED.format(source, ""))
    new = compile_topology(BECOMES_VERSIONED.format(source, " materialize versioned (retention = 1 day)"))
    changes = compare(old, new)
    with pytest.raises(UpgradeError) as caught:
        check_decided(changes, (), (), new)
    assert f"; `--reset b --position b={first}` empties it and fills it again, from its source; or start" in str(
        caught.value.help
    )
    check_decided(changes, ("b",), (), new)
    assert emptied(changes, ("b",), {"b": first}, new) == []
    assert emptied(changes, ("b",), {}, new) == [
        "store b: it begins empty, and look-ups find only what is read from now on; "
        f"--position b={first} fills it again"
    ]
