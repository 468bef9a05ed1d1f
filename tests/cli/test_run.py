"""``vsc run`` where it is used wrongly or given what it refuses: the exit status and the words, before Spark starts."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from vsc.cli import main
from vsc.cli.messages import JsonMessages
from vsc.cli.problems import Problem
from vsc.compiler import compile_topology
from vsc.plan import dump
from vsc.runtime.errors import CheckpointError, ConfigurationError, UnusableInputError
from vsc.runtime.spark.checkpoint.identity import Identity
from vsc.runtime.spark.query.preflight import PreparedRun, check

SOURCE = "stream s (a int, b string) from {source} key a;\nsink s to {sink};\n"
FILES = "files (path = '${in}', format = 'json')"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "good.vdsl").write_text(SOURCE.format(source=FILES, sink="noop ()"))
    return tmp_path


def test_a_topology_with_a_quiet_says_how_long_sources_wait(folder: Path) -> None:
    text = "topology t (quiet = 1 minute);" + SOURCE.format(source=FILES, sink="noop ()")
    plan = compile_topology(text, path="t.vdsl")
    check(plan, {"in": "in"}, "1 second")
    with pytest.raises(ConfigurationError, match="--max-idle 5s: the topology has a `quiet`"):
        check(plan, {"in": "in"}, "1 second", "5s")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "error: vsc run: the following arguments are required: --checkpoint"),
        ("--checkpoint ck", "error[VSC907]: the variable ${in} has no value (source 's' (line 1), option 'path')"),
        ("--checkpoint ck --var in=in --trigger soon", "error[VSC907]: 'soon' is not a trigger"),
        (
            "--checkpoint ck --var in=in --max-idle 5s",
            "error[VSC907]: --max-idle 5s: with the trigger available-now there is no waiting",
        ),
        (
            "--checkpoint ck --var in=in --trigger 1s --max-idle long",
            "[VSC907]: --max-idle: 'long' is not a valid duration",
        ),
        ("--checkpoint ck --var in=in --partitions 0", "error: there cannot be 0 partitions"),
        ("--checkpoint ck --var in=in --partitions 1000000", "help: give a number from 1 to 10,000"),
        ("--checkpoint ck --var in=in --back-to -1", "error: there is no epoch -1 to go back to"),
        (f"--checkpoint ck --var in=in --trigger {'9' * 5000}s", "s' is not a trigger"),
        ("--checkpoint ck --var in=in --partitions many", "--partitions: invalid int value: 'many'"),
        ("--checkpoint ck --var in=in --conf x", "error: --conf takes KEY=VALUE: a name or a `=` is missing"),
        ("--checkpoint ck --var in=in --conf fs.s3a.path=1", "help: Hadoop's are written `spark.hadoop.fs.s3a.path`"),
        ("--checkpoint ck --var in=in --conf spark.driver.memory=4x", "spark.driver.memory: '4x' is not an amount of"),
        ("--checkpoint ck --var in=in --master locl[2]", "error: --master locl[2] is not a master of Spark"),
        ("--checkpoint ck --var in=in --master local[0]", "error: --master local[0] is not a master of Spark"),
        ("--checkpoint ck --var in=in --packages kafka", "error: --packages: kafka does not name a package"),
        (
            "--checkpoint ck --var in=in --local-dir good.vdsl/x",
            "error: --local-dir good.vdsl/x cannot be written: {folder}/good.vdsl is not a folder",
        ),
        ("--checkpoint ck --var in", "error: --var takes NAME=VALUE: a `=` is missing"),
        ("--checkpoint ck --var in=in --drain --trigger 1s", "error: --drain needs an end of the input"),
        ("--checkpoint ck --var in=in --progress much", "--progress: invalid choice: 'much'"),
        ("--checkpoint ck --var in=in --metrics 9400", "error[VSC907]: --metrics takes prometheus:PORT"),
        ("--checkpoint ck --var in=in --lineage http://u:p@h", "error[VSC907]: the URL of --lineage holds a secret"),
        ("--checkpoint ck --var in=in --lineage no/events", "[VSC907]: --lineage no/events cannot be written: No such"),
        ("--checkpoint ck --var in=in --log-format json --progress bar", "--progress bar is not JSON"),
        ("--checkpoint ck --var in=in --local-dir good.vdsl", "error: --local-dir good.vdsl is not a folder"),
    ],
)
def test_wrong_use_ends_with_2(arguments: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(["run", "good.vdsl", *arguments.split()])
    except SystemExit as ended:
        status = int(ended.code or 0)
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert words.replace("{folder}", str(folder)) in err
    assert not (folder / "ck").exists()


@pytest.mark.parametrize(
    ("source", "sink", "words"),
    [
        ("memory ()", "noop ()", "[VSC905]: source 's' (line 1) reads from memory (), which only the test driver"),
        (
            FILES,
            "jdbc (url = '${out}', table = 'y')",
            "[VSC918]: the sink of 's' (line 2): the url is not one of PostgreSQL",
        ),
        (FILES, "memory ()", "[VSC906]: the sink of 's' (line 2) writes to memory (), which only the test driver"),
        (
            "iceberg (path = 'x')",
            "noop ()",
            "error[VSC403]: the rows of an Iceberg table have no time of their own",
        ),
        (
            FILES,
            "delta (path = 'x', 'delta.y' = 'z')",
            "error[VSC503]: quoted options are properties of a table that is created, such as 'delta.y'",
        ),
        (FILES.replace("json", "${out}"), "noop ()", "[VSC905]: source 's' (line 1) has format 'not'"),
        (FILES, "files (path = 'x', format = '${out}')", "[VSC906]: the sink of 's' (line 2) has format 'not'"),
        (FILES.replace("${in}", "in/*.x"), "noop ()", "source 's' (line 1): there is no file or folder 'in/*.x'"),
        (FILES.replace("json", "jsn"), "noop ()", "error[VSC505]: `format` cannot be 'jsn'"),
    ],
)
def test_what_cannot_be_run_ends_with_1(
    source: str, sink: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "other.vdsl").write_text(SOURCE.format(source=source, sink=sink))
    assert main(["run", "other.vdsl", "--checkpoint", "ck", "--var", "in=in", "--var", "out=not"]) == 1
    out, err = capsys.readouterr()
    assert words in err and "help:" in err
    assert out == "" and not (folder / "ck").exists()


@pytest.mark.parametrize(
    ("checkpoint", "words"),
    [("good.vdsl", "[VSC904]: the checkpoint good.vdsl is a file"), ("", "[VSC904]: the checkpoint has no name")],
)
def test_a_checkpoint_that_is_no_folder_ends_with_1(
    checkpoint: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "good.vdsl", "--checkpoint", checkpoint, "--var", "in=in"]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--checkpoint ck --partitions 3", "error[VSC904]: the checkpoint ck has 2 partitions, not 3\n"),
        (
            "--checkpoint ck --back-to 7",
            "error[VSC904]: the checkpoint ck cannot go back to epoch 7: kept are the epochs 0 to 1",
        ),
        ("--checkpoint new --back-to 0", "error[VSC904]: the checkpoint new is new: there is no epoch 0 to go back to"),
        ("--checkpoint in", "error[VSC904]: the checkpoint folder in is not empty (0.json)"),
        (
            "--checkpoint good.vdsl/ck",
            "the checkpoint good.vdsl/ck cannot be written: {folder}/good.vdsl is not a folder",
        ),
        (
            "--checkpoint ck other.vdsl",
            "error[VSC904]: the topology has changed since the checkpoint ck was made:\n  source ",
        ),
    ],
)
def test_what_a_local_checkpoint_refuses_is_told_without_spark(
    options: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vsc.runtime.spark.query.launch.launched", None)
    (folder / "in" / "0.json").write_text("{}\n")
    text = (folder / "good.vdsl").read_text()
    (folder / "other.vdsl").write_text("topology good;\n" + text.replace("a int", "a bigint"))
    for name in ("vsc", "offsets", "commits"):
        (folder / "ck" / name).mkdir(parents=True)
    identity = Identity("0" * 32, 2, dump(compile_topology(text, "good.vdsl")))
    (folder / "ck" / "vsc" / "plan.json").write_text(identity.plan_text)
    (folder / "ck" / "vsc" / "identity.json").write_text(identity.dump("good"))
    for name in ("offsets/0", "offsets/1", "offsets/2", "commits/0", "commits/1"):
        (folder / "ck" / name).touch()
    file = [] if options.endswith(".vdsl") else ["good.vdsl"]
    assert main(["run", *file, *options.split(), "--var", "in=in"]) == 1
    assert words.replace("{folder}", str(folder)) in capsys.readouterr().err


def test_a_checkpoint_where_nobody_may_write_is_told_without_spark(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vsc.cli.run_checks.os.access", lambda path, mode: path != str(folder))
    assert main(["run", "good.vdsl", "--checkpoint", "a/b", "--var", "in=in"]) == 1
    message = f"error[VSC904]: the checkpoint a/b cannot be written: there is no permission to write to {folder}\n"
    assert (
        capsys.readouterr().err
        == message + " = help: free some space there, make it writable, or give another folder\n"
    )


def test_a_sink_where_nobody_may_write_is_told_without_spark(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (folder / "good.vdsl").read_text()
    (folder / "out.vdsl").write_text(f"{text}\nsink s to files (path = 'good.vdsl/out', format = 'json');")
    (folder / "in" / "0.json").write_text("{}\n")
    (folder / "other").mkdir()
    run = ["run", "out.vdsl", "--checkpoint", "other/ck", "--var", "in=in"]
    place = f"error[VSC906]: the sink of 's' (line {text.count(chr(10)) + 2}): 'good.vdsl/out' cannot be written: "
    assert main(run) == 1
    help = " = help: free some space there, make it writable, or give another folder\n"
    assert capsys.readouterr().err == f"{place}{folder}/good.vdsl is not a folder\n{help}"
    (folder / "good.vdsl").unlink()
    flags = {str(folder): os.ST_RDONLY}
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=flags.get(path, 0)))
    assert main(run) == 1
    assert capsys.readouterr().err == f"{place}{folder} is on a read-only file system\n{help}"


def test_a_sink_folder_that_is_not_empty_is_told_without_spark(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vsc.runtime.spark.query.launch.launched", None)
    sink = "files (path = 'out', format = 'json'{append})"
    (folder / "out.vdsl").write_text(SOURCE.format(source=FILES, sink=sink.format(append="")))
    (folder / "in" / "0.json").write_text("{}\n")
    for name in ("_temporary/0.json", "day=1/.0.json.crc", "day=2/0.json"):
        (folder / "out" / name).parent.mkdir(parents=True)
        (folder / "out" / name).touch()
    run = ["run", "out.vdsl", "--checkpoint", "ck", "--var", "in=in"]
    assert main(run) == 1
    message = "error[VSC906]: the sink of 's' (line 2): out holds day=2/0.json, which this checkpoint did not write\n"
    help = " = help: give another path, remove the files, or add append = true\n"
    assert capsys.readouterr().err == message + help
    assert not (folder / "ck").exists()
    doctor = ["doctor", *run[1:]]
    assert main(doctor) == 1
    assert "out holds day=2/0.json, which this checkpoint did not write" in capsys.readouterr().out
    (folder / "out.vdsl").write_text(SOURCE.format(source=FILES, sink=sink.format(append=", append = true")))
    monkeypatch.setattr("vsc.runtime.spark.query.launch.launched", Mock(side_effect=CheckpointError("Spark", "starts")))
    assert main(run) == 1
    assert capsys.readouterr().err == "error[VSC904]: Spark\n = help: starts\n"


def test_a_source_that_may_not_be_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "in/a.json").write_text("")
    access = os.access  # root may read everything
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("a.json") and access(path, mode))
    assert main(["run", "good.vdsl", "--checkpoint", "ck", "--var", "in=in"]) == 1
    assert capsys.readouterr().err == (
        "error[VSC905]: source 's' (line 1): there is no permission to read 'in/a.json'\n"
        " = help: give the user who runs this the right to\n"
    )


@pytest.mark.parametrize(
    ("releases", "status", "words"),
    [
        ({"numpy": "1.25.3"}, 2, "error: vsc run cannot run: numpy 1.25.3, but vsc needs 1.26 or newer, below 3.0\n"),
        ({"rocksdict": "0.3.23", "pandas": "3.0.1"}, 2,
         "error: vsc run cannot run: pandas 3.0.1, but vsc needs 2.2 or newer, below 3.0; "
         "rocksdict 0.3.23, but vsc needs 0.3.24 or newer, below 0.4\n"),
        ({"numpy": None}, 1, "error[VSC905]: source 's' (line 1): there is no file or folder 'nowhere'\n"),
    ],
)  # fmt: skip
def test_a_release_that_vsc_cannot_use_is_refused_and_one_that_is_not_known_is_not(
    releases: dict[str, str | None], status: int, words: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from importlib.metadata import PackageNotFoundError, version

    def release(name: str) -> str:
        found = releases[name] if name in releases else version(name)
        if found is None:
            raise PackageNotFoundError(name)
        return found

    monkeypatch.setattr("vsc.cli.machine.version", release)
    assert main(["run", "good.vdsl", "--checkpoint", "ck", "--var", "in=nowhere"]) == status
    assert capsys.readouterr().err.startswith(words)
    assert main(["doctor"]) == int(status == 2)
    bad = [line for line in capsys.readouterr().out.splitlines() if line.startswith("BAD")]
    assert [line.split()[1] for line in bad] == sorted(name for name, one in releases.items() if one)


def test_a_java_that_is_not_there(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert main(["run", "good.vdsl", "--checkpoint", "ck", "--var", "in=in"]) == 1
    assert capsys.readouterr().err == (
        "error[VSC907]: Spark cannot start: JAVA_HOME is /nowhere, but there is no bin/java in it\n"
        " = help: correct or unset JAVA_HOME\n"
    )


def test_a_plan_is_known_by_its_text_whatever_its_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "good.vdsl", "-o", "compiled"]) == 0
    assert main(["run", "compiled", "--checkpoint", "ck", "--var", "in=nowhere"]) == 1
    assert "[VSC905]: source 's' (line 1): there is no file or folder 'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[", "not JSON"),
        ('{"a": 1}', "at /format_version: expected 2"),
        ("[" * 100_000, "not a plan"),
    ],
)
def test_a_file_that_is_no_plan_ends_with_1(
    text: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "plan.json").write_text(text)
    assert main(["run", "plan.json", "--checkpoint", "ck"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error[VSC907]: plan.json is not a plan that this vsc can run: ") and words in err
    assert "help: create it with `vsc compile`" in err


def test_a_structured_log_says_what_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.vdsl").write_text("stream s;")
    assert main(["run", "wrong.vdsl", "--checkpoint", "ck", "--log-format", "json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [("message", "error")]
    assert "wrong.vdsl:1" in lines[0]["message"]


def test_a_structured_log_says_wrong_use_and_unknown_variables(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "good.vdsl", "--checkpoint", "ck", "--log-format", "json", "--var", "inn=in"]
    assert main([*arguments, "--partitions", "0"]) == 2
    assert main(arguments) == 2
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["level"], line["message"]) for line in lines[:2]] == [
        ("error", "there cannot be 0 partitions"),
        ("warning", "--var inn: nothing refers to ${inn}"),
    ]
    assert lines[1]["help"] == "did you mean `--var in=...`?" and lines[2]["code"] == "VSC907"


def test_an_error_in_a_structured_log_has_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    JsonMessages().problem(Problem.of(CheckpointError("it is not there", "look elsewhere")))
    line = json.loads(capsys.readouterr().err)
    assert {k: v for k, v in line.items() if k != "time"} == {
        "level": "error", "event": "message", "message": "it is not there", "code": "VSC904", "help": "look elsewhere",
    }  # fmt: skip


def test_a_run_that_could_use_no_row_ends_with_3_and_what_may_be_wrong_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def launched(*_: object) -> Iterator[None]:
        started.append(time.monotonic())
        yield None

    started: list[float] = []

    def run(prepared: PreparedRun, *_: object) -> None:
        assert prepared.job.began <= started[-1]  # the run's time is that of Spark's start as well
        logging.getLogger("vsc.runtime").warning("there is nothing")
        raise UnusableInputError("all rows were dropped", "look at them")

    monkeypatch.setattr("vsc.runtime.spark.query.launch.launched", launched)
    monkeypatch.setattr("vsc.runtime.spark.query.run.run", run)
    monkeypatch.setattr("vsc.cli.machine.java_problem", lambda: None)
    for progress, warning in (("lines", "warning: there is nothing\n"), ("none", "")):
        assert main(["run", "good.vdsl", "--checkpoint", "ck", "--var", "in=in", "--progress", progress]) == 3
        said = capsys.readouterr().err
        assert said == f"{warning}error[VSC905]: all rows were dropped\n = help: look at them\n"
    assert main(["run", "good.vdsl", "--checkpoint", "ck", "--var", "in=in", "--progress", "json"]) == 3
    line = json.loads(capsys.readouterr().err.splitlines()[0])
    assert (line["event"], line["level"], line["message"]) == ("message", "warning", "there is nothing")


@pytest.mark.parametrize("command", ["run good.vdsl", "compile good.vdsl --emit spark", "store list"])
def test_a_spark_that_does_not_start_ends_every_command_with_1(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_session(*_: object) -> None:
        log = "26/11/21 ERROR SparkContext: Error\norg.apache.spark.SparkException: no JVM came up\n\tat Spark.main\n"
        os.write(1, log.encode())  # as a JVM would
        raise RuntimeError("An error occurred while calling None")

    monkeypatch.setattr("vsc.runtime.spark.query.launch._session", no_session)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr("vsc.cli.machine.java_problem", lambda: None)
    identity = Identity(
        "0123456789abcdef" * 2, 2, dump(compile_topology((folder / "good.vdsl").read_text(), "good.vdsl"))
    )
    (folder / "ck" / "vsc").mkdir(parents=True)
    (folder / "ck/vsc/identity.json").write_text(identity.dump("good"))
    (folder / "ck/vsc/plan.json").write_text(identity.plan_text)
    arguments = command.split() + ([] if command.startswith("store") else ["--var", "in=in"])
    arguments += [] if command.startswith("compile") else ["--checkpoint", "ck"]
    assert main([*arguments, "--master", "local[1]"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "error[VSC907]: Spark did not start on local[1]: no JVM came up\n" in err
    log = Path(err.rstrip().rpartition(" ")[2])
    assert "SparkContext: Error" in log.read_text()


@pytest.mark.parametrize(
    ("command", "here"),
    [
        ("run good.vdsl --var in=gone", "source 's' (line 1): there is no file or folder 'gone'"),
        ("compile good.vdsl --emit spark --var in=gone", "source 's' (line 1): there is no file or folder 'gone'"),
        ("store list", "ck is not a checkpoint of vsc"),
    ],
)
def test_a_path_without_a_scheme_is_looked_for_where_spark_looks_for_it(
    command: str, here: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_session(*_: object) -> None:
        raise RuntimeError("Spark was started")

    monkeypatch.setattr("vsc.runtime.spark.query.launch._session", no_session)
    monkeypatch.setattr("vsc.cli.machine.java_problem", lambda: None)
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    arguments = [*command.split(), *([] if command.startswith("compile") else ["--checkpoint", "ck"])]
    assert main(arguments) == 1
    assert here in capsys.readouterr().err
    assert main([*arguments, "--conf", "spark.hadoop.fs.defaultFS=hdfs://there/"]) == 1
    assert "Spark was started" in capsys.readouterr().err
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert main(arguments) == 1
    assert "Spark was started" in capsys.readouterr().err


def test_a_setting_that_vsc_makes_itself_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings: list[Any] = []

    @contextmanager
    def launched(name: str, master: str, conf: dict[str, str], *_: object) -> Iterator[None]:
        settings.append(conf)
        yield None

    monkeypatch.setattr("vsc.runtime.spark.query.launch.launched", launched)
    monkeypatch.setattr("vsc.runtime.spark.query.run.run", lambda *_: None)
    monkeypatch.setattr("vsc.cli.machine.java_problem", lambda: None)
    conf = {
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.ansi.enabled": "TRUE",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
        "spark.sql.caseSensitive": "true",
    }
    given = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    assert main(["run", "good.vdsl", "--checkpoint", "ck", "--var", "in=in", *given]) == 0
    assert capsys.readouterr().err == (
        "warning: --conf spark.sql.shuffle.partitions has no effect: --partitions says how many there are\n"
        "warning: --conf spark.sql.session.timeZone=Asia/Tokyo has no effect: vsc sets it to UTC\n"
    )
    assert settings == [conf]
