"""``vsc doctor`` as far as it can be asked without Spark: what stands before it, and what a session is asked for."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vsc.cli import main
from vsc.cli.checks import Check
from vsc.cli.doctor_spark import _of_executor
from vsc.cli.errors import Refused
from vsc.cli.machine import ARCHIVE, machine_checks
from vsc.cli.on_spark import SparkOptions
from vsc.cli.problems import Problem
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.spark.base.folders import free_bytes, missing
from vsc.runtime.spark.base.servers import unreached
from vsc.runtime.spark.session.class_archive import Archive
from vsc.runtime.spark.session.on_executor import Answer

TOPOLOGY = """
function risk (a int) returns int from 'scoring:risk';
stream s (a int, b string) from files (path = '${in}', format = 'json') key a;
table t (a int, b string) from jdbc (url = 'jdbc:postgresql://127.0.0.1:${port}/shop', table = 't') key a;
stream scored = map s select risk(a) as r;
sink scored to files (path = '${out}', format = 'json');
sink t to noop ();
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "shop.vdsl").write_text(TOPOLOGY)
    (tmp_path / "broken.vdsl").write_text("stream s from nowhere;")
    (tmp_path / "other.vdsl").write_text("stream s (a int) from files (path = 'in', format = 'json') key a;\n"
                                         "sink s to noop ();")  # fmt: skip
    return tmp_path


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Instead of Spark: the settings with which it was to start."""
    asked: list[dict[str, str]] = []

    def run(self: SparkOptions, name: str, conf: dict[str, str], work: Callable[..., Any]) -> list[Check]:
        asked.append(dict(conf))
        raise Refused(Problem("Spark did not start", "vsc doctor may find the cause; see its log", "VSC907"), 1)

    monkeypatch.setattr(SparkOptions, "run", run)
    monkeypatch.setattr("vsc.cli.doctor.machine_checks", lambda: [Check("Python", "3.11")])
    return asked


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[tuple[str, str, str, str | None]]]:
    """The exit status, and of each check its name, status, what was found and what to do."""
    status = main(["doctor", "--format", "json", *arguments])
    found = json.loads(capsys.readouterr().out)
    return status, [(one["name"], one["status"], one["found"], one["fix"]) for one in found]


def test_without_arguments_this_machine_is_looked_at_alone(
    no_spark: list[dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(capsys) == (0, [("Python", "ok", "3.11", None)])
    assert no_spark == []


def test_each_question_is_a_check_of_its_own(
    no_spark: list[dict[str, str]], capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # a port that nobody listens at afterwards
        port = server.getsockname()[1]
    (folder / "file").touch()
    values = ["--var", "in=nowhere", "--var", f"port={port}", "--var", "out=out"]
    status, found = report(capsys, "shop.vdsl", "--checkpoint", "file", "--conf", "spark.ui.enabled=true", *values)
    assert status == 1
    checks = {name: (status, text) for name, status, text, _ in found}
    assert list(checks) == [
        "Python", "topology", "variables", "functions", "checkpoint", "source s", "source t", "connector jars", "Spark"
    ]  # fmt: skip
    assert checks["topology"] == ("ok", "shop.vdsl: 2 sources, 2 sinks")
    assert checks["variables"] == ("ok", "in, out, port")
    assert checks["functions"] == (
        "bad", "the topology calls 'scoring:risk', of a module that this run does not allow [VSC925]"
    )  # fmt: skip
    assert checks["checkpoint"] == ("bad", "the checkpoint file is a file [VSC904]")
    assert checks["source s"][1].endswith("there is no file or folder 'nowhere' [VSC905]")
    assert checks["source t"][0] == "bad" and f"127.0.0.1:{port}" in checks["source t"][1]
    assert checks["Spark"] == ("bad", "Spark did not start [VSC907]")
    assert found[-1][-1] == "see its log"
    assert no_spark == [{"spark.ui.enabled": "true"}]
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "name", "found", "fix"),
    [
        (["broken.vdsl"], "topology", "broken.vdsl has errors", "fix them: `vsc check` shows them as well"),
        (
            ["shop.vdsl"], "variables",
            "the variable ${in} has no value (source 's' (line 3), option 'path') [VSC907]",
            "give it with --var in=VALUE or in the environment",
        ),
    ],
)  # fmt: skip
def test_what_has_to_be_there_first(
    arguments: list[str], name: str, found: str, fix: str,
    no_spark: list[dict[str, str]], capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    status, checks = report(capsys, *arguments)
    assert (status, checks[-1]) == (1, (name, "bad", found, fix))
    assert no_spark == []


def test_the_archive_of_classes(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for name in ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    archive = Archive(folder / "vsc", "java-17.0.15-spark-4.1.4-0", "17.0.15")
    monkeypatch.setattr("vsc.cli.machine.archive_here", lambda: archive)
    assert archive_found() == "none: `vsc doctor --warm` makes one, and runs on this machine start faster"
    assert archive.can_be_made()
    (folder / "vsc/made").write_text("made")
    archive.keep(folder / "vsc/made")
    assert archive_found() == f"{folder}/vsc/java-17.0.15-spark-4.1.4-0-4.jsa, 4 B"
    archive = replace(archive, java="21.0.8")
    assert archive_found() == f"none yet: the next run makes one in {folder}/vsc as it ends"
    monkeypatch.undo()
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xshare:off")
    assert archive_found() == "none is used: SPARK_SUBMIT_OPTS decides on one itself"


def archive_found() -> str:
    """What is found of the archive of classes, which is nothing to fix."""
    [check] = [check for check in machine_checks() if check.name == ARCHIVE]
    assert check.status == "ok"
    return check.found


def test_spark_is_not_started_where_it_cannot(
    no_spark: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("vsc.cli.doctor.machine_checks", lambda: [Check("Java", "there is none", "install one")])
    assert main(["doctor", "other.vdsl"]) == 1
    assert capsys.readouterr().out == (
        "BAD   Java                there is none\n"
        "                          -> install one\n"
        "warn  Spark               was not started\n"
        "                          -> fix the problems above and run this again\n"
    )
    assert no_spark == []


def test_packages_that_are_to_be_fetched(
    no_spark: list[dict[str, str]], capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "s.conf").write_text("spark.jars.packages c:d:1")
    for given, found in (([], "c:d:1"), (["--packages", "a:b:1"], "a:b:1")):
        _, checks = report(capsys, "--properties-file", "s.conf", *given)
        assert ("connector jars", "ok", f"to fetch: {found}", None) in checks


@pytest.mark.parametrize(
    "arguments", [["--master", "locl"], ["--deploy-mode", "cluster"], ["--local-dir", " "], ["--warm", "shop.vdsl"]]
)
def test_wrong_use(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    ("free", "status", "found"),
    [(8 << 30, "ok", "{}, 8 GiB free"), (1 << 20, "warning", "{}, 1 MiB free"),
     (None, "bad",
      "no temporary folder can be written: TMPDIR, /tmp and /var/tmp are full, or closed to this user [VSC907]")],
)  # fmt: skip
def test_a_run_fails_only_without_any_room_for_temporary_files(
    free: int | None, status: str, found: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gettempdir() -> str:
        if free is None:
            raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")
        return str(folder)

    monkeypatch.setattr("tempfile.gettempdir", gettempdir)
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free))
    check = next(check for check in machine_checks() if check.name == "temporary folder")
    assert (check.status, check.found) == (status, found.format(folder))


def answer(**changed: Any) -> Answer:
    found = Answer("host", "/spark", "own", "/python", (), (), (), "4.1.4", None, 5 << 30, (None,), 0.0, 0.0)
    return found._replace(**changed)


@pytest.mark.parametrize(
    ("given", "checks"),
    [
        (answer(), [("ok", "/python, 5 GiB free for state (/spark)")]),
        (answer(free=1 << 20), [("warning", "1 MiB free for state")]),
        (answer(ahead=-61.0), [("warning", "its clock is 61 seconds behind the driver's"),
                               ("ok", "/python, 5 GiB free for state (/spark)")]),
        (answer(memory=100 << 20, cores=2),
         [("warning", "100 MiB of memory free for the Python workers of 2 cores, which take 512 MiB or more"),
          ("ok", "/python, 5 GiB free for state (/spark)")]),
        (answer(memory=512 << 20, cores=2), [("ok", "/python, 5 GiB free for state (/spark)")]),
        (answer(servers=("b:1: Connection refused",)),
         [("bad", "it cannot connect to what source 's' (line 2) needs: b:1: Connection refused"),
          ("ok", "/python, 5 GiB free for state (/spark)")]),
    ],
)  # fmt: skip
def test_what_an_executor_answers(given: Answer, checks: list[tuple[str, str]]) -> None:
    found = list(_of_executor(given, [], {(("b", 1),): "source 's' (line 2)"}))
    assert [(check.status, check.found) for check in found] == checks
    assert {check.name for check in found} == {"executor host"}


def test_an_executor_with_a_problem_is_not_said_to_be_fine() -> None:
    problem = ConfigurationError("it has no numpy", "install it")
    assert list(_of_executor(answer(), [problem], {(("b", 1),): "source 's'"})) == [
        Check("executor host", "it has no numpy [VSC907]", "install it")
    ]


def test_one_server_of_several_serves() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = server.getsockname()[:2]
        assert unreached((("127.0.0.1", 1), there)) is None
    assert unreached((there, ("127.0.0.1", 1))) == f"127.0.0.1:{there[1]}: Connection refused; 127.0.0.1:1: " + (
        "Connection refused"
    )


def test_folders_that_are_not_there(folder: Path) -> None:
    assert missing(str(folder)) == []
    assert missing("a/b") == [str(folder / "a/b"), str(folder / "a")]
    room = os.statvfs(folder)
    assert abs(free_bytes("a/b") - room.f_bavail * room.f_frsize) < 1 << 30


def test_no_plan_asks_for_what_every_plan_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    from vsc.runtime.spark.session.packages import packages_of

    assert packages_of(None) == packages_of(SimpleNamespace(sources=(), sinks=()))  # type: ignore[arg-type]
    assert "rocksdict" in packages_of(None)
