"""``vsc init``: each part of the project works."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.support import on_path
from vsc.cli import main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "my-shop"]) == 0
    assert capsys.readouterr().err == "8 files created in my-shop; next: cd my-shop && vsc test .\n"
    monkeypatch.chdir(tmp_path / "my-shop")
    return tmp_path / "my-shop"


def test_the_project_has_these_files(project: Path) -> None:
    made = sorted(str(path.relative_to(project)) for path in project.rglob("*") if path.is_file())
    assert made == [
        ".github/workflows/vsc.yml", ".gitignore", ".pre-commit-config.yaml", "README.md", "data/orders/orders.json",
        "data/prices/prices.csv", "topology.scenario.yaml", "topology.vdsl",
    ]  # fmt: skip
    assert "topology my_shop;" in (project / "topology.vdsl").read_text()
    assert not any("PROJECT" in path.read_text() for path in project.rglob("*") if path.is_file())


@pytest.mark.parametrize("command", ["check . --deny-warnings", "fmt --check .", "test ."])
def test_the_project_is_in_order(command: str, project: Path) -> None:
    assert main(command.split()) == 0


def test_the_scenarios_would_fail_on_another_topology(project: Path) -> None:
    path = project / "topology.vdsl"
    path.write_text(path.read_text().replace("materialize versioned (retention = 30 days)", "materialize"))
    assert main(["test", "."]) == 1


def test_the_pre_commit_hooks_find_what_is_wrong(project: Path) -> None:
    (entry,) = _yaml(project / ".pre-commit-config.yaml")["repos"]
    assert {hook["language"] for hook in entry["hooks"]} == {"system"}
    run = {hook["id"]: _hook(hook, project) for hook in entry["hooks"]}
    assert run["vsc-fmt"]() == run["vsc-check"]() == 0
    text = (project / "topology.vdsl").read_text()
    (project / "topology.vdsl").write_text(text.replace("select order_id,", "select  order_idd,"))
    assert run["vsc-check"]() == 1
    assert run["vsc-fmt"]() == 0
    assert (project / "topology.vdsl").read_text() == text.replace("order_id, pieces", "order_idd, pieces")


def _hook(hook: dict[str, Any], project: Path) -> Any:
    """Runs a hook as pre-commit does: on the files that match, from the top of the repository."""
    paths = [str(path.relative_to(project)) for path in sorted(project.rglob("*")) if path.is_file()]
    matching = [path for path in paths if re.search(hook["files"], path)]
    assert matching == ["topology.vdsl"]
    return lambda: (
        subprocess.run([*shlex.split(hook["entry"]), *matching], cwd=project, env=on_path(project)).returncode
    )


@pytest.mark.slow
def test_the_workflow_uses_the_action_as_it_is(project: Path) -> None:
    (job,) = _yaml(project / ".github/workflows/vsc.yml")["jobs"].values()
    checkout, step = job["steps"]
    assert checkout["uses"].startswith("actions/checkout@") and step["uses"] == "vsc-project/vsc@main"
    done = action(project, step["with"])
    assert (done.returncode, done.stdout) == (0, done.stdout) and "2 passed, 0 failed" in done.stderr
    path = project / "topology.vdsl"
    path.write_text(
        path.read_text().replace("pieces * price", "pieces*price") + "stream lost = filter priced where true;\n"
    )
    done = action(project, step["with"])
    assert done.returncode == 1
    assert (
        "::warning file=topology.vdsl,line=30," in done.stdout
        and "-  select order_id, pieces, price, pieces*price" in done.stdout
    )
    assert "2 passed, 0 failed" in done.stderr
    assert (
        action(project, {**step["with"], "deny-warnings": False, "paths": "topology.vdsl"}).returncode == 1
    )  # its format
    assert main(["fmt", "topology.vdsl"]) == 0
    assert action(project, {**step["with"], "deny-warnings": False}).returncode == 0


@pytest.mark.slow
def test_the_action_hands_on_variables_and_fails_with_its_tests(project: Path) -> None:
    path = project / "topology.vdsl"
    path.write_text(
        path.read_text() + "stream large = filter priced where pieces > ${least};\nsink large to noop ();\n"
    )
    assert action(project, {"variables": ""}).returncode == 1
    assert action(project, {"variables": "least=3\n"}).returncode == 0
    scenario = project / "topology.scenario.yaml"
    scenario.write_text(scenario.read_text().replace("total: 8.00", "total: 9.00"))
    done = action(project, {"variables": "least=3", "tests": "topology.scenario.yaml"})
    assert done.returncode == 1 and "1 passed, 1 failed" in done.stderr


def _input(text: str) -> str:
    found = re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", text)
    assert found is not None, text
    return found[1]


def action(project: Path, given: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Runs the last step of the action as GitHub does, with the inputs that a workflow gives."""
    definition = _yaml(ROOT / "action.yml")
    assert set(given) <= set(definition["inputs"])
    inputs = {name: entry["default"] for name, entry in definition["inputs"].items()}
    inputs |= {name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()}
    step = definition["runs"]["steps"][-1]
    values = {name: inputs[_input(value)] for name, value in step["env"].items()}
    env = {**on_path(project), **values, "GITHUB_ACTION_PATH": str(ROOT)}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)


def test_a_project_takes_the_name_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, name in (("a b", "a_b"), ("7days", "_7days"), ("select", "select_"), ("Überall", "berall")):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        assert main(["init"]) == 0
        assert f"topology {name};" in Path("topology.vdsl").read_text()
        assert main(["check", "."]) == 0


def test_nothing_is_made_where_a_file_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("mine")
    assert main(["init"]) == 2
    assert capsys.readouterr().err == (
        "error: README.md already exists\n = help: choose another folder: vsc init NAME\n"
    )
    assert os.listdir() == ["README.md"]
    assert main(["init", "-x"]) == 2
    assert main(["init", "..."]) == 2
    assert "gives no name" in capsys.readouterr().err


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())
