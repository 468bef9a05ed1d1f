"""``--watch``: what starts a command again, what it shows between its runs, and how it ends."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.support import ROOT
from vsc.cli import main

GOOD = "stream s (a int) from memory () key a;\nsink s to noop ();\n"
WRONG = GOOD.replace("sink s", "sink t")
SCENARIO = """\
topology: ../topologies/t.vdsl
scenarios:
  - name: passes on
    steps:
      - pipe: {s: {a: 1}}
        timestamp: 0
        expect: {s: [{key: {a: 1}, value: {}, timestamp: 0}]}
"""
WATCHING = "watching for changes; Ctrl-C ends"


@dataclass
class Watching:
    """A command that runs; `read` are the lines up to the next time that it waits for changes."""

    process: subprocess.Popen[bytes]
    stream: Iterator[str]

    def read(self) -> list[str]:
        found: list[str] = []
        for line in self.stream:
            if line == WATCHING:
                return found
            found.append(line)
        raise AssertionError(f"ended with {self.process.wait()}: {found}")

    def stop(self) -> tuple[int, list[str]]:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(), list(self.stream)


Start = Callable[..., Watching]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.chdir(tmp_path)
    started: list[Watching] = []
    descriptors: list[int] = []

    def begin(*arguments: str, terminal: bool = False, **environment: str) -> Watching:
        reading, writing = pty.openpty() if terminal else os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-m", "vsc", *arguments, "--watch"],
            stdin=subprocess.DEVNULL, stdout=writing, stderr=writing,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", **environment},
        )  # fmt: skip
        os.close(writing)
        descriptors.append(reading)
        started.append(Watching(process, _lines(reading)))
        return started[-1]

    yield begin
    for one in started:
        one.process.kill()
        one.process.wait()
    for descriptor in descriptors:
        os.close(descriptor)


def _lines(descriptor: int) -> Iterator[str]:
    rest = b""
    while True:
        try:
            data = os.read(descriptor, 4096)
        except OSError:  # what Linux says of a terminal that nobody writes to any more
            data = b""
        *lines, rest = (rest + data).split(b"\n")
        yield from (line.decode().removesuffix("\r") for line in lines)
        if not data:
            return


def appended(path: Path, text: str) -> None:
    """Written in place, all at once."""
    with path.open("a") as file:
        file.write(text.removeprefix(path.read_text()))


def replaced(path: Path, text: str) -> None:
    """As many editors save."""
    beside = path.with_name(f".{path.name}.swp")
    beside.write_text(text)
    beside.replace(path)


@pytest.mark.quick(1)
@pytest.mark.parametrize("save", [replaced, appended])
def test_a_changed_topology_is_checked_again(save: Callable[[Path, str], None], start: Start, tmp_path: Path) -> None:
    path = tmp_path / "t.vdsl"
    path.write_text(GOOD)
    watching = start("check", "t.vdsl")
    assert watching.read() == ["1 file: no findings"]
    (tmp_path / "other.txt").write_text("not watched")
    save(path, GOOD + "sink t to noop ();\n")
    lines = watching.read()
    assert lines[:3] == ["", "changed: t.vdsl", "error[VSC103]: there is no node `t`"]
    assert lines[-1] == "1 file: 1 error"
    replaced(path, GOOD)
    assert watching.read() == ["", "changed: t.vdsl", "1 file: no findings"]
    assert watching.stop() == (130, ["interrupted"])


def test_an_included_file_is_watched_wherever_it_lies(start: Start, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    shared = tmp_path / "shared/common.vdsl"
    shared.write_text("stream s (a int) from memory () key a;\n")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/t.vdsl").write_text("include '../shared/common.vdsl';\nsink s to noop ();\n")
    watching = start("check", "own")
    assert watching.read() == ["1 file: no findings"]
    replaced(shared, "stream t (a int) from memory () key a;\n")
    lines = watching.read()
    assert lines[:3] == ["", "changed: shared/common.vdsl", "error[VSC103]: there is no node `s`"]


def test_a_folder_is_watched_with_what_comes_and_goes(start: Start, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.vdsl").write_text(GOOD)
    watching = start("check", "in")
    assert watching.read() == ["1 file: no findings"]
    (tmp_path / "in/new").mkdir()
    assert watching.read() == ["", "changed: in/new", "1 file: no findings"]
    (tmp_path / "in/.hidden").mkdir()
    replaced(tmp_path / "in/new/b.vdsl", GOOD)
    assert watching.read() == ["", "changed: in/new/b.vdsl", "2 files: no findings"]
    (tmp_path / "in/a.vdsl").unlink()
    assert watching.read() == ["", "changed: in/a.vdsl", "1 file: no findings"]
    (tmp_path / "in/new/b.vdsl").unlink()
    lines = watching.read()
    assert lines[:3] == ["", "changed: in/new/b.vdsl", "error: in holds no topology"]
    replaced(tmp_path / "in/a.vdsl", GOOD)
    assert watching.read() == ["", "changed: in/a.vdsl", "1 file: no findings"]


def test_a_file_that_is_missing_is_waited_for(start: Start, tmp_path: Path) -> None:
    watching = start("check", "t.vdsl")
    assert watching.read() == ["error: there is no file t.vdsl"]
    replaced(tmp_path / "t.vdsl", GOOD)
    assert watching.read()[-1] == "1 file: no findings"


def test_scenarios_run_again_when_their_topology_changes(start: Start, tmp_path: Path) -> None:
    topology, scenario = tmp_path / "topologies/t.vdsl", tmp_path / "scenarios/t.scenario.yaml"
    for path, text in ((topology, GOOD), (scenario, SCENARIO)):
        path.parent.mkdir()
        path.write_text(text)
    watching = start("test", "scenarios")
    first = watching.read()
    assert first[-1] == "1 passed, 0 failed"
    replaced(topology, WRONG)
    assert watching.read()[:3] == ["", "changed: topologies/t.vdsl", "error[VSC103]: there is no node `t`"]
    replaced(topology, GOOD)
    assert watching.read() == ["", "changed: topologies/t.vdsl", *first]
    replaced(scenario, SCENARIO.replace("{a: 1}, v", "{a: 2}, v"))
    assert watching.read()[-1] == "0 passed, 1 failed"


def test_a_terminal_is_cleared_between_runs(start: Start, tmp_path: Path) -> None:
    (tmp_path / "t.vdsl").write_text(GOOD)
    watching = start("check", "t.vdsl", terminal=True)
    assert watching.read() == ["1 file: no findings"]
    replaced(tmp_path / "t.vdsl", GOOD)
    assert watching.read() == ["\x1b[H\x1b[2J\x1b[3Jchanged: t.vdsl", "1 file: no findings"]
    assert watching.stop() == (130, ["interrupted"])


def test_a_terminal_without_a_cursor_is_not_cleared(start: Start, tmp_path: Path) -> None:
    (tmp_path / "t.vdsl").write_text(GOOD)
    watching = start("check", "t.vdsl", terminal=True, TERM="dumb")
    watching.read()
    replaced(tmp_path / "t.vdsl", GOOD)
    assert watching.read() == ["", "changed: t.vdsl", "1 file: no findings"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check", "-"], "error: vsc check: --watch does not take standard input\n = help: name a file or a folder\n"),
        (["check", "."], "error: . holds no topology\n"),
        (["check", "t.vdsl", "--var", "x"], "error: --var takes NAME=VALUE: a `=` is missing\n"),
    ],
)
def test_wrong_use_ends_at_once(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, "--watch"]) == 2
    assert capsys.readouterr().err.startswith(told)
