"""Functions of the user's in what reads topologies: diff, the language server, the commands."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from lsprotocol.types import MarkupContent

from vsc.changes import Verdict, compare
from vsc.cli import main
from vsc.compiler import compile_topology
from vsc.lsp.completion import completions
from vsc.lsp.document import Document
from vsc.lsp.hover import hover
from vsc.lsp.renaming import RenameRefused, rename

TEXT = """function risk (amount double) returns double from 'scoring.rules:risk';
stream s (k string, n double, at bigint) from files (path = 's', format = 'json') key k timestamp at;
table t = aggregate s group by k select sum(risk(n)) as v;
sink t to files (path = 't', format = 'json');
"""


def verdicts(*changed: tuple[str, str]) -> list[str]:
    new = TEXT
    for was, now in changed:
        assert was in new
        new = new.replace(was, now)
    plans = [compile_topology(text) for text in (TEXT, new)]
    return [f"{c.kind} {c.name}: {c.verdict.value}" for c in compare(*plans) if c.verdict is not Verdict.KEEP]


def test_another_name_is_no_change_and_what_it_computes_is_one() -> None:
    rebuilt = verdicts(("risk(n)", "2 * risk(n)"))
    assert rebuilt != []
    assert verdicts(("function risk", "function score"), ("risk(n)", "score(n)")) == []
    assert verdicts(("rules:risk", "rules:risk_v2")) == rebuilt
    assert verdicts(("rules:risk'", "rules:risk' vectorized")) == rebuilt
    assert verdicts(("amount double", "amount float")) == rebuilt


def test_a_function_is_renamed_where_it_is_declared_and_called() -> None:
    document = Document("file:///t.vdsl", TEXT)
    edits = rename(document, TEXT.index("risk(n)") + 1, "score")
    assert [document.text[span.start : span.end] for span, _ in edits] == ["risk", "risk"]
    with pytest.raises(RenameRefused, match="`sum` is a function of the language"):
        rename(document, TEXT.index("risk ("), "sum")


def test_editors_show_and_complete_a_function() -> None:
    document = Document("file:///t.vdsl", TEXT)
    declared = TEXT.partition("\n")[0]
    for place in (TEXT.index("risk ("), TEXT.index("risk(n)")):
        found = hover(document, place + 1)
        assert found is not None
        assert isinstance(found.contents, MarkupContent)
        assert found.contents.value == f"```vdsl\n{declared}\n```"
    begun = Document("file:///t.vdsl", TEXT + "stream u = map s select ri")
    items = {item.label: item for item in completions(begun, len(begun.text))}
    edit = items["risk"].text_edit
    assert edit is not None
    assert (edit.new_text, items["risk"].detail) == ("risk(", declared)


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/scoring_of_test.py").write_text("def risk(amount):\n    return 2 * amount\n")
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.delitem(sys.modules, "scoring_of_test", raising=False)
    (tmp_path / "t.vdsl").write_text(TEXT.replace("scoring.rules", "scoring_of_test"))
    path = tmp_path / "t.scenario.yaml"
    path.write_text(
        "topology: t.vdsl\nscenarios:\n  - name: doubled\n    steps:\n      - s: {k: a, n: 4, at: 1}\n"
        "        expect:\n          t: [{key: {k: a}, value: {v: 8.0}, timestamp: 1}]\n"
    )
    return str(path)


def test_scenarios_call_functions_of_modules_that_are_allowed(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", scenario, "--functions", "other, scoring_of_test"]) == 0
    assert main(["test", scenario]) == 1
    assert "[VSC925] the topology calls 'scoring_of_test:risk', of a module that this run" in capsys.readouterr().out
    assert main(["test", scenario, "--functions", "scoring.py:x"]) == 2
    assert "--functions takes names of modules: `scoring.py:x` is not one" in capsys.readouterr().err


def test_a_scenario_file_names_the_modules(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, text = Path(scenario), Path(scenario).read_text()
    for named in ("scoring_of_test", "[other, scoring_of_test]"):
        path.write_text(f"functions: {named}\n{text}")
        assert main(["test", scenario]) == 0
    path.write_text(f"functions: [scoring.py:x]\n{text}")
    assert main(["test", scenario]) == 2
    assert "1:13: `scoring.py:x` is not the name of a module" in capsys.readouterr().err
    path.write_text(f"functions: [no_such_module]\n{text}")
    (path.parent / "t.vdsl").write_text(TEXT.replace("scoring.rules", "no_such_module"))
    assert main(["test", scenario]) == 1
    shown = capsys.readouterr().out
    assert "[VSC925] the function 'no_such_module:risk' cannot be imported" in shown
    assert "install its module in this Python, or put its folder on PYTHONPATH" in shown and "py-files" not in shown


def test_commands_that_read_topologies_do_without_the_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.vdsl"
    path.write_text(TEXT)
    assert [main([*words.split(), str(path)]) for words in ("check", "compile", "compile --emit topology")] == [0, 0, 0]
    assert main(["diff", str(path), str(path)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r'"functions": \[\s*\{\s*"name": "risk"', shown)
    assert "scoring" not in sys.modules


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "the topology calls 'scoring.rules:risk', of a module that this run does not allow"),
        ("--functions scoring", "the topology calls 'scoring.rules:risk', of a module that this run does not allow"),
        (
            "--functions scoring.rules",
            "the function 'scoring.rules:risk' cannot be imported: No module named 'scoring'",
        ),
        ("--functions scoring.rules --py-files {0}/risk.py", "cannot be imported: No module named 'scoring'"),
        ("--functions scoring.rules --py-files {0}/scoring.zip", "has no function 'risk'"),
    ],
)
def test_a_run_is_refused_before_spark_starts(
    words: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import zipfile

    path = tmp_path / "t.vdsl"
    path.write_text(TEXT.replace("path = '", f"path = '{tmp_path}/"))
    (tmp_path / "s").mkdir()
    (tmp_path / "risk.py").write_text("")
    with zipfile.ZipFile(tmp_path / "scoring.zip", "w") as archive:
        archive.writestr("scoring/__init__.py", "")
        archive.writestr("scoring/rules.py", "")
    assert main(["run", str(path), "--checkpoint", str(tmp_path / "ck"), *words.format(tmp_path).split()]) == 1
    shown = capsys.readouterr().err
    assert problem in shown
    assert "VSC925" in shown
    assert "scoring" not in sys.modules
    assert not (tmp_path / "ck").exists()
