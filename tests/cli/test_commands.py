"""The command line: what goes where, and how each command ends."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.lineage.standard import check
from vsc import __version__
from vsc.cli import COMMANDS, main
from vsc.compiler import compile_topology
from vsc.compiler.diagnostics.codes import CODES
from vsc.extras import install
from vsc.plan import dump

GOOD = """\
stream payments (id string, amount int) from memory () key id;
stream large = filter payments where amount > ${smallest};
sink large to console ();
"""
BAD = "stream payments (id strin) from memory () key id;\nsink payments to console ();\n"
WARNING = "stream payments (id string) from memory () key id;\n"


@pytest.fixture
def good(tmp_path: Path) -> str:
    return _file(tmp_path, "good.vdsl", GOOD)


@pytest.fixture
def bad(tmp_path: Path) -> str:
    return _file(tmp_path, "bad.vdsl", BAD)


def _file(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_a_good_file_ends_with_0_and_says_so_on_stderr(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", good, "--var", "smallest=1"]) == 0
    assert capsys.readouterr() == ("", "1 file: no findings\n")


def test_findings_go_to_stderr_as_text_and_end_with_1(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", bad]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error[VSC016]: there is no type `strin`\n")
    assert f"--> {bad}:1:21" in err and err.endswith("1 file: 1 error\n")


def test_check_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert main(["check", "-"]) == 1
    assert "--> <stdin>:1:21" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    assert main(["check", "-"]) == 2
    assert capsys.readouterr().err.startswith("error: <stdin> is not UTF-8 text: byte 0xFF on line 1\n")


def test_check_takes_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sub").mkdir()
    _file(tmp_path, "a.vdsl", BAD)
    _file(tmp_path / "sub", "b.vdsl", WARNING)
    assert main(["check", str(tmp_path), str(tmp_path / "a.vdsl")]) == 1
    err = capsys.readouterr().err
    assert f"{tmp_path}/a.vdsl:1:21" in err and f"{tmp_path}/sub/b.vdsl:1:8" in err
    assert err.endswith("2 files: 1 error, 1 warning\n")


@pytest.mark.parametrize("form", ["concise", "json", "sarif", "github"])
def test_other_formats_go_to_stdout(form: str, bad: str, good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", bad, good, "--var", "smallest=1", "--format", form]) == 1
    out, err = capsys.readouterr()
    assert err == "" and "VSC016" in out
    if form == "json":
        (finding,) = json.loads(out)
        assert (finding["path"], finding["line"], finding["column"], finding["end_column"]) == (bad, 1, 21, 26)


def test_a_text_with_many_findings_is_cut_and_other_formats_have_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"stream s{i} (id strin) from memory () key id;" for i in range(30)]
    path = _file(tmp_path, "many.vdsl", "stream lost (id string) from memory ();\n" + "\n".join(lines))
    assert main(["check", path]) == 1
    err = capsys.readouterr().err
    assert err.count("error[VSC016]") == 20 and "warning[" not in err
    assert err.endswith(f"and 10 errors more in {path}: `vsc check --format concise` lists all of them\n\n"
                        "1 file: 30 errors\n")  # fmt: skip
    assert main(["check", path, "--format", "concise"]) == 1
    assert capsys.readouterr().out.count("VSC016") == 30


def test_what_is_no_topology_gets_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = _file(tmp_path, "a.vdsl", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    assert main(["check", picture]) == 2
    assert capsys.readouterr().err == f"error: {picture} is not a text file\n = help: name a topology (.vdsl)\n"
    plan = _file(tmp_path, "b.vdsl", '{"format_version": 2,\n "nodes": [{"name": "a;b"}]}')
    assert main(["check", plan, "--format", "concise"]) == 1
    assert capsys.readouterr().out == f"{plan}:1:1: VSC005 error: this is JSON, not a topology\n"
    empty = _file(tmp_path, "c.vdsl", "")
    assert main(["check", empty, "--format", "concise"]) == 1
    assert capsys.readouterr().out == f"{empty}:1:1: VSC013 error: the file declares no stream and no table\n"


def test_warnings_fail_only_when_they_are_denied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path, "warning.vdsl", WARNING)
    assert main(["check", path]) == 0
    assert main(["check", path, "--deny-warnings"]) == 1
    assert "warning[VSC123]" in capsys.readouterr().err


def test_warnings_are_allowed_and_errors_are_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path, "warning.vdsl", WARNING)
    assert main(["check", path, "--deny-warnings", "--allow", "VSC313,VSC123"]) == 0
    assert main(["compile", path, "--allow", "VSC123", "-o", str(tmp_path / "plan.json")]) == 0
    assert "VSC123" not in capsys.readouterr().err
    assert main(["compile", path, "--allow", "VSC313", "-o", str(tmp_path / "plan.json")]) == 0
    assert "warning[VSC123]" in capsys.readouterr().err
    assert main(["check", path, "--allow", "VSC103"]) == 2
    assert capsys.readouterr().err == (
        "error: --allow VSC103: VSC103 is an error, which cannot be allowed\n = help: correct what it tells of\n"
    )


def test_variables_come_from_the_command_line_before_the_environment(
    good: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", good]) == 1
    monkeypatch.setenv("smallest", "7")
    assert main(["compile", good]) == 0
    seven = capsys.readouterr().out
    assert main(["compile", good, "--var", "smallest=8", "--var", "smallest=9"]) == 0
    nine = capsys.readouterr().out
    assert seven.replace('"literal": 7', '"literal": 9') == nine != seven


def test_compile_writes_the_plan_to_stdout_or_whole_to_a_file(
    good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", good, "--var", "smallest=1"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["name"] == "good" and err == ""
    target = tmp_path / "plan.json"
    assert main(["compile", good, "--var", "smallest=1", "-o", str(target)]) == 0
    assert target.read_text() == out and capsys.readouterr() == ("", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.vdsl", "plan.json"]


@pytest.mark.parametrize("form", ["plan", "topology", "svg", "lineage"])
def test_compile_reads_standard_input_and_plans(
    form: str, good: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def compiled(file: str, given: str = "") -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        variables = [] if file.endswith(".json") or given.startswith("{") else ["--var", "smallest=1"]
        assert main(["compile", file, "--emit", form, *variables]) == 0
        return re.sub(r'"(runId|eventTime)": "[^"]*"', "", capsys.readouterr().out)

    (tmp_path / "plan.json").write_text(plan := dump(compile_topology(Path(good).read_text(), good, {"smallest": "1"})))
    shown = compiled(good)
    assert compiled(str(tmp_path / "plan.json")) == compiled("-", plan) == shown
    assert compiled("-", Path(good).read_text()) == shown.replace("good", "topology")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": 1}')))
    assert main(["compile", "-"]) == 2
    assert "error: <stdin> is not a plan of this vsc: " in capsys.readouterr().err


@pytest.mark.parametrize("form", ["plan", "topology", "graph", "mermaid", "dot", "svg"])
def test_every_form_of_compile(form: str, good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", good, "--emit", form, "--var", "smallest=1"]) == 0
    assert "large" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["mermaid", "dot", "svg"])
def test_a_picture_of_the_plan_as_it_runs(form: str, good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", good, "--emit", form, "--var", "smallest=1"]) == 0
    written = capsys.readouterr().out
    assert main(["compile", good, "--emit", form, "--physical", "--var", "smallest=1"]) == 0
    runs = capsys.readouterr().out
    assert "stage 0" in runs and "stage 0" not in written


def test_the_lineage_of_a_topology(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "bank")
    monkeypatch.setenv("IN_BUCKET", "raw")
    text = """stream payments (id string) from files (path = 's3a://${IN_BUCKET}/payments', format = 'json') key id;
    sink payments to kafka (bootstrap_servers = '${BROKERS}', topic = '${topic}', format = 'json');"""
    file = _file(tmp_path, "bank.vdsl", text)
    assert main(["compile", file, "--emit", "lineage", "--var", "topic=paid"]) == 0
    event = json.loads(capsys.readouterr().out)
    check(event)
    assert (event["job"]["namespace"], event["job"]["name"]) == ("bank", "bank")
    datasets = [(one["namespace"], one["name"]) for one in (*event["inputs"], *event["outputs"])]
    assert datasets == [("s3://raw", "payments"), ("kafka://${BROKERS}", "paid")]


def test_a_refused_topology_writes_nothing(bad: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "plan.json"
    assert main(["compile", bad, "-o", str(target)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "error[VSC016]" in err and not target.exists()


@pytest.mark.parametrize("command", ["check", "fmt"])
def test_without_a_path_it_is_this_folder(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command]) == 2
    assert "error: . holds no topology" in capsys.readouterr().err
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t.vdsl").write_text("stream s (id int) from memory () key id;\nsink s too console ();\n")
    assert main([command]) == (1 if command == "check" else 2)
    assert "a/t.vdsl:2:8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "{folder}/missing.vdsl"], "there is no file {folder}/missing.vdsl\n"),
        (["check", "{folder}/godo.vdsl"], "godo.vdsl\n = help: did you mean `{folder}/good.vdsl`?"),
        (["check", "{folder}/nowhere/good.vdsl"], "there is no file {folder}/nowhere/good.vdsl\n"),
        (["compile", "{folder}"], "{folder} is a directory"),
        (["check", "{folder}/latin1.vdsl"], "{folder}/latin1.vdsl is not UTF-8 text: byte 0xE9 on line 2"),
        (["check", "a\0b"], "cannot be read"),
        (["check", "x", "--var", "novalue"], "--var takes NAME=VALUE: a `=` is missing"),
        (["check", "x", "--var", "1=2"], "--var takes NAME=VALUE: `1` is not a name of letters, digits and `_`"),
        (["check", "x", "--vars", "a=secret"], "error: vsc check: unrecognized arguments: --vars a=...\n"),
        (["compile"], "help: FILE: a topology (.vdsl), or - for standard input"),
        (["upgrade", "x"], "help: --from: the checkpoint to continue from; it is only read; --checkpoint: the folder"),
        (["check", "x", "--form", "json"], "error: vsc check: unrecognized arguments: --form"),
        (["store", "list", "--checkpoint", "x", "--key", "1"], "help: vsc store list --help shows what it takes"),
        (["check", "x", "--format", "xml"], "invalid choice: 'xml'"),
        (["compile", "{folder}/good.vdsl", "--conf", "spark.a=b"], "--conf and --packages are for --emit spark"),
        (["compile", "{folder}/good.vdsl", "--physical"], "--physical is for pictures"),
        (["compile", "{folder}/good.vdsl", "--emit", "spark", "--conf", "ab"],
         "--conf takes KEY=VALUE: a name or a `=` is missing"),
        (["compile", "{folder}/good.vdsl", "--var", "smallest=1", "-o", "{folder}/no/plan"],
         "{folder}/no/plan cannot be written"),
        (["compile", "{folder}/good.vdsl", "--var", "smallest=1", "-o", "{folder}"], "{folder} cannot be written"),
        (["explain", "VSC30"], "there is no code VSC30"),
        (["frobnicate"], "there is no command `frobnicate`"),
        ([], "usage: vsc"),
    ],
)  # fmt: skip
def test_wrong_use_ends_with_2_and_says_why(
    arguments: list[str], message: str, good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _file(tmp_path, "latin1.vdsl", "-- a\n-- caf\xe9".encode("latin-1"))
    folder = str(tmp_path)
    assert main([argument.replace("{folder}", folder) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert message.replace("{folder}", folder) in err and "Traceback" not in err and out == ""


def test_a_file_that_cannot_be_read_is_wrong_use(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.chmod(good, 0)
    if os.access(good, os.R_OK):
        pytest.skip("root reads everything")
    assert main(["check", good]) == 2
    assert "cannot be read: Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize("code", ["VSC303", "vsc303", "303"])
def test_explain_prints_the_page(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", code]) == 0
    assert capsys.readouterr().out.startswith("# VSC303: `grace` on a join with an unversioned table\n")


def test_every_code_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert [code for code in CODES if main(["explain", code]) != 0] == []


def test_explain_alone_lists_all_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(CODES)
    assert "VSC123  warning  a node that reaches no sink" in lines
    assert "VSC303  error    `grace` on a join with an unversioned table" in lines


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("chek x", "error: there is no command `chek`\n = help: did you mean `check`?\n"),
        ("frobnicate", "error: there is no command `frobnicate`\n"
         " = help: there are inspect, check, fmt, compile, run, pack, diff, upgrade, explain, test, store, "
         "init, completion, lsp, doctor\n"),
        ("check x --formt json",
         "error: vsc check: unrecognized arguments: --formt json\n = help: did you mean `--format`?\n"),
        ("explain VSC30",
         "error: there is no code VSC30\n = help: did you mean VSC003? `vsc explain` lists all codes\n"),
        ("explain nonsense", "error: there is no code nonsense\n = help: `vsc explain` lists all codes\n"),
    ],
)  # fmt: skip
def test_what_is_mistyped_is_suggested(arguments: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split()) == 2
    assert capsys.readouterr() == ("", told)


@pytest.mark.parametrize("form", ["text", "concise"])
def test_a_missing_file_hides_no_findings(
    form: str, bad: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = _file(tmp_path, "other.vdsl", "sink nothing to console ();\n")
    missing = str(tmp_path / "missing.vdsl")
    assert main(["check", bad, missing, other, "--format", form]) == 2
    out, err = capfd.readouterr()
    assert err.startswith(f"error: there is no file {missing}\n")
    found = out if form == "concise" else err
    assert all(code in found for code in ("VSC016", "VSC103"))
    if form == "text":
        assert err.endswith("2 files: 3 errors\n")


@pytest.mark.parametrize(
    "arguments", [["compile", "{good}", "--var", "smallest=1"], ["explain", "VSC303"], ["--help"], ["doctor"]]
)
def test_a_standard_output_that_is_full_is_said(arguments: list[str], good: str) -> None:
    command = [sys.executable, "-m", "vsc", *(a.format(good=good) for a in arguments)]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (
        2, "error: standard output cannot be written: No space left on device\n = help: send it elsewhere\n"
    )  # fmt: skip


def test_a_standard_error_that_is_full_or_closed_changes_no_status(bad: str) -> None:
    for end in ("2>/dev/full", "2>&-", ">&- 2>&-"):
        assert subprocess.run(f"{sys.executable} -m vsc check {bad} {end}", shell=True).returncode == 1


def test_nothing_is_imported_from_the_working_directory(good: str, tmp_path: Path) -> None:
    for name in ("json", "random", "argparse", "dataclasses", "networkx"):
        _file(tmp_path, f"{name}.py", "raise RuntimeError")
    command = [sys.executable, "-m", "vsc", "check", good, "--var", "smallest=1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "1 file: no findings\n")


@pytest.mark.parametrize("command", ["check", "compile"])
def test_a_variable_that_nothing_refers_to_is_warned_of(
    command: str, good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, good, "--var", "smallest=1", "--var", "smalest=1", "--var", "x=1"]) == 0
    assert capsys.readouterr().err.startswith(
        "warning: --var smalest: nothing refers to ${smalest}\n = help: did you mean `--var smallest=...`?\n"
        "warning: --var x: nothing refers to ${x}\n = help: remove `--var x=...`\n"
    )
    assert main(["check", good, "--var", "smallest=1", "--var", "x=1", "--deny-warnings"]) == 1


def test_a_variable_is_known_if_one_of_the_files_has_it(good: str, tmp_path: Path) -> None:
    other = "stream s (a int) from files (path = '${in}/s', format = 'json') key a; -- ${out}\nsink s to noop ();"
    path = _file(tmp_path, "other.vdsl", other)
    assert main(["check", good, path, "--var", "smallest=1", "--var", "in=x", "--deny-warnings"]) == 0
    assert main(["check", path, "--var", "out=x", "--var", "in=x", "--deny-warnings"]) == 1


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"vsc {__version__}\n"
    assert main(["--help"]) == 0
    assert set(COMMANDS) <= set(capsys.readouterr().out.split())


def _check_fails(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A bug of vsc's, with this text."""

    def fail(*_: object) -> None:
        raise KeyError(text)

    monkeypatch.setattr("vsc.compiler.driver.check_source", fail)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/a/b"),
         "error[VSC906]: /a/b cannot be written: No space left on device\n"
         " = help: free some space there, then try again\n"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"),
         "error[VSC906]: a file cannot be written: Disk quota exceeded\n"
         " = help: free some space there, then try again\n"),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp', '/var/tmp', '/']"),
         "error[VSC907]: no temporary folder can be written: TMPDIR, /tmp and /var/tmp are full, or closed to this "
         "user\n"
         " = help: free some space, or set TMPDIR to a folder that can be written\n"),
    ],
)  # fmt: skip
def test_a_full_disk_is_no_bug(
    error: OSError, message: str, good: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("vsc.compiler.driver.check_source", Mock(side_effect=error))
    assert main(["check", good]) == 1
    assert capsys.readouterr().err == message


def test_a_bug_ends_with_70_and_hides_its_traceback(
    good: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _check_fails(monkeypatch, "oops")
    monkeypatch.delenv("VSC_DEBUG", raising=False)
    assert main(["check", good]) == 70
    err = capsys.readouterr().err
    assert "this is a bug in vsc: KeyError: 'oops'" in err and "Traceback" not in err
    monkeypatch.setenv("VSC_DEBUG", "1")
    assert main(["check", good]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_bug_report_has_no_values_of_variables(
    good: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _check_fails(monkeypatch, "jdbc:postgresql://u:planted@h")
    assert (
        main(["check", good, "--format=json", "--var", "password=planted", "--var=url=geheim=1", "--var", "no="]) == 70
    )
    out, err = capsys.readouterr()
    assert "KeyError: 'jdbc:postgresql://u:...@h'" in err
    assert f"(vsc check {good} --format=json --var password=... --var=url=... --var no=...)" in err
    assert "planted" not in err + out and "geheim" not in err + out


def test_a_bug_report_has_no_values_of_the_environment_either(
    good: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _check_fails(monkeypatch, "planted-1, planted-2 and postgresql://me:planted-3@h?password=planted-4&ssl=1")
    monkeypatch.setenv("smallest", "planted-1")  # the topology uses it
    monkeypatch.setenv("SERVICE_TOKEN", "planted-2")
    for debug in ("", "1"):
        monkeypatch.setenv("VSC_DEBUG", debug)
        assert main(["check", good]) == 70
        err = capsys.readouterr().err
        assert "KeyError: '..., ... and postgresql://me:...@h?password=...&ssl=1'" in err
        assert "planted" not in err
        assert ("Traceback" in err) is (debug == "1")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process cannot write over its command line")
def test_a_process_does_not_show_the_values_on_its_command_line() -> None:
    show = "from vsc.cli.hidden import cover_values; cover_values(); print(open('/proc/self/cmdline').read())"
    given = ["run", "t.vdsl", "--var", "password=planted", "--conf=spark.a.b=planted", "--var", "empty="]
    done = subprocess.run([sys.executable, "-c", show, *given], capture_output=True, text=True, check=True)
    shown = done.stdout.rstrip("\n\0").split("\0")
    covered = ["run", "t.vdsl", "--var", "password=*******", "--conf=spark.a.b=*******", "--var", "empty="]
    assert shown[-7:] == covered


@pytest.mark.parametrize("command", ["check", "compile", "fmt"])
def test_a_file_without_end_is_refused_with_a_code(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "/dev/zero"]) == 2
    assert capsys.readouterr().err.startswith("error[VSC015]: /dev/zero is too large: more than 64 MiB are not read\n")


def test_an_interrupt_ends_with_130(good: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vsc.compiler.driver.check_source", interrupt)
    assert main(["check", good]) == 130


def test_a_missing_extra_is_named(
    good: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'rocksdict'", name="rocksdict")

    monkeypatch.setattr("vsc.compiler.driver.check_source", missing)
    assert main(["check", good]) == 2
    assert capsys.readouterr().err == (
        f"error: vsc check needs the package `rocksdict`, which is not installed\n = help: {install('test')}\n"
    )


def test_colour_only_on_a_terminal_and_never_with_no_color(
    bad: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    main(["check", bad])
    assert "\x1b" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    main(["check", bad])
    assert "\x1b[1;31merror[VSC016]" in capsys.readouterr().err
    monkeypatch.setenv("NO_COLOR", "1")
    main(["check", bad])
    assert "\x1b" not in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error(bad: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "vsc", "check", bad, "--format", "json"]
    with os.fdopen(writer, "wb") as stdout:
        ended = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_check_loads_neither_spark_nor_numbers_nor_lark(good: str) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "vsc", "check", good, "--var", "smallest=1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in re.findall(r"\|\s+(\S+)$", ended.stderr, re.MULTILINE)}
    assert loaded & {"pyspark", "pandas", "pyarrow", "numpy", "rocksdict", "lark", "rich"} == set()
    assert "networkx" in loaded
