"""``vsc fmt``: what is written where, and how it ends."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vsc.cli import main

UNTIDY = "sink  a to memory();\n"
TIDY = "sink a to memory ();\n"
WRONG = "sink a too memory ();\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.vdsl", "b/c.vdsl", "b/tidy.vdsl", ".hidden/d.vdsl", "b/e.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(TIDY if path.stem == "tidy" else UNTIDY)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


@pytest.mark.parametrize("paths", [[], ["."], ["b", "a.vdsl", "b/c.vdsl"]])
def test_folders_are_formatted(paths: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", *paths]) == 0
    *lines, summary = told(capsys)
    assert sorted(lines) == ["reformatted: a.vdsl", "reformatted: b/c.vdsl"]
    assert summary == "2 files reformatted, 1 file unchanged"
    assert {path.name for path in folder.rglob("*.*") if path.is_file() and path.read_text() == TIDY} == {
        "a.vdsl", "c.vdsl", "tidy.vdsl",
    }  # fmt: skip
    assert main(["fmt", *paths, "--check"]) == 0
    assert told(capsys) == ["3 files unchanged"]


def test_a_file_that_is_named_may_be_hidden(folder: Path) -> None:
    assert main(["fmt", ".hidden/d.vdsl"]) == 0
    assert (folder / ".hidden/d.vdsl").read_text() == TIDY


@pytest.mark.parametrize("option", ["--check", "--diff"])
def test_check_and_diff_write_nothing(option: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", option, "a.vdsl", "b"]) == 1
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        "would be reformatted: a.vdsl",
        "would be reformatted: b/c.vdsl",
        "2 files would be reformatted, 1 file unchanged",
    ]
    change = "--- {0}\n+++ {0} (formatted)\n@@ -1 +1 @@\n-sink  a to memory();\n+sink a to memory ();\n"
    assert out == (change.format("a.vdsl") + change.format("b/c.vdsl") if option == "--diff" else "")
    assert (folder / "a.vdsl").read_text() == UNTIDY


def test_a_syntax_error_is_shown_as_by_check_and_the_others_are_formatted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.vdsl").write_text(WRONG)
    assert main(["check", "a.vdsl", "--format", "concise"]) == 1
    assert "a.vdsl:1:8: VSC005 error: unknown word `too`\n" in capsys.readouterr().out
    assert main(["fmt"]) == 2
    lines = told(capsys)
    assert lines[:2] == ["error[VSC005]: unknown word `too`", " --> a.vdsl:1:8"]
    assert lines[-1] == "1 file reformatted, 1 file unchanged, 1 file left alone"
    assert ((folder / "a.vdsl").read_text(), (folder / "b/c.vdsl").read_text()) == (WRONG, TIDY)


def test_what_cannot_be_read_ends_with_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.vdsl").write_bytes(b"\xff")
    assert main(["fmt", "a.vdsl", "gone.vdsl"]) == 2
    lines = told(capsys)
    assert lines[0] == "error: a.vdsl is not UTF-8 text: byte 0xFF on line 1"
    assert lines[2:] == ["error: there is no file gone.vdsl", "2 files left alone"]
    assert main(["fmt", "a.vdsl", "-"]) == 2
    assert told(capsys)[0] == "error: vsc fmt: `-` cannot be combined with files"
    (folder / "empty").mkdir()
    assert main(["fmt", "empty"]) == 2
    assert told(capsys)[0] == "error: empty holds no topology"


def test_a_file_keeps_its_permissions_and_links_and_gets_lf(folder: Path) -> None:
    target, link = folder / "a.vdsl", folder / "link.vdsl"
    target.write_bytes(TIDY.replace("\n", "\r\n").encode())
    target.chmod(0o640)
    link.symlink_to("a.vdsl")
    before = target.stat().st_ino
    assert main(["fmt", "link.vdsl"]) == 0
    assert link.is_symlink() and target.read_bytes() == TIDY.encode()
    assert target.stat().st_mode & 0o777 == 0o640
    assert target.stat().st_ino != before  # written beside it and moved there: never half a file
    assert sorted(path.name for path in folder.glob("*.vdsl*")) == ["a.vdsl", "link.vdsl"]


def test_a_formatted_file_is_not_touched(folder: Path) -> None:
    path = folder / "b/tidy.vdsl"
    before = os.stat(path)
    assert main(["fmt", "b/tidy.vdsl"]) == 0
    assert (os.stat(path).st_ino, os.stat(path).st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    ("options", "text", "status", "out"),
    [
        ([], UNTIDY, 0, TIDY),
        ([], TIDY, 0, TIDY),
        (["--check"], UNTIDY, 1, ""),
        (["--check"], TIDY, 0, ""),
        (["--diff"], UNTIDY, 1, f"--- <stdin>\n+++ <stdin> (formatted)\n@@ -1 +1 @@\n-{UNTIDY}+{TIDY}"),
        ([], WRONG, 2, ""),
    ],
)
def test_standard_input(
    options: list[str],
    text: str,
    status: int,
    out: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["fmt", *options, "-"]) == status
    captured = capsys.readouterr()
    assert captured.out == out
    assert ("--> <stdin>:1:8" in captured.err) == (status == 2)


def test_fmt_loads_only_the_parser() -> None:
    code = "import sys, vsc.cli; vsc.cli.main(['fmt', '-']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], input=UNTIDY, capture_output=True, text=True, check=True)
    assert done.stdout == TIDY
    assert (
        set(done.stderr.split()) & {"numpy", "pyarrow", "networkx", "lark", "pyspark", "vsc.compiler.passes"} == set()
    )
    assert "vsc.compiler.format" in done.stderr.split()
