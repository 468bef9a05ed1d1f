"""Files that a topology includes: what they declare, where findings point, what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lsprotocol import types

from vsc.changes import compare
from vsc.cli import main
from vsc.compiler.driver import compile_source
from vsc.compiler.source import Included, Position, SourceFile, Span
from vsc.lsp.diagnostics import diagnostics
from vsc.lsp.document import Document
from vsc.lsp.navigation import definition, outline
from vsc.lsp.renaming import RenameRefused, rename
from vsc.plan.nodes import Plan

SOURCES = """-- what all topologies read
let late = 10 minutes;

stream payments (id string, account string, amount double, at timestamp)
  from memory () key id timestamp at;
"""
TOPOLOGY = """topology spending;
include 'shared/common.vdsl';
table spent = aggregate payments group by account window tumbling (size = 1 hour, grace = late) select count(*) as n;
sink spent to memory ();
"""


class Shown(NamedTuple):
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str


class Files:
    """A folder with a topology and what it includes."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.write("t.vdsl", TOPOLOGY)
        self.write("shared/common.vdsl", SOURCES)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, *arguments: str | Path) -> Shown:
        self._capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        return Shown(status, *self._capsys.readouterr())

    def found(self) -> list[tuple[Any, ...]]:
        path = self.folder / "t.vdsl"
        result = compile_source(path.read_text(encoding="utf-8"), str(path))
        return [
            (d.code, d.path.removeprefix(f"{self.folder}/"), d.line, d.column, d.message) for d in result.diagnostics
        ]

    def plan(self) -> Plan:
        path = self.folder / "t.vdsl"
        plan = compile_source(path.read_text(encoding="utf-8"), str(path)).plan
        assert plan is not None
        return plan


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    return Files(tmp_path, capsys)


def test_what_is_included_is_read_in_its_place_and_has_the_line_of_the_include(files: Files) -> None:
    plan = files.plan()
    assert [(node.name, node.line) for node in plan.nodes if not node.part_of] == [("payments", 2), ("spent", 3)]
    whole = TOPOLOGY.replace("include 'shared/common.vdsl';", SOURCES)
    assert [n.operation for n in plan.nodes] == [n.operation for n in compile_source(whole).plan.nodes]  # type: ignore[union-attr]


def test_findings_point_into_the_file(files: Files) -> None:
    files.write("shared/common.vdsl", SOURCES + "let bad = nothing;\nstream more (id strin) from memory ();\n")
    assert files.found() == [
        ("VSC110", "shared/common.vdsl", 6, 11, "there is no column `nothing`"),
        ("VSC016", "shared/common.vdsl", 7, 17, "there is no type `strin`"),
    ]


def test_a_name_of_both_files_is_shown_in_both(files: Files) -> None:
    path = files.write("t.vdsl", TOPOLOGY + "stream payments (id string) from memory ();\n")
    shown = files.run("check", path)
    assert shown.status == 1
    assert "t.vdsl:5:8" in shown.err
    assert "shared/common.vdsl:4:8: first declared here" in shown.err
    (found,) = json.loads(files.run("check", "--format", "json", path).out)
    assert [(label["path"], label["line"]) for label in found["related"]] == [
        (str(files.folder / "shared/common.vdsl"), 4)
    ]


@pytest.mark.parametrize(
    ("common", "code", "column", "message"),
    [
        ("include 't.vdsl';", "VSC027", 9, "there is no file {0}/shared/t.vdsl"),
        ("include '../t.vdsl';", "VSC027", 9, "{0}/t.vdsl includes itself, through other files"),
        ("include 'common.vdsl';", "VSC027", 9, "{0}/shared/common.vdsl includes itself"),
        ("include '.';", "VSC027", 9, "{0}/shared is a directory"),
        ("sink x to memory ();", "VSC028", 1,
         "an included file declares sources, constants and functions, and nothing else"),
    ],
)  # fmt: skip
def test_what_an_included_file_cannot_do(files: Files, common: str, code: str, column: int, message: str) -> None:
    files.write("shared/common.vdsl", f"{common}\n{SOURCES}")
    assert files.found() == [(code, "shared/common.vdsl", 1, column, message.format(files.folder))]


def test_a_pipe_is_no_file_to_include(files: Files, tmp_path: Path) -> None:
    """Nobody writes into it: a read would not end."""
    os.mkfifo(tmp_path / "pipe.vdsl")
    (tmp_path / "t.vdsl").write_text("include 'pipe.vdsl';")
    [found] = compile_source((tmp_path / "t.vdsl").read_text(), str(tmp_path / "t.vdsl")).diagnostics
    assert (found.code, found.message) == ("VSC027", f"{tmp_path}/pipe.vdsl is a pipe or a device, not a file")
    assert main(["check", str(tmp_path)]) == 1


def test_a_file_is_read_once_and_includes_others_beside_it(files: Files) -> None:
    files.write("shared/spans.vdsl", "let late = 10 minutes;\n")
    files.write("shared/common.vdsl", "include 'spans.vdsl';\n" + SOURCES.replace("let late = 10 minutes;\n", ""))
    files.write("t.vdsl", "include 'shared/spans.vdsl';\n" + TOPOLOGY.replace("topology spending;\n", ""))
    assert files.found() == []
    assert files.plan().name == "t"


def test_a_file_with_mistakes_hides_what_it_would_have_declared(files: Files) -> None:
    files.write("shared/common.vdsl", SOURCES.replace("10 minutes", "10 minuts").replace("key id", "kee id"))
    assert [(code, path, line) for code, path, line, *_ in files.found()] == [
        ("VSC004", "shared/common.vdsl", 2), ("VSC005", "shared/common.vdsl", 5)
    ]  # fmt: skip


def test_a_string_without_its_end_does_not_swallow_the_rest(files: Files) -> None:
    files.write("shared/common.vdsl", "let open = 'a;\n" + SOURCES + "let closed = 'b';\n")
    assert [(code, path, line) for code, path, line, *_ in files.found()] == [("VSC002", "shared/common.vdsl", 1)]


def test_fifty_levels_are_enough(files: Files) -> None:
    for number in range(60):
        files.write(f"shared/f{number}.vdsl", f"include 'f{number + 1}.vdsl';\n")
    files.write("shared/common.vdsl", "include 'f0.vdsl';\n" + SOURCES)
    assert [(code, path) for code, path, *_ in files.found()] == [("VSC015", "shared/f48.vdsl")]


def test_a_folder_is_checked_with_what_its_topologies_include(files: Files) -> None:
    files.write("shared/common.vdsl", SOURCES + "let bad = nothing;\n")
    shown = files.run("check", "--format", "concise", files.folder)
    assert [line.split(" ")[0] for line in shown.out.splitlines()] == [f"{files.folder}/shared/common.vdsl:6:11:"]
    assert shown.status == 1


def test_a_variable_of_an_included_file_is_known(files: Files) -> None:
    files.write("shared/common.vdsl", SOURCES.replace("memory ()", "files (path = '${place}', format = 'json')"))
    for command in (["check"], ["compile"]):
        assert "nothing refers to" not in files.run(*command, files.folder / "t.vdsl", "--var", "place=x").err
        assert "nothing refers to ${other}" in files.run(*command, files.folder / "t.vdsl", "--var", "other=x").err


def test_another_value_of_a_constant_is_a_change(files: Files) -> None:
    before = files.plan()
    files.write("shared/common.vdsl", SOURCES.replace("10 minutes", "20 minutes"))
    assert [(c.kind, c.name) for c in compare(before, files.plan()) if c.reason] == [
        ("store", "spent"),
        ("store", "spent#windows"),
    ]


def test_the_formatter_leaves_the_names_of_constants(files: Files) -> None:
    shown = files.run("fmt", "--check", files.folder)
    assert (shown.status, "t.vdsl" in shown.err) == (1, True)
    assert files.run("fmt", files.folder).status == 0
    assert "grace = late" in (files.folder / "t.vdsl").read_text(encoding="utf-8")
    assert (
        (files.folder / "t.vdsl")
        .read_text(encoding="utf-8")
        .startswith("topology spending;\ninclude 'shared/common.vdsl';\n")
    )


def test_an_editor_goes_to_the_declaration_in_the_other_file(files: Files) -> None:
    files.write("shared/common.vdsl", SOURCES + "let bad = nothing;\n")
    document = Document((files.folder / "t.vdsl").as_uri(), TOPOLOGY)
    (place,) = definition(document, TOPOLOGY.index("payments"))
    assert place == types.Location(
        (files.folder / "shared/common.vdsl").as_uri(), types.Range(types.Position(3, 7), types.Position(3, 15))
    )
    (found,) = diagnostics(document)
    assert (found.range.start.line, found.range.end) == (1, types.Position(1, 29))
    assert found.related_information is not None
    assert found.related_information[0].location.range.start == types.Position(5, 10)
    assert [symbol.name for symbol in outline(document)] == ["spending", "spent", "spent"]
    with pytest.raises(RenameRefused, match="included file"):
        rename(document, TOPOLOGY.index("payments"), "paid")


def test_one_offset_is_a_place_in_any_file() -> None:
    text = "ab\ncd\nef\ngh"
    source = SourceFile("t", text, (Included("one", 6, Span(3, 5)), Included("two", 9, Span(6, 8))))
    assert [(source.path_of(at), source.position(at)) for at in (0, 4, 6, 7, 9, 11)] == [
        ("t", Position(1, 1)), ("t", Position(2, 2)), ("one", Position(1, 1)), ("one", Position(1, 2)),
        ("two", Position(1, 1)), ("two", Position(1, 3)),
    ]  # fmt: skip
    assert [source.own(Span(at, at + 1)) for at in (0, 6, 9)] == [Span(0, 1), Span(3, 5), Span(3, 5)]
    assert {path: file.text for path, file in source.files().items()} == {"t": "ab\ncd", "one": "ef", "two": "gh"}


SECRET = "root:x:0:0:password\n"


@pytest.fixture
def elsewhere(tmp_path: Path, files: Files) -> Path:
    """A folder beside the topologies, with a file that nobody is to see."""
    folder = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    folder.mkdir()
    (folder / "secret.vdsl").write_text(SECRET)
    (folder / "secret.env").write_text(SECRET)
    return folder


@pytest.mark.parametrize("command", ["check", "fmt", "test"])
def test_no_line_of_a_file_elsewhere_is_shown(
    files: Files, elsewhere: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files.folder)
    (files.folder / "link.vdsl").symlink_to(elsewhere / "secret.vdsl")
    files.write("t.vdsl", f"include '{elsewhere}/secret.vdsl';\n{TOPOLOGY}")
    files.write("u.vdsl", f"include 'shared/../link.vdsl';\n{TOPOLOGY}")
    files.write("v.vdsl", f"include '{elsewhere}/secret.env';\n{TOPOLOGY}")
    steps = f"scenarios:\n- {{name: a, steps: [{{payments: {{file: ../{elsewhere.name}/secret.env}}}}]}}\n"
    files.write("a.scenario.yaml", f"topology: t.vdsl\n{steps}")
    files.write("b.scenario.yaml", f"topology: {elsewhere}/secret.vdsl\n{steps}")
    files.write("w.vdsl", TOPOLOGY)
    files.write("c.scenario.yaml", f"topology: w.vdsl\n{steps}")
    found = files.run(command, ".")
    assert found.status == 2 and "does not lie below" in found.err + found.out
    assert "password" not in found.err + found.out


def test_a_root_for_includes_allows_more(files: Files, elsewhere: Path) -> None:
    (elsewhere / "common.vdsl").write_text(SOURCES)
    path = files.write("t.vdsl", TOPOLOGY.replace("shared/common.vdsl", str(elsewhere / "common.vdsl")))
    refused = files.run("check", path)
    assert refused.status == 1
    assert f"{elsewhere}/common.vdsl does not lie below" in refused.err
    assert "allow more with `--include-root FOLDER`" in refused.err
    assert files.run("check", path, "--include-root", elsewhere).status == 0


def test_only_topologies_are_included(files: Files) -> None:
    files.write("shared/secret.env", SECRET)
    path = files.write("t.vdsl", f"include 'shared/secret.env';\n{TOPOLOGY}")
    found = files.run("compile", path)
    assert found.status == 1 and "shared/secret.env is not a topology" in found.err
    assert "password" not in found.err
